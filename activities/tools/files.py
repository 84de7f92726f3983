"""Opening and replacing regular files at resolved paths, so that nothing else is touched on the way.

Every folder is opened below its parent without following links: a path that was resolved a moment ago and has a
link in it now has been tampered with, and is refused.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.tool import ToolError
from longhaul.stores.offload.shared_folders import sync_folder

ABSENT = "absent"
LOADED_CAP_BYTES = 20_000_000
"""Larger files are described by their digest alone: they are neither edited nor compared."""

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Changed(Exception):
    """The file is no longer the one that was looked at."""


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it was at one moment."""

    digest: str
    """sha-256 of its bytes; ABSENT when there is no such file."""
    size_bytes: int = 0
    data: bytes | None = None
    """None when the file is absent or larger than LOADED_CAP_BYTES."""
    names: int = 1
    """Hard links."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor for reading the regular file at `path` (resolved). Raises ToolError in words for the model."""
    with _spoken(path), _folder_of(path) as folder:
        _refuse_irregular(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))
        descriptor = os.open(path.name, os.O_RDONLY | _FILE, dir_fd=folder)
    try:
        _refuse_irregular(path, os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def snapshot(path: Path) -> FileSnapshot:
    """What is at `path` now. Raises ToolError when something other than a regular file is, or it can't be read."""
    try:
        with opened(path) as descriptor:
            status = os.fstat(descriptor)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                if status.st_size <= LOADED_CAP_BYTES:
                    data = file.read(LOADED_CAP_BYTES + 1)
                    if len(data) <= LOADED_CAP_BYTES:
                        return FileSnapshot(digest_of(data), len(data), data, status.st_nlink)
                    file.seek(0)
                return FileSnapshot(
                    hashlib.file_digest(file, "sha256").hexdigest(), status.st_size, None, status.st_nlink
                )
    except FileNotFoundError:
        return FileSnapshot(ABSENT)


def replace(path: Path, data: bytes, expected: str) -> None:
    """Put `data` at `path` in one step, if the digest of what is there is still `expected`, else raise `Changed`.

    Missing folders are made; the mode and, where allowed, the owner of an existing file are kept. The new bytes are
    a new file with the old name: other names of the old one (hard links) keep the old bytes.
    """
    with _spoken(path), _folder_of(path, create=True) as folder:
        try:
            old = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            old = None
        # Renaming needs no right to the file itself, so a read-only file would be replaced without this.
        if old is not None:
            _refuse_irregular(path, old)
            if not old.st_mode & 0o222:
                raise ToolError(f"{str(path)!r} is read-only (mode {old.st_mode & 0o777:o}); it was not changed")
            os.close(os.open(path.name, os.O_WRONLY | _FILE, dir_fd=folder))
        draft = f".{secrets.token_hex(8)}.tmp"
        try:
            _write_draft(draft, folder, data, old)
            _refuse_changed(path, expected)
            os.rename(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            raise
        sync_folder(folder)


def digest_of(data: bytes) -> str:
    """sha-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def _folder_of(path: Path, *, create: bool = False) -> Iterator[int]:
    folder = os.open("/", _FOLDER)
    try:
        for name in path.parts[1:-1]:
            deeper = _open_folder(name, folder, create=create)
            os.close(folder)
            folder = deeper
        yield folder
    finally:
        os.close(folder)


def _open_folder(name: str, parent: int, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def _write_draft(draft: str, folder: int, data: bytes, old: os.stat_result | None) -> None:
    mode = 0o666 if old is None else 0o600
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, mode, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        if old is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            # Without the set-user-id and set-group-id bits: new bytes must not run with another's rights.
            os.fchmod(file.fileno(), old.st_mode & 0o777)
        file.flush()
        os.fsync(file.fileno())


def _refuse_changed(path: Path, expected: str) -> None:
    if snapshot(path).digest != expected:
        raise Changed(str(path))


def _refuse_irregular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{str(path)!r} is a directory; give the path of a file")
    if stat.S_ISLNK(status.st_mode):
        raise ToolError(f"{str(path)!r} has just become a symbolic link; it was not touched")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{str(path)!r} is not a regular file (a pipe, socket or device); it was not touched")


@contextlib.contextmanager
def _spoken(path: Path) -> Iterator[None]:
    """Operating system errors as sentences; that a file is missing stays FileNotFoundError for `snapshot`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ToolError(f"{str(path)!r}: a part of the path is not a directory, or has become a link") from None
        raise ToolError(f"{str(path)!r} can't be used: {error.strerror}") from None
