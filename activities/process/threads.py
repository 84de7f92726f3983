"""Blocking work beside the loop, which is over when the call is over."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(work: Callable[[threading.Event], Result]) -> Result:
    """Run `work` in a thread. Its argument is set when the call is cancelled: work that takes long looks at it.

    A cancelled call leaves only when the thread has ended, so that nothing is written after a call was reported dead.
    """
    stop = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # Looked at, so that the loop does not complain of an error that nobody retrieved.
        raise
