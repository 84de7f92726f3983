"""Heartbeats while an activity works, from the worker's own loop: no tool and no provider runs on it.

Each is a request and a write on the server, and is billed: they come as seldom as a death must be noticed. That an
activity was cancelled is learnt with a beat, so whoever hears of a cancellation pokes: then a beat comes at once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from temporalio import activity

BEATS_PER_TIMEOUT = 2.5
"""So one may be lost."""
LONG_PAUSE_SECONDS = 15.0
"""Where as much of the timeout is left after it. A model call of ten seconds costs no beat then."""
NOTED_PAUSE_SECONDS = 1.0
"""At most, for a call that has new details to tell: they are lost with its worker as far as no beat has taken them."""
AFTER_A_POKE_SECONDS = (0.02, 0.12, 0.4, 1.2)
"""When to beat: the word of a cancellation may come before the server has written it down."""


class Stalled(Exception):
    """This attempt could not beat in time: the server has given it up, so it stops itself before it does harm."""


@asynccontextmanager
async def beating(
    details: Callable[[], tuple[str, ...]] = tuple, presses: Callable[[], object] | None = None
) -> AsyncIterator[None]:
    """Beat until the block is left, each time with these details, and at once when what `presses` gives has changed:
    the details, if it is not given. Cancels the block, and raises Stalled, when beats came too late."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    watch = _Watch(timeout.total_seconds(), details, presses or details)
    beats = asyncio.create_task(watch.beat())
    _watching.add(watch)
    for begun in _listening:
        begun.set()
    try:
        yield
    except asyncio.CancelledError:
        if watch.late and not activity.is_cancelled():
            raise Stalled(f"no heartbeat left this worker for {watch.late:.1f} s") from None
        _last_beat(details)
        raise
    except Exception:
        _last_beat(details)
        raise
    finally:
        _watching.remove(watch)
        beats.cancel()


def _last_beat(details: Callable[[], tuple[str, ...]]) -> None:
    if last := details():
        activity.heartbeat(*last)  # the attempt after this one begins where this one was cut short


def pause_seconds(timeout: float) -> float:
    """Between beats of a call that counts as lost after so many seconds without one."""
    return max(timeout / BEATS_PER_TIMEOUT, min(timeout - LONG_PAUSE_SECONDS, LONG_PAUSE_SECONDS))


def poke(workflow_id: str) -> None:
    """Let what this worker runs of the workflow beat now, and a few times soon: it may have been cancelled. On the
    worker's loop."""
    loop = asyncio.get_running_loop()
    for watch in _watching:
        if watch.workflow_id == workflow_id:
            for seconds in AFTER_A_POKE_SECONDS:
                loop.call_later(seconds, watch.poked.set)


def calls() -> int:
    """How many activities that beat run on this worker."""
    return len(_watching)


async def some_call() -> None:
    """Return when an activity runs on this worker that beats."""
    begun = asyncio.Event()
    _listening.add(begun)
    try:
        while not _watching:
            begun.clear()
            await begun.wait()
    finally:
        _listening.discard(begun)


class _Watch:
    def __init__(self, timeout: float, details: Callable[[], tuple[str, ...]], presses: Callable[[], object]) -> None:
        self._details, self._presses = details, presses
        self._told: object = presses() if not details() else None
        self.workflow_id = activity.info().workflow_id
        self.poked = asyncio.Event()
        self.late = 0.0
        self._last = asyncio.get_running_loop().time()
        self._timeout = timeout
        self._block = asyncio.current_task()

    async def beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            # First the pause: a call that is done by then costs the server no heartbeat at all. After a stall there is
            # none left to make, so that the block is cancelled before it comes to do more.
            await self._until_due()
            self.poked.clear()
            self._told = self._presses()
            activity.heartbeat(*self._details())
            gap, self._last = loop.time() - self._last, loop.time()
            if gap > self._timeout and self._block is not None:
                self.late = gap
                self._block.cancel()
                return

    async def _until_due(self) -> None:
        """The pause is over, somebody pokes, or there are new details."""
        loop = asyncio.get_running_loop()
        pause = pause_seconds(self._timeout)
        due = self._last + pause
        between = pause if self._details is tuple else NOTED_PAUSE_SECONDS
        while not self.poked.is_set() and (now := loop.time()) < due:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(due, now + between)):
                    await self.poked.wait()
            if self._presses() != self._told:
                return


_watching = set[_Watch]()
"""Of the calls that run on this worker."""
_listening = set[asyncio.Event]()
"""Of those who wait for a call."""
