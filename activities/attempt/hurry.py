"""Hurry: what a call still waits for when it has run ends soon after somebody wants the call to end, or its worker to
stop. It is not cancelled, for its call has run; and a worker that waited for it would be killed before it can tell so.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio import activity

HURRIED_SECONDS = 2.0
"""Less than a worker that stops has in the end (`starter.hosting.own_process.LAST_SECONDS`)."""


@asynccontextmanager
async def timeout_in_hurry(seconds: float) -> AsyncIterator[None]:
    """As `asyncio.timeout`; from when the activity is cancelled on, HURRIED_SECONDS at most."""
    loop = asyncio.get_running_loop()

    async def hear() -> None:
        await activity.wait_for_cancelled()
        limit.reschedule(min(until, loop.time() + HURRIED_SECONDS))

    until = loop.time() + seconds
    async with asyncio.timeout_at(until) as limit:
        hearing = asyncio.create_task(hear()) if activity.in_activity() else None
        try:
            yield
        finally:
            if hearing is not None:
                hearing.cancel()
