"""What the file system says about a command's words: homes, file patterns, folders that git may take for its own."""

import os
import re
from collections.abc import Iterable, Sequence
from glob import iglob
from itertools import islice
from pathlib import Path

from activities.tools.git_index import UnreadableIndex, tracked_in
from activities.tools.shell_words import Word

MAX_MATCHES = 200


def _key(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\A|[\n\r\]\ufeff])\s*(?:{names})\b|\[\s*include", re.IGNORECASE)


_RUNS = (
    "external|textconv|command|clean|smudge|process|program|sshcommand|alternaterefscommand|uploadpack|promisor"
    "|partialclone|allow"
)
"""Keys of a repository's own configuration that make a reading git run a program."""
_IN_REPOSITORY = _key(f"{_RUNS}|worktree")
_IN_MODULE = _key(f"{_RUNS}|fsmonitor|hookspath")
"""A submodule has its worktree written down, but git does not hand it what Bash sets against these two."""
MAX_MODULES = 200


def at_home(word: Word) -> str:
    return home_written_out(word.text) if word.tilde else word.text


def home_written_out(text: str) -> str:
    """`text` with a leading `~` as the shell replaces it."""
    if text != "~" and not text.startswith("~/"):
        return text
    return (os.environ.get("HOME") or "/root") + text[1:]


def as_the_program_sees_them(words: Sequence[Word], at: Sequence[str]) -> tuple[str, ...] | None:
    """The words as the program will see them, file patterns replaced by names; None when there are too many."""
    out: list[str] = []
    for word in words:
        out.extend(() if word.pattern else (at_home(word),))
        if not word.pattern:
            continue
        found = [name for directory in at for name in _matches(at_home(word), directory)]
        if len(found) > MAX_MATCHES:
            return None
        out.extend(found or [word.text])
    return tuple(out)


def _matches(pattern: str, directory: str) -> list[str]:
    try:
        return list(islice(iglob(pattern, root_dir=directory), MAX_MATCHES + 1))  # noqa: PTH207 - Path.glob raises for absolute patterns
    except (OSError, ValueError):
        return []


def folders_with(program: str) -> list[str]:
    """Those of PATH that have a program of this name."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [folder for folder in folders if folder.startswith("/") and os.path.lexists(f"{folder}/{program}")]


def lies_in(folder: str, root: Path) -> bool:
    """As it is spelt, or where it leads now."""
    return Path(folder).is_relative_to(root) or Path(os.path.realpath(folder)).is_relative_to(root)


def looks_like_foreign_repository(reads: Sequence[str], at: Sequence[str]) -> bool:
    """Whether git may run a program for what a folder says: one that it takes for a bare repository, or a repository
    whose own configuration names programs (it may have come in an archive; a clone never has one)."""
    folders = {os.path.realpath(Path(directory) / path) for directory in at for path in (".", *reads)}
    return any(_looks_bare(folder) for start in folders for folder in _up_to_repository(start)) or any(
        _configured_to_run(repository) for repository in {repository_above(start) for start in folders} if repository
    )


def repository_above(start: str) -> str:
    """What lies under the name `.git` at or above `start`; empty when nothing does."""
    candidates = (f"{folder}/.git" for folder in (start, *map(str, Path(start).parents)))
    return next((path for path in candidates if os.path.lexists(path)), "")


def _configured_to_run(repository: str) -> bool:
    """Fails closed: a configuration that can't be read, or one that lies elsewhere, is not known to be harmless."""
    try:
        found = [git_folder(repository)]
        common = found[0] / "commondir"
        if common.is_file():
            found.append((found[0] / common.read_text().strip()).resolve(strict=True))
        configs = [folder / name for folder in found for name in ("config", "config.worktree")]
        modules = list(islice(found[-1].glob("modules/**/config"), MAX_MODULES + 1))
        modules += _unabsorbed(Path(repository).parent, found[0] / "index")
        own = _IN_REPOSITORY if found[0].name == ".git" else _IN_MODULE
        return len(modules) > MAX_MODULES or _says(own, configs) or _says(_IN_MODULE, modules)
    except (OSError, ValueError, UnreadableIndex):
        return True


def git_folder(repository: str) -> Path:
    """Where git keeps what belongs to `repository`, a path that ends in `.git`. Raises OSError, ValueError."""
    found = Path(repository).resolve(strict=True)
    return _linked(found) if found.is_file() else found


def _unabsorbed(top: Path, index: Path) -> list[Path]:
    """Configurations of submodules that keep their repository in the working tree, where whoever writes a file there
    can write it too: git looks into each submodule that the index names."""
    found: list[Path] = []
    for module in islice(tracked_in(index).modules, MAX_MODULES + 1):
        repository = top / module / ".git"
        if os.path.lexists(repository):
            folder = git_folder(str(repository))
            found += [folder / "config", folder / "config.worktree"]
    return found


def _says(keys: re.Pattern[str], configs: Iterable[Path]) -> bool:
    return any(keys.search(_text(config)) for config in configs if os.path.lexists(config))


def _linked(pointer: Path) -> Path:
    """The folder that a `.git` file (of a worktree or submodule) points at."""
    return (pointer.parent / _text(pointer).removeprefix("gitdir:").strip()).resolve(strict=True)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else "[include]"


def _up_to_repository(start: str) -> Iterable[str]:
    for folder in (start, *map(str, Path(start).parents)):
        if os.path.lexists(f"{folder}/.git"):
            return
        yield folder


def _looks_bare(folder: str) -> bool:
    return all(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs"))
