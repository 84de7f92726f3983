"""What the file system says about a command's words: homes, file patterns, folders that git may take for its own."""

import os
from collections.abc import Iterable, Sequence
from glob import iglob
from itertools import islice
from pathlib import Path

from activities.tools.shell_words import Word

MAX_MATCHES = 200


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


def looks_like_foreign_repository(reads: Sequence[str], at: Sequence[str]) -> bool:
    """Whether git may take a folder for a bare repository, whose configuration runs programs."""
    folders = {os.path.realpath(Path(directory) / path) for directory in at for path in (".", *reads)}
    return any(_looks_bare(folder) for start in folders for folder in _up_to_repository(start))


def _up_to_repository(start: str) -> Iterable[str]:
    for folder in (start, *map(str, Path(start).parents)):
        if os.path.lexists(f"{folder}/.git"):
            return
        yield folder


def _looks_bare(folder: str) -> bool:
    return all(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs"))
