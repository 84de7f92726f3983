"""Publishes what activities put into the live streams: given away at once, written in batches, and never waited for.

An activity hands over a piece and goes on. Pieces of one session are joined while a batch of it is being written, so a
slow store gets few and large ones. What does not fit into the buffer, or comes while the store is out of reach, is
dropped, and readers are told: no session depends on it.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

from longhaul.stores.streams.buffer import Batches, WaitingPieces, WrittenAttempt
from longhaul.stores.streams.items import SETTLED
from longhaul.stores.streams.outlet import Mask, Outlet, Unmasked
from longhaul.stores.streams.streams import Streams, StreamsUnavailable

log = logging.getLogger(__name__)

FIRST_SECONDS = 0.001
"""How long the first piece waits for others: an answer that comes all at once is one write."""
BETWEEN_BATCHES_SECONDS = 0.004
"""What comes within this time after a batch goes out together."""
MARKS_SECONDS = 0.2
"""How long marks, and the arguments of calls, wait for what goes with them: a step that says nothing to a person costs
no write of its own, and who watches sees what is done within a glance. Arguments that take longer come to their end at
once."""
SILENT_SECONDS = 1.0
"""Nothing is written for so long to a store that has just failed."""
WRITE_SECONDS = 2.0
CLOSE_SECONDS = 1.0


class Publisher:
    """One per worker, for the event loop in which it is first used; an outlet may be written to from any thread."""

    def __init__(self, streams: Streams, mask: Callable[[], Mask] = Unmasked) -> None:
        """`mask` makes what each block's text passes through before it leaves the worker."""
        self._streams = streams
        self._mask = mask
        self._waiting: dict[str, Batches] = {}
        """By key; one is there as long as its session has something to write."""
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        """Of those that are not being written."""
        self._silent_until = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def open(self, key: str, call: str, *, turn: int, attempt: int, name: str = "") -> Outlet:
        """Begin an attempt at a call; its pieces go through what is returned."""
        self._bind()
        return Outlet(lambda new: self._put(key, new), self._mask, WrittenAttempt(call, turn, attempt), name)

    def wake(self, key: str, *, settled: bool = False, begins: str = "") -> None:
        """Tell readers that the session has done something; `settled`, that a reply has ended or waits; `begins`, which
        reply is begun."""
        self._bind()
        self._put(key, WaitingPieces("wake", name=SETTLED if settled or begins else "", text=begins))

    async def close(self) -> None:
        """Write what is waiting, for a second at most; the streams themselves stay open."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._waiting:
                    for key in list(self._later):
                        self._begin(key)
                    await asyncio.wait(list(self._writing.values()))
        for task in self._writing.values():
            task.cancel()

    def _bind(self) -> None:
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def _put(self, key: str, new: WaitingPieces) -> None:
        if threading.get_ident() == self._thread:
            self._put_here(key, new)
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put_here, key, new)

    def _put_here(self, key: str, new: WaitingPieces) -> None:
        batches = self._waiting.setdefault(key, Batches())
        batches.put(new)
        if key in self._writing:
            return
        timer = self._later.get(key)
        if timer is None:
            self._begin_within(FIRST_SECONDS if batches.urgent else MARKS_SECONDS, key)
        elif batches.urgent and timer.when() > asyncio.get_running_loop().time() + FIRST_SECONDS:
            timer.cancel()
            self._begin_within(FIRST_SECONDS, key)

    def _begin_within(self, seconds: float, key: str) -> None:
        self._later[key] = asyncio.get_running_loop().call_later(seconds, self._begin, key)

    def _begin(self, key: str) -> None:
        if (timer := self._later.pop(key, None)) is not None:
            timer.cancel()
        self._writing[key] = asyncio.get_running_loop().create_task(self._write_all(key, self._waiting[key]))

    async def _write_all(self, key: str, batches: Batches) -> None:
        """What is waiting now, and what comes meanwhile and can't wait."""
        while lines := batches.take():
            await self._write(key, lines)
            await asyncio.sleep(BETWEEN_BATCHES_SECONDS)
            if not batches.urgent:
                break
        del self._writing[key]
        if batches:
            self._begin_within(MARKS_SECONDS, key)
        else:
            del self._waiting[key]

    async def _write(self, key: str, lines: bytes) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._silent_until:
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._streams.append(key, lines)
        except Exception as error:  # noqa: BLE001  a store may be anybody's; whatever it does, the session goes on
            self._silent_until = loop.time() + SILENT_SECONDS
            why = error if isinstance(error, StreamsUnavailable) else repr(error)
            if isinstance(error, TimeoutError):
                why = f"their store did not answer within {WRITE_SECONDS:g} s"
            log.warning("live pieces are lost: %s", why)
