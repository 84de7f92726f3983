"""Code of the operator's may raise what is no `Exception`: `sys.exit()` in it, a library in Rust that panics, a
CancelledError of its own. Passed on, such an error ends the worker, or is tried again for hours without a word."""

import asyncio


def is_cancelled_here(error: BaseException) -> bool:
    """Whether whoever waits for the task at work has cancelled it; all else is a failure of the code that raised it."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
