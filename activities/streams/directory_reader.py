"""Reading one session's folder of a local directory: by looking, often while something happens and seldom while nothing
does."""

import asyncio
import os
import time
from pathlib import Path

from activities.streams.items import LONGEST_LINE
from activities.streams.streams import StreamsUnavailable

READ_BYTES = 262_144
SHORTEST_PAUSE_SECONDS = 0.002
LONGEST_PAUSE_SECONDS = 0.02
"""Half of it is how late a first token is at most on average."""
ASLEEP_PAUSE_SECONDS = 0.1
ASLEEP_SECONDS = 60.0
SETTLED_SECONDS = 0.05
"""A file that has a successor is left when nobody has written to it for so long: a writer that found room in it may not
have written yet."""
_END = ".jsonl"


class DirectoryReader:
    """Follows a session's files by number, and begins anew when they were deleted and begun anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._offset = 0
        self._torn = b""
        """The beginning of a line whose rest is not written yet."""
        self._heard = time.monotonic()

    async def read(self, seconds: float) -> list[bytes]:
        until = time.monotonic() + seconds
        while True:
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
            await asyncio.sleep(min(self._pause(now - self._heard), until - now))

    @staticmethod
    def _pause(silence: float) -> float:
        if silence > ASLEEP_SECONDS:
            return ASLEEP_PAUSE_SECONDS
        return min(max(silence / 10, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

    def _look(self) -> list[bytes]:
        """What can be read now."""
        while True:
            data = self._read_on()
            if data:
                *lines, self._torn = (self._torn + data).split(b"\n")
                self._torn = self._torn[: LONGEST_LINE + 1]  # nobody reads a longer one
                if lines:
                    return lines
            elif not self._move_on():
                return []

    def _read_on(self) -> bytes:
        if not self._number:
            return b""
        try:
            descriptor = os.open(file_of(self._folder, self._number), os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return b""
        try:
            data = os.pread(descriptor, READ_BYTES, self._offset)
        finally:
            os.close(descriptor)
        self._offset += len(data)
        return data

    def _move_on(self) -> bool:
        """To the next file; False when there is none. All of them begun anew count as next."""
        there = numbers(self._folder)
        later = [number for number in there if number > self._number]
        if later and self._number in there and self._age() < SETTLED_SECONDS:
            return False
        begun_anew = there and self._number not in there
        if not later and not begun_anew:
            return False
        self._number = min(later or there)
        self._offset, self._torn = 0, b""
        return True

    def _age(self) -> float:
        """Seconds since the file that is being read was written to."""
        try:
            return time.time() - file_of(self._folder, self._number).stat().st_mtime
        except FileNotFoundError:
            return SETTLED_SECONDS

    async def close(self) -> None:
        """Nothing is held open."""


def numbers(folder: Path) -> list[int]:
    """Of the files in a session's folder; none when it is not there."""
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    stems = (name.removesuffix(_END) for name in names if name.endswith(_END))
    return [int(stem) for stem in stems if stem.isdecimal() and stem.isascii() and len(stem) == 14]


def file_of(folder: Path, number: int) -> Path:
    return folder / f"{number:014d}{_END}"
