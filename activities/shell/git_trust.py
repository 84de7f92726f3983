"""Decides whether git may read a repository unasked: only one that `git init` or `git clone` could have made, and no
part of it lies elsewhere.

A repository that came in an archive may hold anything: a configuration that names programs or files, links, stores of
other repositories, submodules with a configuration of their own.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from longhaul.activities.repository.git_index import UnreadableIndex, tracked_in
from longhaul.stores.names import read_regular
from longhaul.stores.worktrees.git import CONFIG_CAP_BYTES, FOREIGN, is_plain_config

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
    """Whether git begun in `start`, resolved, meets a repository without surprises, or none. Fails closed."""
    repository = repository_above(start)
    below = repository.removesuffix("/.git")
    if any(_looks_bare(folder) for folder in _up_to(start, below)):
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


def _looks_bare(folder: str) -> bool:
    return all(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs"))
