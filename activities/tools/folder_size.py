"""Holds a workspace to a size: what lies in it is counted before a call that may write and while it runs."""

import asyncio
import os
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
    """A folder below can't be read, so nobody knows what lies in it."""


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
    """Bytes on the disk below a folder, links not followed; counted no further than above `most`. Raises Unmeasured."""
    size, twice, waiting = 0, set[tuple[int, int]](), [str(root)]
    while waiting and size <= most:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    size += _bytes_of(entry, twice)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it is gone
        except OSError as error:
            raise Unmeasured(f"{folder[-200:]!r} can't be read ({error.strerror})") from None
    return size


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
