"""Live streams in a local directory: a folder per session, with files that are appended to and dropped when they are
many or old. For processes of one machine; writers and readers take no locks.

A write of some kB with O_APPEND is one piece in the file, whoever else writes.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import time
from pathlib import Path
from urllib.parse import quote

from longhaul.stores.blocking_calls import Threads
from longhaul.stores.names import safe_name
from longhaul.stores.streams.directory_reader import DirectoryReader, file_of, numbers
from longhaul.stores.streams.streams import StreamsUnavailable

FILE_BYTES = 1_000_000
FILES_KEPT = 4
"""Of one session."""
KEPT_SECONDS = 24 * 3600.0
"""A session that has written nothing for so long loses its stream."""
SWEEP_SECONDS = 600.0
ANSWER_SECONDS = 2.0
UNIT_NS = 100_000
"""Of a file's first number. In a whole millisecond a stream could be begun, deleted and begun anew, and nobody would
see that it is another; a finer one would not fit into a name's digits."""
MARK = ".id"
"""The file that tells this directory from another machine's of the same path."""


class DirectoryStreams:
    def __init__(self, root: Path) -> None:
        """Made when it is first written to."""
        self._root = root
        self._newest: dict[str, tuple[int, str]] = {}
        """Number and path of the file that was written to last, by session."""
        self._swept = -SWEEP_SECONDS
        self._old: dict[Path, float] = {}
        """What was too old when it was last looked, and when it had been written to."""
        self._threads = Threads(4)

    @property
    def address(self) -> str:
        """Raises StreamsUnavailable when the directory can't be made."""
        return f"file://{quote(str(self._root))}?id={self._marked()}"

    def _marked(self) -> str:
        mark = self._root / MARK
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not mark.exists():
                new = self._root / f"{MARK}.{secrets.token_hex(8)}"
                new.write_text(secrets.token_hex(8), encoding="ascii")
                with contextlib.suppress(FileExistsError):
                    os.link(new, mark)  # the first of several workers wins
                new.unlink()
            return quote(mark.read_text(encoding="ascii")[:64])
        except (OSError, UnicodeDecodeError) as error:
            raise StreamsUnavailable(f"the live streams in {self._root} can't be written: {error}") from error

    async def append(self, key: str, lines: bytes) -> None:
        try:
            await self._threads.run(lambda: self._append(key, lines), ANSWER_SECONDS)
        except TimeoutError as error:
            raise StreamsUnavailable(f"{self._root} did not answer within {ANSWER_SECONDS:g} s") from error
        except OSError as error:
            raise StreamsUnavailable(f"the live streams in {self._root} can't be written: {error}") from error

    def _append(self, key: str, lines: bytes) -> None:
        self._sweep()
        if not self._written(self._open_newest(key), lines):
            self._written(self._open_next(key), lines)

    @staticmethod
    def _written(descriptor: int, lines: bytes) -> bool:
        """Append, and close the file; False for one that is full."""
        try:
            full = os.fstat(descriptor).st_size >= FILE_BYTES
            return not full and os.write(descriptor, lines) >= 0
        finally:
            os.close(descriptor)

    def _open_newest(self, key: str) -> int:
        try:
            # Without O_CREAT: another process may have dropped this file and gone on to a later one.
            return os.open(self._newest[key][1], os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        except (KeyError, FileNotFoundError):
            folder = self._folder(key)
            return self._open(key, folder, max(numbers(folder) or self._begin(folder)))

    def _open(self, key: str, folder: Path, number: int) -> int:
        self._newest[key] = number, str(file_of(folder, number))
        return _opened(self._newest[key][1])

    def _begin(self, folder: Path) -> list[int]:
        """Make the folder with its first file, which no stream of this session has had before: whoever reads the one
        that was deleted sees that this is another. Returns the numbers of its files."""
        new, number = self._root / f".{secrets.token_hex(8)}", time.time_ns() // UNIT_NS
        new.mkdir(mode=0o700, parents=True)
        os.close(_opened(file_of(new, number)))
        try:
            new.rename(folder)  # of several writers one begins it
        except OSError:
            shutil.rmtree(new)
            if not (others := numbers(folder)):
                raise
            return others
        return [number]

    def _open_next(self, key: str) -> int:
        folder = self._folder(key)
        there = numbers(folder)
        number = max([self._newest[key][0], *there]) + 1
        for old in there:
            if old <= number - FILES_KEPT:
                file_of(folder, old).unlink(missing_ok=True)
        return self._open(key, folder, number)

    def _sweep(self) -> None:
        """Drop what nobody has written to for long: what was too old at the look before already, and was left alone
        since. A clock that has jumped ahead makes all old at once, those too that are written to just now."""
        if time.monotonic() - self._swept < SWEEP_SECONDS:
            return
        self._swept = time.monotonic()
        self._newest.clear()
        before, self._old = self._old, {}
        oldest = time.time() - KEPT_SECONDS
        with contextlib.suppress(OSError):
            for folder in self._root.iterdir():
                if not folder.is_dir() or folder.is_symlink() or (written := _written_at(folder)) >= oldest:
                    continue
                if before.get(folder) == written:
                    shutil.rmtree(folder, ignore_errors=True)
                else:
                    self._old[folder] = written

    def reader(self, key: str) -> DirectoryReader:
        return DirectoryReader(self._folder(key), FILE_BYTES)

    async def check(self) -> None:
        if not (self._root / MARK).is_file():
            raise StreamsUnavailable(f"there are no live streams in {self._root} on this machine")

    async def check_is(self, mark: str) -> None:
        """Raise StreamsUnavailable unless this directory has the mark that an address gave."""
        await self.check()
        try:
            found = (self._root / MARK).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise StreamsUnavailable(f"the live streams in {self._root} can't be read: {error}") from error
        if found != mark:
            raise StreamsUnavailable(f"{self._root} on this machine is not where the session's worker writes")

    async def delete(self, key: str) -> bool:
        folder = self._folder(key)
        self._newest.pop(key, None)
        if not folder.is_dir() or folder.is_symlink():
            return False
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        return True

    async def close(self) -> None:
        """Nothing is held open."""

    def _folder(self, key: str) -> Path:
        return self._root / safe_name(key)


def _opened(file: Path | str) -> int:
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _written_at(folder: Path) -> float:
    """Its own time counts too: another writer may just be making it, and it has no file yet."""
    return max(path.stat().st_mtime for path in (folder, *(file_of(folder, number) for number in numbers(folder))))
