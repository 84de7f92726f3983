"""Heartbeats while an activity works, from the worker's own loop: no tool and no provider runs on it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from temporalio import activity

BEATS_PER_TIMEOUT = 5
SHORTEST_PAUSE_SECONDS = 0.2
"""Cancellation arrives with a beat: who interrupts waits for the next one."""
LONGEST_PAUSE_SECONDS = 1.0
BEATS_PER_SECOND = 50
"""Of one worker, about: each is a write in the server's database. With more calls at once each beats less often."""


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
    _watching.add(watch)
    try:
        yield
    except asyncio.CancelledError:
        if watch.late and not activity.is_cancelled():
            raise Stalled(f"no heartbeat left this worker for {watch.late:.1f} s") from None
        if last := details():
            activity.heartbeat(*last)  # the attempt after this one begins where this one was cut short
        raise
    finally:
        _watching.remove(watch)
        beats.cancel()


def pause_between(timeout_seconds: float, calls: int) -> float:
    """Seconds between the beats of one call, of so many that run on this worker."""
    wanted = max(SHORTEST_PAUSE_SECONDS, calls / BEATS_PER_SECOND)
    return min(wanted, LONGEST_PAUSE_SECONDS, timeout_seconds / BEATS_PER_TIMEOUT)


class _Watch:
    def __init__(self, timeout: float, details: Callable[[], tuple[str, ...]]) -> None:
        self._details = details
        self.late = 0.0
        self._last = asyncio.get_running_loop().time()
        self._timeout = timeout
        self._block = asyncio.current_task()

    async def beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            # First the pause: a call that is done by then costs the server no heartbeat at all. After a stall there is
            # none left to make, so that the block is cancelled before it comes to do more.
            await asyncio.sleep(self._last + pause_between(self._timeout, len(_watching)) - loop.time())
            activity.heartbeat(*self._details())
            gap, self._last = loop.time() - self._last, loop.time()
            if gap > self._timeout and self._block is not None:
                self.late = gap
                self._block.cancel()
                return


_watching = set[_Watch]()
"""Of the calls that run on this worker."""
