"""Blobs in a directory, also one that several hosts share: a blob appears whole, or not at all.

From the setting LONGHAUL_BLOBS to a blob store: nothing, a directory, or the URL of a Redis.
"""

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from longhaul.stores.blobs.blobs import (
    BadBlobsSetting,
    BlobStore,
    BlobsUnavailable,
    absent,
    check_new,
    checked_key,
    checked_prefix,
    is_whole,
    read_back,
)
from longhaul.stores.blocking_calls import Threads
from longhaul.stores.state.file_store import make_folders, opened, sync_folder, write_whole

Answer = TypeVar("Answer")

HALF_WRITTEN = ".tmp"
ANSWER_SECONDS = 60.0
"""A disk on the network may be slow; one that has stopped must not keep a thread of each that asks."""
AT_ONCE = 16
MARK = ".mark"
FORGOTTEN_SECONDS = 3_600.0
"""What a killed writer has left behind is removed after it; no writer takes as long."""
TRIES = 20
"""Somebody may delete the session, and with it the folder, between any two steps of a writer."""


class DirectoryBlobs:
    """Files `ROOT/NAMESPACE/SE/SESSION/DIGEST`, for nobody but the worker's user."""

    def __init__(self, root: Path, *, fsync: bool = True) -> None:
        """Nothing is touched before the first blob. Without `fsync` a power cut may cost what was written last."""
        self._root = root
        self._fsync = fsync
        self._threads = Threads(AT_ONCE)

    @property
    def place(self) -> str:
        return str(self._root)

    async def put(self, key: str, data: bytes) -> None:
        check_new(key, data)
        await self._done(lambda: self._put(key, data))

    async def get(self, key: str) -> bytes:
        path = self._path(checked_key(key))

        def read() -> bytes:
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                raise absent(key, self.place) from None

        return await self._done(lambda: read_back(key, read(), self.place))

    async def keys(self, prefix: str) -> list[str]:
        folder = self._folder(checked_prefix(prefix))
        return await self._done(
            lambda: sorted(f"{prefix}/{path.name}" for path in _files(folder) if path.suffix != HALF_WRITTEN)
        )

    async def delete_prefix(self, prefix: str) -> int:
        folder = self._folder(checked_prefix(prefix))
        return await self._done(lambda: _delete(folder))

    async def mark(self, new: str = "") -> str:
        return await self._done(lambda: self._marked(new))

    async def close(self) -> None:
        """Nothing is held open."""

    async def _done(self, work: Callable[[], Answer]) -> Answer:
        """In a thread: a shared directory may be slow, and the event loop sends the heartbeats."""
        try:
            return await self._threads.run(work, ANSWER_SECONDS)
        except TimeoutError:
            raise BlobsUnavailable(f"{self.place} did not answer within {ANSWER_SECONDS:g} seconds") from None
        except OSError as error:
            raise BlobsUnavailable(f"the blobs in {self.place} can't be used: {error}") from error

    def _marked(self, new: str) -> str:
        mark = self._root / MARK
        if new and not mark.exists():
            make_folders(self._root)
            mine = self._root / f"{MARK}.{new}"
            mine.write_text(new, encoding="ascii")
            with contextlib.suppress(FileExistsError):
                os.link(mine, mark)  # the first of several workers wins
            mine.unlink()
            sync_folder(self._root)
        try:
            return mark.read_text(encoding="ascii", errors="replace")[:40]
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def _put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        for tries_left in reversed(range(TRIES)):
            try:
                if not _is_there(key, path):
                    self._write(path, data)
            except FileNotFoundError:
                if not tries_left:
                    raise
            else:
                return

    def _write(self, path: Path, data: bytes) -> None:
        folder = path.parent
        temporary = folder / f"{secrets.token_hex(16)}{HALF_WRITTEN}"
        descriptor = opened(temporary, os.O_WRONLY | os.O_EXCL)
        try:
            write_whole(descriptor, data, fsync=self._fsync)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if self._fsync:
            sync_folder(folder)
        _sweep(folder, path.stat().st_mtime)

    def _path(self, key: str) -> Path:
        prefix, _, digest = key.rpartition("/")
        return self._folder(prefix) / digest

    def _folder(self, prefix: str) -> Path:
        namespace, session = prefix.split("/")
        return self._root / namespace / session[:2] / session


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _delete(folder: Path) -> int:
    number = 0
    for path in _files(folder):
        path.unlink(missing_ok=True)
        number += path.suffix != HALF_WRITTEN
    with contextlib.suppress(OSError):  # there was none, or somebody is writing into it just now
        folder.rmdir()
    return number


def _is_there(key: str, path: Path) -> bool:
    try:
        return is_whole(key, path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


def _sweep(folder: Path, now: float) -> None:
    """`now`: by the clock of the file system. Ours may be ahead of it, and would take what others are writing."""
    for path in [path for path in _files(folder) if path.suffix == HALF_WRITTEN]:
        try:
            if now - path.stat().st_mtime > FORGOTTEN_SECONDS:
                path.unlink()
        except FileNotFoundError:
            pass  # its writer has finished, or another one swept


SHAPES = "a directory like /srv/longhaul/blobs, file:///PATH, or redis://…"


def open_blobs(setting: str, *, data_dir: Path) -> BlobStore:
    """The store that a setting names; it is touched when it is first used. Raises BadBlobsSetting.

    Nothing stands for the directory `blobs` in `data_dir`: enough where worker and clients share one machine.
    """
    if not setting:
        return DirectoryBlobs(data_dir.absolute() / "blobs")
    if "://" not in setting:
        return DirectoryBlobs(_folder(Path(setting).expanduser(), setting))
    try:
        parts = urlsplit(setting)
    except ValueError as error:
        raise BadBlobsSetting(f"LONGHAUL_BLOBS: the setting is no URL ({error}); set {SHAPES}") from None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise BadBlobsSetting("LONGHAUL_BLOBS: file://… names a host; write file:///PATH with three slashes")
        return DirectoryBlobs(_folder(Path(unquote(parts.path)), setting))
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        from longhaul.stores.blobs.redis_blobs import RedisBlobs  # noqa: PLC0415  only who uses Redis loads it

        try:
            return RedisBlobs(setting)
        except BadBlobsSetting as error:
            raise BadBlobsSetting(f"LONGHAUL_BLOBS: {error}") from None
    raise BadBlobsSetting(f"LONGHAUL_BLOBS: nothing is known of {parts.scheme[:30]}://…; set {SHAPES}")


def _folder(path: Path, setting: str) -> Path:
    """A relative one would be another for each process."""
    if not path.is_absolute() or "\0" in setting or path == Path("/"):
        raise BadBlobsSetting(f"LONGHAUL_BLOBS: {setting[:200]!r} is no absolute path of a directory; set {SHAPES}")
    return path
