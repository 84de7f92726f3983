"""Holds a workspace to a size: what lies in it is counted before a call that may write and while it runs."""

import asyncio
import errno
import os
import stat
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longhaul.activities.tool import ToolError, ToolOutput

PAUSE_SECONDS = 1.0
PAUSES_PER_COUNT = 20
"""A folder whose count took a second is not counted again for twenty: that costs a twentieth of one core at most."""
LEAST_BYTES = 4_096
"""Each name counts as so much: so a count ends, however many empty files there are."""
REMEMBERED = 1_000


class Unmeasured(Exception):
    """A folder below can't be read, for whatever reason but that it is closed."""


@dataclass(frozen=True, slots=True)
class _Count:
    bytes: int
    good_until: float


class FolderSizes:
    """Those that this worker has counted."""

    def __init__(self) -> None:
        self._known: dict[Path, _Count] = {}

    async def held(self, root: Path, most_mb: int, runs: Coroutine[Any, Any, ToolOutput]) -> ToolOutput:
        """What the call came to. Raises ToolError where the folder holds more: nothing ran, or it was ended."""
        try:
            await self._refuse_more(root, most_mb, "Nothing ran")
        except ToolError:
            runs.close()
            raise
        running = asyncio.create_task(runs)
        try:
            while not running.done():
                await asyncio.wait([running], timeout=self._pause(root))
                if not running.done():
                    await self._refuse_more(root, most_mb, "The call was ended, and may have done part of its work")
            return running.result()
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])

    async def _refuse_more(self, root: Path, most_mb: int, what: str) -> None:
        try:
            size = await self._size(root, most_mb * 1_000_000)
        except Unmeasured as error:
            raise ToolError(f"{what}: how much the workspace holds can't be counted, for {error}") from None
        if size > most_mb * 1_000_000:
            raise ToolError(
                f"{what}: the workspace holds more than {most_mb} MB, which is all that its agent allows "
                "(workspace_mb). Calls that only read still run; a person has to remove files, or raise it"
            )

    async def _size(self, root: Path, most: int) -> int:
        known = self._known.get(root)
        if known is not None and time.monotonic() < known.good_until:
            return known.bytes
        begun = time.monotonic()
        size = await asyncio.to_thread(size_of, root, most)
        now = time.monotonic()
        self._known.pop(root, None)
        # What is too large is counted anew: a person may have made room.
        until = now + max((now - begun) * PAUSES_PER_COUNT, PAUSE_SECONDS) if size <= most else 0.0
        self._known[root] = _Count(size, until)
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return size

    def _pause(self, root: Path) -> float:
        known = self._known.get(root)
        return max(known.good_until - time.monotonic(), 0.0) + 0.01 if known is not None else PAUSE_SECONDS


def size_of(root: Path, most: int) -> int:
    """Bytes on the disk below a folder, links not followed; counted no further than above `most`.

    A closed folder of the worker's own user is opened for the moment of counting: else whoever closes one could hide
    files in it. One of somebody else that can't be read is left out, unless it can be written: nobody else fills it.
    Raises Unmeasured for all other folders that can't be read.
    """
    total = _Total(most)
    try:
        base = os.open(root, _FOLDER)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise Unmeasured(f"{str(root)[-200:]!r} can't be read ({error.strerror})") from None
    try:
        total.count(base)
    finally:
        os.close(base)
    return total.bytes


_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Or it is a link by now."""
LONGEST_PATH = 3_000
"""Characters below one open folder, of four bytes at most; the kernel takes 4,095 bytes. A deeper folder is opened by
itself, and what lies in it counts from there."""


class _Total:
    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = 0
        self._twice = set[tuple[int, int]]()
        """Files of several names that were counted."""

    def count(self, base: int) -> None:
        waiting = ["."]
        while waiting and self.bytes <= self._most:
            waiting += self._count_folder(waiting.pop(), base)

    def _count_folder(self, path: str, base: int) -> list[str]:
        """Returns the folders in it that are to be counted from the same base."""
        try:
            folder = os.open(path, _FOLDER, dir_fd=base)
        except PermissionError:
            self._count_closed(path, base)
            return []
        except OSError as error:
            if error.errno in _GONE:
                return []
            raise Unmeasured(f"{path[-200:]!r} can't be read ({error.strerror})") from None
        try:
            return self._names_in(folder, path)
        except PermissionError as error:  # it was closed just now
            raise Unmeasured(f"{path[-200:]!r} can't be read ({error.strerror})") from None
        finally:
            os.close(folder)

    def _names_in(self, folder: int, path: str) -> list[str]:
        found = list[str]()
        with os.scandir(folder) as entries:
            for entry in entries:
                self.bytes += _bytes_of(entry, self._twice)
                if not entry.is_dir(follow_symlinks=False):
                    continue
                below = f"{path}/{entry.name}"
                if len(os.fsencode(below)) <= LONGEST_PATH:
                    found.append(below)
                else:
                    self._count_deep(entry.name, folder)
        return found

    def _count_deep(self, name: str, folder: int) -> None:
        try:
            base = os.open(name, os.O_PATH | _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno in _GONE:
                return
            raise Unmeasured(f"{name[-200:]!r} can't be read ({error.strerror})") from None
        try:
            self.count(base)
        finally:
            os.close(base)

    def _count_closed(self, path: str, base: int) -> None:
        """Of its own user's, which is open meanwhile; one of somebody else is left out."""
        try:
            held = os.open(path, os.O_PATH | _FOLDER, dir_fd=base)
        except OSError:
            raise Unmeasured(f"{path[-200:]!r} can't be reached") from None
        try:
            status, name = os.fstat(held), Path(f"/proc/self/fd/{held}")
            if status.st_uid == os.geteuid():
                mode = stat.S_IMODE(status.st_mode)
                if mode & stat.S_IRWXU == stat.S_IRWXU:
                    raise Unmeasured(f"{path[-200:]!r} can't be read, although it is open")
                name.chmod(mode | stat.S_IRUSR | stat.S_IXUSR)
                try:
                    self.count(held)
                finally:
                    name.chmod(mode)
            elif os.access(name, os.W_OK):
                raise Unmeasured(f"{path[-200:]!r} is somebody else's, and can be written and not be read")
        except OSError as error:
            raise Unmeasured(f"{path[-200:]!r} can't be read ({error.strerror})") from None
        finally:
            os.close(held)


def _bytes_of(entry: os.DirEntry[str], twice: set[tuple[int, int]]) -> int:
    """`twice`: files of several names that were counted."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if status.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
        if (key := (status.st_dev, status.st_ino)) in twice:
            return LEAST_BYTES
        twice.add(key)
    return max(status.st_blocks * 512, LEAST_BYTES)
