"""Heartbeats while an activity works, from the worker's own loop: no tool and no provider runs on it.

Each is a request and a write on the server, and is billed: they come as seldom as a death must be noticed. That an
activity was cancelled is learnt with a beat, so whoever hears of a cancellation pokes: then a beat comes at once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context

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
        watch.end()


def _last_beat(details: Callable[[], tuple[str, ...]]) -> None:
    if last := details():
        activity.heartbeat(*last)  # the attempt after this one begins where this one was cut short


def pause_seconds(timeout: float) -> float:
    """Between beats of a call that counts as lost after so many seconds without one."""
    return max(timeout / BEATS_PER_TIMEOUT, min(timeout - LONG_PAUSE_SECONDS, LONG_PAUSE_SECONDS))


def poke(workflow_id: str) -> None:
    """Let what this worker runs of the workflow beat now, and a few times soon: it may have been cancelled. On the
    worker's loop."""
    for watch in _watching:
        if watch.workflow_id == workflow_id:
            for seconds in AFTER_A_POKE_SECONDS:
                watch.poke_within(seconds)


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
    """Timers, and no task of its own: most calls are done before their first beat is due."""

    def __init__(self, timeout: float, details: Callable[[], tuple[str, ...]], presses: Callable[[], object]) -> None:
        self._details, self._presses = details, presses
        self._told: object = presses() if not details() else None
        self.workflow_id = activity.info().workflow_id
        self.late = 0.0
        self._timeout, self._pause = timeout, pause_seconds(timeout)
        self._between = self._pause if details is tuple else NOTED_PAUSE_SECONDS
        self._block = asyncio.current_task()
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._armed()

    def poke_within(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._poked, context=self._context)

    def end(self) -> None:
        self._timer.cancel()
        self._block = None

    def _armed(self) -> asyncio.TimerHandle:
        due = min(self._last + self._pause, self._loop.time() + self._between)
        return self._loop.call_at(due, self._look, context=self._context)

    def _look(self) -> None:
        """Beat when the pause is over, or there are new details."""
        if self._loop.time() >= self._last + self._pause or self._presses() != self._told:
            self._beat()
        else:
            self._timer = self._armed()

    def _poked(self) -> None:
        if self._block is not None:
            self._timer.cancel()
            self._beat()

    def _beat(self) -> None:
        # The first beat comes after the first pause: a call that is done by then costs the server no heartbeat at all.
        # After a stall there is no pause left to make, so that the block is cancelled before it comes to do more.
        self._told = self._presses()
        activity.heartbeat(*self._details())
        gap, self._last = self._loop.time() - self._last, self._loop.time()
        if gap > self._timeout and self._block is not None:
            self.late = gap
            block, self._block = self._block, None
            block.cancel()
            return
        self._timer = self._armed()


_watching = set[_Watch]()
"""Of the calls that run on this worker."""
_listening = set[asyncio.Event]()
"""Of those who wait for a call."""
