"""Folders that somebody else may write into: files are opened by name in an open folder, and never through a link.

What is written is a new file that takes its name in one step. So a reader sees the old file or the new one, a crash
leaves the old one, and another name of the old one (a hard link) leads no write anywhere.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_WALK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LOCK, _DRAFT = ".lock", ".draft"


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """A descriptor of the folder at `path` (absolute), made with all folders above it. Raises OSError, also when a
    part of the path is a link."""
    folder = os.open("/", _WALK)
    try:
        for name in path.parts[1:]:
            deeper = _opened_below(folder, name)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def locked(folder: int, longest_seconds: float) -> Iterator[None]:
    """Alone in this folder among all threads, processes and (where the file system can) hosts. Raises TimeoutError."""
    give_up = time.monotonic() + longest_seconds
    while True:
        lock = _lock_file(folder)
        try:
            if _taken(lock) and _is_still(lock, folder):
                yield
                return
        finally:
            os.close(lock)
        if time.monotonic() > give_up:
            raise TimeoutError(f"another attempt has locked the folder for {longest_seconds:.0f} s")
        time.sleep(0.01)


def exists(folder: int, name: str) -> bool:
    """Whether anything has this name, also a dangling link."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def own_file(folder: int, name: str) -> Iterator[BinaryIO | None]:
    """The regular file of that name, for reading; None when there is none. A link is none of ours, and neither is a
    file with a second name: it may be somebody's secret."""
    try:
        descriptor = os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            raise
        yield None
        return
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            yield None
            return
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def holds(folder: int, name: str, data: bytes) -> bool:
    """Whether that file is ours and has exactly these bytes."""
    with own_file(folder, name) as file:
        return file is not None and os.fstat(file.fileno()).st_size == len(data) and file.read(len(data) + 1) == data


def publish(folder: int, name: str, before: BinaryIO | None, before_bytes: int, data: bytes) -> None:
    """Give `name` to a file of the first bytes of `before` and then `data`. Only while the folder is locked."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_DRAFT, dir_fd=folder)  # of an attempt that was killed
    descriptor = os.open(_DRAFT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as draft:
            if before is not None:
                before.seek(0)
                shutil.copyfileobj(before, draft, 1 << 20)
                draft.truncate(before_bytes)
                draft.seek(before_bytes)
            draft.write(data)
            draft.flush()
            os.fsync(draft.fileno())
        os.rename(_DRAFT, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_DRAFT, dir_fd=folder)
        raise
    sync_folder(folder)


def _opened_below(parent: int, name: str) -> int:
    try:
        return os.open(name, _WALK, dir_fd=parent)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, _WALK, dir_fd=parent)


def _lock_file(folder: int) -> int:
    """Writable, for NFS locks no other. What has its name and is no file of ours is removed."""
    for _ in range(3):
        with contextlib.suppress(OSError):
            descriptor = os.open(_LOCK, os.O_RDWR | os.O_CREAT | _FILE, 0o600, dir_fd=folder)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor
            os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_LOCK, dir_fd=folder)
    return os.open(_LOCK, os.O_RDWR | os.O_CREAT | _FILE, 0o600, dir_fd=folder)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(lock: int, folder: int) -> bool:
    """Whether the locked file is the one that others will find: it may have been removed since it was opened."""
    try:
        found = os.stat(_LOCK, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(lock))


def sync_folder(folder: int) -> None:
    """After a power cut the new name must be there, as the record says so."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
