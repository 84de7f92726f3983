"""Heartbeats while an activity works, from the worker's own loop: no tool and no provider runs on it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from temporalio import activity

BEATS_PER_TIMEOUT = 5
LONGEST_PAUSE_SECONDS = 1.0
"""Cancellation arrives with a beat: a person who interrupts should not wait for a patient timeout's share."""


class Stalled(Exception):
    """This attempt could not beat in time: the server has given it up, so it stops itself before it does harm."""


@asynccontextmanager
async def beating(details: Callable[[], tuple[str, ...]] = tuple) -> AsyncIterator[None]:
    """Beat until the block is left, each time with these details. Cancels the block, and raises Stalled, when beats
    came too late."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    watch = _Watch(timeout.total_seconds(), details)
    beats = asyncio.create_task(watch.beat())
    try:
        yield
    except asyncio.CancelledError:
        if watch.late and not activity.is_cancelled():
            raise Stalled(f"no heartbeat left this worker for {watch.late:.1f} s") from None
        if last := details():
            activity.heartbeat(*last)  # the attempt after this one begins where this one was cut short
        raise
    finally:
        beats.cancel()


class _Watch:
    def __init__(self, timeout: float, details: Callable[[], tuple[str, ...]]) -> None:
        self._details = details
        self.late = 0.0
        self._last = asyncio.get_running_loop().time()
        self._timeout = timeout
        self._block = asyncio.current_task()

    async def beat(self) -> None:
        loop = asyncio.get_running_loop()
        pause = min(self._timeout / BEATS_PER_TIMEOUT, LONGEST_PAUSE_SECONDS)
        while True:
            # First the pause: a call that is done by then costs the server no heartbeat at all. After a stall there is
            # none left to make, so that the block is cancelled before it comes to do more.
            await asyncio.sleep(self._last + pause - loop.time())
            activity.heartbeat(*self._details())
            gap, self._last = loop.time() - self._last, loop.time()
            if gap > self._timeout and self._block is not None:
                self.late = gap
                self._block.cancel()
                return
