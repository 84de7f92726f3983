"""`FolderChanges` tells readers that something in their folder has changed, by Linux's inotify: one descriptor for all
readers of an event loop, for the number that a user may have of them is small.

Elsewhere, and where the limits of inotify are reached, it hears of nothing, and its readers look by themselves.

`DirectoryReader` reads one session's folder of a local directory: it looks when the system tells of a change, and
now and then for what nobody told. Where nobody tells, it looks often while something happens, and seldom while nothing
does.

Live streams in a local directory: a folder per session, with files that are appended to and dropped when they are
many or old. For processes of one machine; writers and readers take no locks.

A write of some kB with O_APPEND is one piece in the file, whoever else writes.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import WeakKeyDictionary, WeakSet

from longhaul.stores.blocking_calls import Threads
from longhaul.stores.names import safe_name
from longhaul.stores.streams.streams import LONGEST_LINE, StreamsUnavailable

if TYPE_CHECKING:
    from asyncinotify import Inotify, Watch

_changes: "WeakKeyDictionary[asyncio.AbstractEventLoop, FolderChanges]" = WeakKeyDictionary()


class FolderChanges:
    """Those of one event loop; `of_this_loop()` has them."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._watches: dict[Path, Watch] = {}
        self._readers: dict[Path, WeakSet[asyncio.Event]] = {}
        """Weakly: of a reader that nobody has closed, the watch goes with the next change."""

    def tell(self, folder: Path, changed: asyncio.Event) -> bool:
        """Set the event at each change in the folder from now on; asked again it costs nothing. False where no change
        is heard of: of a folder that is not there, too."""
        if folder not in self._watches and not self._watch(folder):
            return False
        self._readers.setdefault(folder, WeakSet()).add(changed)
        return True

    def leave(self, folder: Path, changed: asyncio.Event) -> None:
        readers = self._readers.get(folder)
        if readers is not None:
            readers.discard(changed)
            if not readers:
                self._forget(folder)

    def _watch(self, folder: Path) -> bool:
        if sys.platform != "linux":
            return False
        from asyncinotify import Inotify, Mask  # noqa: PLC0415  can't be imported elsewhere

        wanted = Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.DELETE_SELF | Mask.MOVE_SELF
        try:
            if self._inotify is None:
                self._inotify = Inotify()
            self._watches[folder] = self._inotify.add_watch(folder, wanted | Mask.ONLYDIR)
        except OSError:
            return False
        if self._hearing is None:
            self._hearing = asyncio.create_task(self._hear(self._inotify))
        return True

    async def _hear(self, inotify: "Inotify") -> None:
        from asyncinotify import Mask  # noqa: PLC0415

        try:
            while self._watches:
                event = await inotify.get()
                if event.mask & Mask.Q_OVERFLOW:
                    for folder in list(self._watches):
                        self._say(folder)
                elif event.watch is not None and self._watches.get(event.watch.path) is event.watch:
                    self._say(event.watch.path)
                    if event.mask & (Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.IGNORED):
                        self._forget(event.watch.path)
        finally:
            inotify.close()
            self._inotify = self._hearing = None  # a task holds its loop, which could not be collected
            self._watches.clear()
            self._readers.clear()

    def _say(self, folder: Path) -> None:
        readers = self._readers.get(folder)
        for changed in readers or ():
            changed.set()
        if not readers:
            self._forget(folder)

    def _forget(self, folder: Path) -> None:
        """Its readers must ask again: a folder of this name that is made again is another."""
        self._readers.pop(folder, None)
        watch = self._watches.pop(folder, None)
        if watch is not None and self._inotify is not None:
            with contextlib.suppress(OSError):  # of a folder that is gone
                self._inotify.rm_watch(watch)


def of_this_loop() -> FolderChanges:
    loop = asyncio.get_running_loop()
    if loop not in _changes:
        _changes[loop] = FolderChanges()
    return _changes[loop]


READ_BYTES = 262_144
SHORTEST_PAUSE_SECONDS = 0.005
LONGEST_PAUSE_SECONDS = 0.02
"""Half of it is how late a first token is at most on average."""
GENTLE_PAUSE_SECONDS = 0.025
ASLEEP_PAUSE_SECONDS = 0.1
ASLEEP_SECONDS = 60.0
UNTOLD_SECONDS = 1.0
"""How often is looked at a folder whose changes are told: a container may write to it through a file system of its own,
of which this one's kernel hears nothing."""
SETTLED_SECONDS = 0.05
"""A file that has a successor is left when nobody has written to it for so long: a writer that found room in it may not
have written yet."""
SURE_SECONDS = 1.0
"""So long it is taken that a file which is not full has no successor."""
GRAIN_SECONDS = 1.0
"""Of the coarsest clock of a usual file system."""
_END = ".jsonl"


