"""The durable timer of a session's deadlines: one at a time, for the earliest thing that is due, and none when nothing
ever will be.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import workflow

from agent import entries as e
from agent.record import Record
from agent.waiting import next_due, reached

SHORTEST_SECONDS = 0.001
"""The SDK makes no timer of a shorter time, and one that is overdue has to fire."""

Beside = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class DeadlineClock:
    """Set it at each pause of the session. It writes an entry when something is due, whatever else happens then."""

    def __init__(self, record: Record, write: Callable[[e.AnyEntry], None], beside: Beside) -> None:
        self._record = record
        self._write = write
        self._beside = beside
        self._running: asyncio.Task[None] | None = None
        self._aim: int | None = None
        """Milliseconds since 1970."""

    def set(self) -> None:
        """Start, move or stop the timer. It is left alone while it is right, for each one costs two events."""
        due = next_due(self._record)
        if due == self._aim:
            return
        if self._running is not None:
            self._running.cancel()
        self._aim = due
        self._running = self._beside(self._fire_at(due)) if due is not None else None

    async def _fire_at(self, due: int) -> None:
        left = due / 1000 - workflow.time()
        await workflow.sleep(max(left, SHORTEST_SECONDS), summary="deadline of a call that waits")
        self._running, self._aim = None, None
        # Decided or answered in the meantime: then nothing is due any more, and what came first has won.
        if due_now := reached(self._record, workflow.time_ns() // 1_000_000):
            self._write(e.DeadlineReached(due=due_now))
        else:
            self.set()
