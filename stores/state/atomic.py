"""Files that are replaced whole: after a kill or a power cut there is the old one or the new one. Blocking."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longhaul.stores.state.store import StoreUnavailable

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Alone among all processes and threads that lock this path. Raises StoreUnavailable after `seconds`."""
    descriptor = opened(path, os.O_RDWR)
    try:
        _take(descriptor, path, time.monotonic() + seconds)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path, deadline: float) -> None:
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreUnavailable(f"the lock {path} is held by another process; is one of them stopped?") from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        else:
            return


def replace(path: Path, text: str) -> None:
    """Put `text` at `path`. Only under the lock of that path: the temporary file has a fixed name, so
    that one which a kill left behind is overwritten by the next writer."""
    temporary, data = path.with_suffix(".tmp"), text.encode()
    write_whole(opened(temporary, os.O_WRONLY | os.O_TRUNC), data)
    temporary.replace(path)
    sync_folder(path.parent)


def opened(path: Path, how: int) -> int:
    """A file for nobody but this user, made with its folders where it is not there; never by a link."""
    how |= os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, how, 0o600)
    except FileNotFoundError:
        make_folders(path.parent)
        return os.open(path, how, 0o600)


def write_whole(descriptor: int, data: bytes, *, fsync: bool = True) -> None:
    """Write all of it, and close. In few system calls: each lets other threads have the interpreter, and waits for it
    again."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        if fsync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> bool:
    """True when there was a file."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_folder(path.parent)
    return True


def make_folders(folder: Path) -> None:
    """Folders down to `folder`, each new one written into the one above it before anything lies in it."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
