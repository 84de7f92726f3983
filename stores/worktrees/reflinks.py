"""Clones a folder of files on a file system with reflinks: the copy shares its blocks until one of both is written to.

Nobody trusts what lies there. Each name is opened from the folder that it was seen in, and no link is followed, so that
one which is put there meanwhile leads nowhere. Each file is as it was at one moment; the folder as a whole is not.
"""

import errno
import fcntl
import fnmatch
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from longhaul.agent.permission.call_facts import KEYRINGS, is_secret
from longhaul.stores.worktrees.git import LEFT_OUT
from longhaul.stores.worktrees.plain_git_folder import GitProblem

FICLONE = 0x40049409
"""Of Linux: the file written to shares all blocks of the other one."""
MOST_NAMES = 200_000
MOST_BYTES = 100 * 10**9
"""On the disk. None is read, but all are held as long as the copy is."""
MOST_DEEP = 100
"""Folders in folders: two files are open for each of them."""
SECONDS = 60.0

_OURS = ".longhaul"
_FOLDERS_OUT = KEYRINGS | {".ssh"}
_NAMES_OUT = re.compile("|".join(fnmatch.translate(glob) for glob in LEFT_OUT if "/" not in glob))
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""What is said of a name that was something else a moment ago."""
_HERE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def clone(source: Path, target: Path, *apart: Path) -> None:
    """Make `target`, all of it or nothing, its owner's alone. `apart`: folders that are left out wherever they lie.
    Pipes, sockets and devices are left out, owners and extended attributes not kept; files that lie there under two
    names become two. Raises GitProblem, OSError."""
    draft = target.with_name(f".{target.name}")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700, parents=True)
    work = _Cloning(source, {(found.st_dev, found.st_ino) for found in map(os.stat, apart)})
    try:
        with _opened(os.open(source, _HERE | os.O_DIRECTORY)) as old, _opened(os.open(draft, _HERE)) as new:
            work.folder(old, new, ())
        draft.rename(target)
    except OSError as error:
        raise GitProblem(f"{str(work.at)!r} can't be cloned into {str(target.parent)!r}: {_why(error)}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@dataclass(slots=True)
class _Cloning:
    root: Path
    apart: set[tuple[int, int]]
    at: Path = field(init=False)
    """What it works on."""
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    names: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.at = self.root

    def folder(self, old: int, new: int, parts: tuple[str, ...]) -> None:
        with os.scandir(old) as entries:
            for entry in entries:
                inside = (*parts, entry.name)
                self._look_at(inside)
                try:
                    seen = os.stat(entry.name, dir_fd=old, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if not _left_out(inside, is_folder=stat.S_ISDIR(seen.st_mode)):
                    self._entry(old, new, inside, seen)

    def _look_at(self, parts: tuple[str, ...]) -> None:
        self.at, self.names = self.root.joinpath(*parts), self.names + 1
        if self.names > MOST_NAMES or self.size > MOST_BYTES:
            raise GitProblem(f"{str(self.root)!r} holds more than {MOST_NAMES} files, or {MOST_BYTES} bytes")
        if len(parts) > MOST_DEEP:
            raise GitProblem(f"{str(self.root)!r} has folders in folders, more than {MOST_DEEP}")
        if time.monotonic() > self.until:
            raise GitProblem(f"cloning {str(self.root)!r} took longer than {SECONDS:g} s")

    def _entry(self, old: int, new: int, parts: tuple[str, ...], seen: os.stat_result) -> None:
        name = parts[-1]
        if stat.S_ISLNK(seen.st_mode):
            if (leads := _link(name, old)) is not None:
                os.symlink(leads, name, dir_fd=new)
        elif _is_kept(seen) and (found := _open(name, old)) is not None:
            with _opened(found):
                self._copy(found, new, parts)

    def _copy(self, found: int, new: int, parts: tuple[str, ...]) -> None:
        """Of what was opened, whatever stood there when it was looked at."""
        seen, name = os.fstat(found), parts[-1]
        if stat.S_ISDIR(seen.st_mode):
            if (seen.st_dev, seen.st_ino) in self.apart:
                return
            os.mkdir(name, 0o700, dir_fd=new)
            with _opened(os.open(name, _HERE, dir_fd=new)) as made:
                self.folder(found, made, parts)
                _as_before(made, seen, 0o700)  # or it could not be removed again
        elif stat.S_ISREG(seen.st_mode):
            self.size += seen.st_blocks * 512
            with _opened(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=new)) as made:
                fcntl.ioctl(made, FICLONE, found)
                _as_before(made, seen, 0)


def _is_kept(seen: os.stat_result) -> bool:
    # A device might do something when it is opened.
    return stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode)


def _left_out(parts: tuple[str, ...], *, is_folder: bool) -> bool:
    """By the rule for files that git does not track: what may hold secrets by its name, and what is our own."""
    lower = tuple(part.lower() for part in parts)
    if parts == (_OURS,) or _NAMES_OUT.fullmatch(lower[-1]):
        return True
    return lower[-1] in _FOLDERS_OUT if is_folder else is_secret(lower)


def _as_before(made: int, seen: os.stat_result, at_least: int) -> None:
    os.fchmod(made, seen.st_mode & 0o777 | at_least)
    os.utime(made, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _open(name: str, folder: int) -> int | None:
    try:
        return os.open(name, _HERE, dir_fd=folder)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def _link(name: str, folder: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.EINVAL}:
            return None
        raise


@contextmanager
def _opened(file: int) -> Iterator[int]:
    try:
        yield file
    finally:
        os.close(file)


def _why(error: OSError) -> str:
    if error.errno in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV}:
        return "that takes one file system for both, with reflinks (xfs, btrfs)"
    return error.strerror or str(error)
