"""Work that another worker can do as well is dropped when this one shuts down, instead of holding it up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError

from longhaul.agent.letters.bodies import LEAVING


@asynccontextmanager
async def while_polling() -> AsyncIterator[None]:
    """Cancel the block when the worker stops polling: a query to its own session might find nobody who answers it."""
    block = asyncio.current_task()
    leaving = asyncio.create_task(activity.wait_for_worker_shutdown())
    if block is not None:
        leaving.add_done_callback(lambda done: None if done.cancelled() else block.cancel())
    try:
        yield
    except asyncio.CancelledError:
        if leaving.done() and not activity.is_cancelled():
            raise ApplicationError("its worker is being shut down", type=LEAVING) from None
        raise
    finally:
        leaving.cancel()
