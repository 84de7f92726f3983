"""A repository that git is asked about unasked: whether it may be read at all, and the files with secrets in its
commits.

Decides whether git may read a repository unasked: only one that `git init` or `git clone` could have made, and no
part of it lies elsewhere.

A repository that came in an archive may hold anything: a configuration that names programs or files, links, stores of
other repositories, submodules with a configuration of their own.

Files with secrets that a repository's commits hold, also those that nobody sees any more: `git log -p` prints them.

git itself is asked, in the environment of commands that run unasked, once for each state of the references.
"""

import os
import shutil
import stat
import subprocess
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from longhaul.activities.repository import TooLarge, UnreadableIndex, tracked_in
from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.agent.permission.call_analysis import is_secret
from longhaul.stores.names import read_regular
from longhaul.stores.worktrees.git import CONFIG_CAP_BYTES, FOREIGN, is_plain_config

SECONDS = 3.0
"""A longer history can't be looked through while somebody waits: the command asks."""
MAX_REFERENCES = 20_000
REMEMBERED = 32
_ASK = (
    "--no-pager", "-c", "log.showRoot=true", "-c", "log.showSignature=false", "log", "--all", "--reflog", "-z",
    "--format=", "--name-only", "--diff-filter=A", "--diff-merges=first-parent", "--no-renames", "--ignore-submodules",
)  # fmt: skip

State = tuple[tuple[str, int, int, int], ...]


def secrets_in_commits(top: Path, folder: Path) -> tuple[str, ...]:
    """Their names below `top`, the working tree; `folder` is what git keeps for it. Raises TooLarge, OSError."""
    if not (folder / "HEAD").exists():
        return ()
    key = (str(top), tuple(_references(folder)))
    found = _remembered.get(key)
    if found is None:
        found = _remembered[key] = _ask_git(top)
        while len(_remembered) > REMEMBERED:
            _remembered.popitem(last=False)
    return found


_remembered: OrderedDict[tuple[str, State], tuple[str, ...]] = OrderedDict()


def _references(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """What git rewrites when any commit becomes reachable: references, packed or not, and their logs."""
    pointer = folder / "commondir"
    shared = (folder / pointer.read_text(encoding="utf-8").strip()) if pointer.is_file() else folder
    files = list(islice(_files(folder, shared), MAX_REFERENCES + 1))
    if len(files) > MAX_REFERENCES:
        raise TooLarge
    for path in files:
        status = path.stat()
        yield str(path), status.st_mtime_ns, status.st_size, status.st_ino


def _files(folder: Path, shared: Path) -> Iterator[Path]:
    for file in dict.fromkeys((folder / "HEAD", folder / "logs" / "HEAD", shared / "packed-refs")):
        if file.is_file():
            yield file
    for name in ("refs", "logs", "reftable"):
        for parent, _, files in os.walk(shared / name):
            yield from (Path(parent, file) for file in files)


def _ask_git(top: Path) -> tuple[str, ...]:
    environment = hardened(scrubbed(os.environ))
    git = shutil.which("git", path=environment["PATH"])
    if git is None:
        return ()  # nor will the command find it
    try:
        done = subprocess.run(
            [git, *_ASK], cwd=top, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TooLarge from None
    if done.returncode:
        raise OSError(f"git log ended with {done.returncode}")
    names = dict.fromkeys(done.stdout.decode(errors="surrogateescape").split("\0"))
    return tuple(name for name in names if name and is_secret(tuple(name.lower().split("/"))))


_FULL = frozenset({"objects", "refs", "logs", "lfs"})
"""Not looked into for links any deeper than this: what they hold is read as hashes, or not at all."""
_DEEPER = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "refs/remotes", "logs/HEAD", "logs/refs")
MOST_NAMES = 5_000
"""Of a repository's own, looked at for links."""


def repository_above(start: str) -> str:
    """What lies under the name `.git` at or above `start`; empty when nothing does."""
    candidates = (f"{folder}/.git" for folder in (start, *map(str, Path(start).parents)))
    return next((path for path in candidates if os.path.lexists(path)), "")


def is_plain_repository(start: str) -> bool:
    """Whether git started in `start`, resolved, meets a repository without surprises, or none. Fails closed."""
    repository = repository_above(start)
    below = repository.removesuffix("/.git")
    if any(
        all(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs"))
        for folder in _up_to(start, below)
    ):
        return False
    if not repository:
        return True
    try:
        return _is_plain(repository)
    except (OSError, ValueError, UnreadableIndex):
        return False


def _is_plain(repository: str) -> bool:
    if not stat.S_ISDIR(os.lstat(repository).st_mode):
        return False
    if any(os.path.islink(f"{repository}/{name}") for name in _DEEPER):  # noqa: PTH114  a Path for each takes longer
        return False
    if any(os.path.lexists(f"{repository}/{name}") for name in FOREIGN) or _has_links(repository):
        return False
    # Each file there is an address, of a remote that no configuration names.
    if os.path.isdir(f"{repository}/branches") and os.listdir(f"{repository}/branches"):  # noqa: PTH112, PTH208  as above
        return False
    config = Path(repository, "config")
    with suppress(FileNotFoundError):
        if not is_plain_config(read_regular(config, CONFIG_CAP_BYTES).decode("utf-8")):
            return False
    # git looks into each submodule, and hands it none of what is set for the line.
    return not tracked_in(Path(repository, "index")).modules


def _has_links(repository: str) -> bool:
    """Whether a name in there is a link: git prints what it finds in many of them (`rebase-merge/done`)."""
    seen, waiting = 0, [repository]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                seen += 1
                if entry.is_symlink() or seen > MOST_NAMES:
                    return True
                if entry.is_dir() and not (folder == repository and entry.name in _FULL):
                    waiting.append(entry.path)
    return False


def _up_to(start: str, end: str) -> list[str]:
    """`start` and the folders above it, as far as git looks for a repository; the one with `.git` left out."""
    folders = [start, *map(str, Path(start).parents)]
    return folders[: folders.index(end or "/")] if (end or "/") in folders else folders
