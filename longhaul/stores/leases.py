"""Leases of workers: each notes the calls that it runs where other workers look. A worker that finds that it died reads
them there.

`DirectoryLeases` is for processes that share a data directory and a kernel. A worker holds the lock of its file as long
as its process lives, and the kernel lets go of it with the process, so a death is certain and is seen at the next look.

`stores.redis_leases` is for workers on different hosts.

What is noted may be lost at any time: the server notices a death by the missing heartbeats, only later.
"""

import base64
import contextlib
import fcntl
import heapq
import json
import logging
import os
import platform
import secrets
import stat
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from longhaul.stores.blocking_calls import Threads
from longhaul.stores.names import safe_name

log = logging.getLogger(__name__)

FOLDER = "leases"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SLOT_BYTES = 2048
"""A divisor of the size of a page: a kill never leaves half of a note."""
MOST_SLOTS = 2_000
"""As many calls are noted at once."""
ANSWER_SECONDS = 2.0


@dataclass(frozen=True)
class LeasedCall:
    """One attempt of an activity, as the server knows it."""

    token: bytes
    """Its task token: names the attempt, so a later attempt is never meant."""
    runs_once: bool
    """Whether the call ends with this attempt, whatever becomes of it."""


Fail = Callable[[list[LeasedCall]], Awaitable[None]]
"""Tells the server that these attempts are lost."""


class LeasesUnavailable(Exception):
    """What workers have noted can't be read just now; the sentence says why."""


class Leases(Protocol):
    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        ...

    def hold(self, call: LeasedCall) -> None:
        """Note a call that begins here. Returns at once, and never raises."""
        ...

    def release(self, call: LeasedCall) -> None:
        """The call has ended."""
        ...

    async def look(self, fail: Fail) -> bool:
        """Look for workers that died, have their calls failed, and forget them. False: this worker itself was taken as
        dead by another one. Raises LeasesUnavailable; the next look may succeed."""
        ...

    async def close(self) -> None: ...


def _kernel() -> str:
    """Of another host that shares the directory a lock may not be seen here: its workers would all look dead."""
    try:
        return safe_name(BOOT_ID.read_text(encoding="ascii").strip())
    except OSError:
        return safe_name(platform.node())


def line_of(call: LeasedCall) -> bytes:
    told = {"token": base64.b64encode(call.token).decode("ascii"), "once": call.runs_once}
    return json.dumps(told).encode("ascii")


def call_in(line: bytes) -> LeasedCall | None:
    """None: no call, or nothing that a worker writes."""
    try:
        told = json.loads(line)
        return LeasedCall(base64.b64decode(told["token"], validate=True), bool(told["once"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class DirectoryLeases:
    """A file for each worker, with a slot for each of its running calls."""

    pause = 0.5

    def __init__(self, data_dir: Path, key: str) -> None:
        """`key`: of the task queue, whose workers look after each other. The folder is made with the first call."""
        self._folder = data_dir.absolute() / FOLDER / _kernel() / safe_name(key)
        self._name = ""
        self._file: int | None = None
        self._slots = dict[LeasedCall, int]()
        self._free = list(range(MOST_SLOTS))
        self._threads = Threads(1)

    def hold(self, call: LeasedCall) -> None:
        # Not in a thread: the call would begin before it is noted. It is one write to the page cache.
        if not self._name:
            self._open()
        line = line_of(call)
        if self._file is None or not self._free or len(line) >= SLOT_BYTES:
            return
        slot = heapq.heappop(self._free)
        self._slots[call] = slot
        self._write(slot, line + b"\n")

    def release(self, call: LeasedCall) -> None:
        slot = self._slots.pop(call, None)
        if slot is not None:
            self._write(slot, b"\n")
            heapq.heappush(self._free, slot)

    def _write(self, slot: int, line: bytes) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk: the heartbeats are left
                os.pwrite(self._file, line, slot * SLOT_BYTES)

    def _open(self) -> None:
        """Locked before it has its name: another worker must not find it without a lock."""
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}"
        temporary = self._folder / f".{self._name}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                temporary.rename(self._folder / self._name)
            except OSError:
                os.close(file)
                raise
        except OSError as error:
            log.warning("a death of this worker is noticed by its heartbeats alone: %s", error)
        else:
            self._file = file

    async def look(self, fail: Fail) -> bool:
        try:
            async with AsyncExitStack() as opened:
                found = await self._threads.run(self._unlocked, ANSWER_SECONDS)
                for file, _ in found:
                    opened.callback(os.close, file)
                for file, path in found:
                    await fail(_noted(file))
                    path.unlink(missing_ok=True)
        except (OSError, TimeoutError) as error:
            raise LeasesUnavailable(f"the leases in {self._folder} can't be read: {error}") from error
        return True

    def _unlocked(self) -> list[tuple[int, Path]]:
        """The files of workers that are gone, opened and locked: no other worker sees to them meanwhile."""
        found = list[tuple[int, Path]]()
        try:
            names = [name for name in os.listdir(self._folder) if not name.startswith(".") and name != self._name]  # noqa: PTH208  a Path for each would be made twice a second
        except (FileNotFoundError, NotADirectoryError):
            return found
        for name in names:
            path = self._folder / name
            try:
                file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:  # gone, or none of ours
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # its worker lives, or another one sees to it
                os.close(file)
                continue
            status = os.fstat(file)
            if stat.S_ISREG(status.st_mode) and status.st_nlink:
                found.append((file, path))
            else:
                os.close(file)
        return found

    async def close(self) -> None:
        """The worker's calls have ended."""
        if self._file is not None:
            (self._folder / self._name).unlink(missing_ok=True)
            os.close(self._file)
            self._file = None


def _noted(file: int) -> list[LeasedCall]:
    noted = os.pread(file, MOST_SLOTS * SLOT_BYTES, 0)
    slots = (noted[start : start + SLOT_BYTES] for start in range(0, len(noted), SLOT_BYTES))
    found = (call_in(slot.partition(b"\n")[0]) for slot in slots)
    return [call for call in found if call is not None]
