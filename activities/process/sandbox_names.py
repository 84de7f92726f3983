"""Names what a sandbox covers in a workspace: files with secrets, and names that other programs run or obey."""

import os
import stat
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from longhaul.activities.repository.dangerous_files import danger_by_name, danger_to_others
from longhaul.activities.repository.git_index import UnreadableIndex, tracked_in
from longhaul.activities.repository.secret_trees import is_harmless
from longhaul.agent.permission.call_facts import KEYRINGS, is_secret

MOST_NAMES = 10_000
"""Looked at, the upper folders first: what lies beyond is left to the proof."""
MOST_COVERED = 200
"""Each is a mount, of a tenth of a millisecond."""
REMEMBERED_ROOTS = 32
STILL_NS = 2_000_000_000
"""A folder that changed so shortly before it was read may change again without another time showing at it."""
_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__", ".git"})
"""Not looked into: others' packages, whose keys are for tests, and repositories, which are covered whole or not."""


@dataclass(slots=True)
class Covered:
    """Absolute paths, each once; of a folder nothing below it."""

    secrets: list[str] = field(default_factory=list)
    """Not what git tracks: it would tell of a change that there is none."""
    run_by_others: list[str] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.secrets) + len(self.run_by_others) >= MOST_COVERED


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    parts: tuple[str, ...]
    """Below the root, in lower case."""
    guarded: bool = False
    """It is covered, or lies in what is."""


@dataclass(frozen=True, slots=True)
class _Name:
    """One that may have to be covered."""

    path: str
    secret: bool
    run: bool
    is_folder: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """What was found in one folder. It holds until a name comes or goes there: what files hold is not in it."""

    stamp: tuple[int, ...]
    """Empty: it has to be read again."""
    count: int
    names: tuple[_Name, ...]
    inner: tuple[_Folder, ...]
    is_repository: bool


def covered_in(root: Path) -> Covered:
    """What is there now: folders in which names came or went since the last call are read again. Never raises."""
    known, read = _remembered.get(root, {}), dict[str, _Read]()
    covered, seen, tracked = Covered(), 0, set[str]()
    waiting = deque([_Folder(str(root), ())])
    while waiting and seen < MOST_NAMES and not covered.full:
        folder = waiting.popleft()
        found = _looked_at(folder, known.get(folder.path))
        if found is None:
            continue
        read[folder.path] = found
        seen += found.count
        if found.is_repository:
            tracked |= _tracked(folder.path)
        for name in found.names:
            if name.secret and name.path not in tracked and (name.is_folder or not is_harmless(name.path)):
                covered.secrets.append(name.path)
            elif name.run:
                covered.run_by_others.append(name.path)
        waiting.extend(found.inner)
    _remembered.pop(root, None)
    _remembered[root] = read
    while len(_remembered) > REMEMBERED_ROOTS:
        _remembered.popitem(last=False)
    return covered


_remembered: OrderedDict[Path, dict[str, _Read]] = OrderedDict()


def _looked_at(folder: _Folder, known: _Read | None) -> _Read | None:
    """None: it is no folder, or can't be read."""
    try:
        stamp = _stamp(folder.path)
        if known is not None and stamp and known.stamp == stamp:
            return known
        with os.scandir(folder.path) as found:
            entries = list(found)
    except OSError:
        return None
    kept = [each for entry in entries if not entry.is_symlink() for each in _kept(folder, entry)]
    return _Read(
        stamp,
        len(entries),
        tuple(each for each in kept if isinstance(each, _Name)),
        tuple(each for each in kept if isinstance(each, _Folder)),
        any(entry.name == ".git" for entry in entries),
    )


def _stamp(path: str) -> tuple[int, ...]:
    """When names last came or went; nobody can set that time. Raises OSError, also where a link has taken its place."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(path)
    if time.time_ns() - status.st_ctime_ns < STILL_NS:
        return ()
    return (status.st_dev, status.st_ino, status.st_ctime_ns)


def _kept(folder: _Folder, entry: os.DirEntry[str]) -> Iterator[_Name | _Folder]:
    parts = (*folder.parts, entry.name.lower())
    is_folder = entry.is_dir(follow_symlinks=False)
    secret = parts[-1] in KEYRINGS if is_folder else is_secret(parts)
    run = not folder.guarded and bool(danger_to_others(parts) or danger_by_name(parts, "write"))
    if secret or run:
        yield _Name(entry.path, secret, run, is_folder)
    if is_folder and not secret and parts[-1] not in _PACKAGES:
        yield _Folder(entry.path, parts, folder.guarded or run)


def _tracked(folder: str) -> set[str]:
    """Files of this folder's repository that would count as secrets."""
    try:
        return {f"{folder}/{name}" for name in tracked_in(Path(folder, ".git", "index")).secrets}
    except (OSError, UnreadableIndex):
        return set()
