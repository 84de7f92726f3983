"""A call that does not let itself be ended is left behind when its worker has no more time: then its attempt can still
say what is known of it, instead of being found out about by a heartbeat that stays away."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from longhaul.activities.attempt.worker_departure import is_shut_down

log = logging.getLogger(__name__)

DEAF_SECONDS = 4.0
"""From its cancellation on. What is told behind it needs the rest of what a worker has in the end
(`starter.hosting.own_process.LAST_SECONDS`)."""

Made = TypeVar("Made")


class LeftBehind(Exception):
    """It may go on until its worker's process ends, in some seconds."""


class _ProcessExit(Exception):
    """The work wants to end the process."""

    def __init__(self, by: SystemExit | KeyboardInterrupt) -> None:
        super().__init__(repr(by))
        self.by = by


async def left_behind_when_deaf(work: Coroutine[Any, Any, Made]) -> Made:
    """What the work gives. Who cancels this cancels the work, and waits for it. Raises LeftBehind where a worker that
    shuts down would wait for longer than DEAF_SECONDS."""
    task = asyncio.create_task(_in_the_loop(work))
    while True:
        try:
            return await asyncio.shield(task)
        except _ProcessExit as ended:
            raise ended.by from None
        except asyncio.CancelledError:
            if task.done():
                return task.result()
        task.cancel()
        if is_shut_down() and not (await asyncio.wait({task}, timeout=DEAF_SECONDS))[0]:
            _left.add(task)
            task.add_done_callback(_ended)
            raise LeftBehind


async def _in_the_loop(work: Coroutine[Any, Any, Made]) -> Made:
    """Out of a task these two end its event loop, and with that the worker."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise _ProcessExit(error) from error


_left = set["asyncio.Task[Any]"]()
"""The event loop itself does not hold its tasks."""


def _ended(task: "asyncio.Task[Any]") -> None:
    _left.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("a call that was left behind has failed: %r", error)
