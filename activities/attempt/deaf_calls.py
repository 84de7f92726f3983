"""A call that does not let itself be ended is left behind: when its worker has no more time, so that its attempt can
still say what is known of it, instead of being found out about by a heartbeat that stays away; and when nobody wants it
any more, or its own time is over, so that nobody waits for it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from temporalio import activity

from longhaul.activities.attempt.worker_departure import is_shut_down

log = logging.getLogger(__name__)

DEAF_SECONDS = 4.0
"""From its cancellation on. What is told behind it needs the rest of what a worker has in the end
(`starter.hosting.own_process.LAST_SECONDS`)."""
UNWANTED_SECONDS = 10.0
"""The same where a worker has time: a call may have to tidy up behind it."""

Made = TypeVar("Made")


class LeftBehind(Exception):
    """It may go on until its worker's process ends: in some seconds, where that is shut down."""


class _Raised(Exception):
    """What the work has raised, of whatever kind."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


async def left_behind_when_deaf(
    work: Coroutine[Any, Any, Made], is_over: Callable[[], bool] = activity.is_cancelled
) -> Made:
    """What the work gives. Who cancels this cancels the work, and waits for it. Raises LeftBehind where a worker that
    shuts down would wait for longer than DEAF_SECONDS, or whoever `is_over` speaks for than UNWANTED_SECONDS."""
    task = asyncio.create_task(_in_the_loop(work))
    while True:
        try:
            return await asyncio.shield(task)
        except _Raised as raised:
            raise raised.error from None
        except asyncio.CancelledError:
            if task.cancelled():
                raise
        if task.done():
            continue
        task.cancel()
        seconds = DEAF_SECONDS if is_shut_down() else UNWANTED_SECONDS
        if is_over() and not (await asyncio.wait({task}, timeout=seconds))[0]:
            _left.add(task)
            task.add_done_callback(_ended)
            raise LeftBehind


async def _in_the_loop(work: Coroutine[Any, Any, Made]) -> Made:
    """Out of a task SystemExit and KeyboardInterrupt end its event loop, and with that the worker; GeneratorExit ends
    whoever waits for it."""
    try:
        return await work
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raise _Raised(error) from error


_left = set["asyncio.Task[Any]"]()
"""The event loop itself does not hold its tasks."""


def _ended(task: "asyncio.Task[Any]") -> None:
    _left.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("a call that was left behind has failed: %r", error)
