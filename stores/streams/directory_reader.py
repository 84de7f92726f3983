"""`DirectoryReader` reads one session's folder of a local directory: it looks when the system tells of a change, and
now and then for what nobody told. Where nobody tells, it looks often while something happens, and seldom while nothing
does."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

from longhaul.stores.streams import folder_changes
from longhaul.stores.streams.items import LONGEST_LINE
from longhaul.stores.streams.streams import StreamsUnavailable

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
    """Follows a session's files by number, and begins anew when they were deleted and begun anew."""

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
        self._listed_anew_until = 0.0
        self._grew = time.monotonic()
        """When the file was last seen to grow, or was begun. Not by its time, which is another clock's: of one that is
        ahead we would wait until ours has come there."""
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
                await asyncio.sleep(min(max(self._pause(now - self._heard), shortest), until - now))
                continue
            longest = min(SETTLED_SECONDS if self._settling else UNTOLD_SECONDS, until - now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(longest):
                    await self._changed.wait()
            await asyncio.sleep(now + shortest - time.monotonic())  # a burst of changes is one

    @staticmethod
    def _pause(silence: float) -> float:
        if silence > ASLEEP_SECONDS:
            return ASLEEP_PAUSE_SECONDS
        return min(max(silence / 10, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

    def _is_told(self) -> bool:
        """Whether the next change sets the event: one in the folder, or that it comes to be."""
        changes = folder_changes.of_this_loop()
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
        """To the next file; False when there is none. All of them begun anew count as next."""
        self._sure_until = time.monotonic() + SURE_SECONDS
        there = self._numbers()
        later = [number for number in there if number > self._number]
        self._settling = bool(later) and self._number in there and time.monotonic() - self._grew < SETTLED_SECONDS
        if self._settling:
            return False
        begun_anew = there and self._number not in there
        if not later and not begun_anew:
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
            self._listed_anew_until = time.monotonic() + GRAIN_SECONDS
        if time.monotonic() < self._listed_anew_until:
            self._listed = (changed, numbers(self._folder))
        return self._listed[1]

    async def close(self) -> None:
        for folder in (self._folder, self._folder.parent):
            folder_changes.of_this_loop().leave(folder, self._changed)


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