class DirectoryReader:
    """Follows a session's files by number, and begins again when they were deleted and begun again."""

    def __init__(self, folder: Path, full_bytes: int) -> None:
        """`full_bytes`: a file is left for the next one when it is so large."""
        self._folder, self._full_bytes = folder, full_bytes
        self._number, self._file = 0, ""
        self._offset = 0
        self._there = False
        """Whether the file was there as it was last looked at."""
        self._sure_until = 0.0
        self._listed: tuple[int, list[int]] = (0, [])
        """When the folder had changed as it was last listed, in ns, and what was in it."""
        self._listed_again_until = 0.0
        self._grew = time.monotonic()
        """When the file was last seen to grow, or was started. Not by its time, which is another clock's: of one that
        is ahead we would wait until ours has come there."""
        self._torn = b""
        """The beginning of a line whose rest is not written yet."""
        self._heard = time.monotonic()
        self._changed = asyncio.Event()
        self._settling = False
        """Whether the file that is read has a successor, and may still be written to."""

    async def read(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        until = time.monotonic() + seconds
        while True:
            told = self._is_told()
            self._changed.clear()
            try:
                lines = self._look()
            except OSError as error:
                raise StreamsUnavailable(f"the live stream in {self._folder} can't be read: {error}") from error
            now = time.monotonic()
            if lines:
                self._heard = now
                return lines
            if now >= until:
                return []
            shortest = GENTLE_PAUSE_SECONDS if gently else SHORTEST_PAUSE_SECONDS
            if not told:
                silence = now - self._heard
                if silence > ASLEEP_SECONDS:
                    pause = ASLEEP_PAUSE_SECONDS
                else:
                    pause = min(max(silence / 10, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
                await asyncio.sleep(min(max(pause, shortest), until - now))
                continue
            longest = min(SETTLED_SECONDS if self._settling else UNTOLD_SECONDS, until - now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(longest):
                    await self._changed.wait()
            await asyncio.sleep(now + shortest - time.monotonic())  # a burst of changes is one

    def _is_told(self) -> bool:
        """Whether the next change sets the event: one in the folder, or that it comes to be."""
        changes = of_this_loop()
        if changes.tell(self._folder, self._changed):
            changes.leave(self._folder.parent, self._changed)
            return True
        told = changes.tell(self._folder.parent, self._changed)
        return told and not self._folder.exists()

    def _look(self) -> list[bytes]:
        """What can be read now."""
        while True:
            data = self._read_on()
            if data:
                *lines, self._torn = (self._torn + data).split(b"\n")
                self._torn = self._torn[: LONGEST_LINE + 1]  # nobody reads a longer one
                if lines:
                    return lines
            elif self._goes_on() or not self._move_on():
                return []

    def _goes_on(self) -> bool:
        """Whether there is no next file yet. Most looks end here, so the folder is looked at now and then alone: those
        who write may belong to a release that leaves files sooner."""
        return self._there and self._offset < self._full_bytes and time.monotonic() < self._sure_until

    def _read_on(self) -> bytes:
        """Empty when there is nothing new; only looked at then, for that is what most looks come to."""
        if not self._number:
            return b""
        try:
            size = os.stat(self._file, follow_symlinks=False).st_size  # noqa: PTH116  a Path takes three times as long
            self._there = True
            if size <= self._offset:
                return b""
            descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._there = False
            return b""
        try:
            data = os.pread(descriptor, READ_BYTES, self._offset)
        finally:
            os.close(descriptor)
        self._offset += len(data)
        self._grew = time.monotonic()
        return data

    def _move_on(self) -> bool:
        """To the next file; False when there is none. All of them begun again count as next."""
        self._sure_until = time.monotonic() + SURE_SECONDS
        there = self._numbers()
        later = [number for number in there if number > self._number]
        self._settling = bool(later) and self._number in there and time.monotonic() - self._grew < SETTLED_SECONDS
        if self._settling:
            return False
        started_again = there and self._number not in there
        if not later and not started_again:
            return False
        self._number = min(later or there)
        self._file = str(file_of(self._folder, self._number))
        self._offset, self._torn, self._grew = 0, b"", time.monotonic()
        return True

    def _numbers(self) -> list[int]:
        """Listed again only when the folder has changed, or may have within the grain of its file system's clock: so
        long after a change was seen, for by whose clock its time is nobody knows."""
        try:
            changed = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        if changed != self._listed[0]:
            self._listed_again_until = time.monotonic() + GRAIN_SECONDS
        if time.monotonic() < self._listed_again_until:
            self._listed = (changed, numbers(self._folder))
        return self._listed[1]

    async def close(self) -> None:
        for folder in (self._folder, self._folder.parent):
            of_this_loop().leave(folder, self._changed)


def numbers(folder: Path) -> list[int]:
    """Of the files in a session's folder; none when it is not there."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    stems = (name.removesuffix(_END) for name in names if name.endswith(_END))
    return [int(stem) for stem in stems if stem.isdecimal() and stem.isascii() and len(stem) == 14]


def file_of(folder: Path, number: int) -> Path:
    return folder / f"{number:014d}{_END}"


FILE_BYTES = 1_000_000
FILES_KEPT = 4
"""Of one session."""
KEPT_SECONDS = 24 * 3600.0
"""A session that has written nothing for so long loses its stream."""
SWEEP_SECONDS = 600.0
ANSWER_SECONDS = 2.0
UNIT_NS = 100_000
"""Of a file's first number. In a whole millisecond a stream could be started, deleted and begun again, and nobody would
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
        try:
            # Without O_CREAT: another process may have dropped this file and gone on to a later one.
            descriptor = os.open(self._newest[key][1], os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        except (KeyError, FileNotFoundError):
            folder = self._folder(key)
            descriptor = self._open(key, folder, max(numbers(folder) or self._begin(folder)))
        if not self._written(descriptor, lines):
            self._written(self._open_next(key), lines)

    @staticmethod
    def _written(descriptor: int, lines: bytes) -> bool:
        """Append, and close the file; False for one that is full."""
        try:
            full = os.fstat(descriptor).st_size >= FILE_BYTES
            return not full and os.write(descriptor, lines) >= 0
        finally:
            os.close(descriptor)

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
                if not folder.is_dir() or folder.is_symlink():
                    continue
                # Its own time counts too: another writer may just be making it, and it has no file yet.
                paths = (folder, *(file_of(folder, number) for number in numbers(folder)))
                written = max(path.stat().st_mtime for path in paths)
                if written >= oldest:
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
