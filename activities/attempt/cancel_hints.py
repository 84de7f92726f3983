"""Word between workers that calls of a session were cancelled: who runs them asks the server at once.

Without it they learn of it with their next heartbeat. The word may get lost, and nothing is done on it but to ask.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from longhaul.activities.attempt import heartbeat
from longhaul.stores.streams.streams import Streams, StreamsUnavailable, key_of

AGAIN_SECONDS = 5.0
"""Before an unreachable store is tried again."""
READ_SECONDS = 5.0
BRIEF_SECONDS = 0.05
"""Before the store is looked at for calls that have begun: most calls of tools are over by then. No word is lost by it,
for a reader begins with the first one that is there."""

log = logging.getLogger(__name__)


class Hints:
    """Of the workers of one task queue, which share a store of live streams."""

    def __init__(self, streams: Streams, namespace: str, task_queue: str) -> None:
        self._streams = streams
        self._key = key_of(namespace, f"hints/{task_queue}")
        """No session's: theirs begin with `longhaul/`."""
        self._loop = asyncio.get_running_loop()
        self._telling = set[asyncio.Task[None]]()

    def tell(self, workflow_id: str) -> None:
        """That a workflow cancels activities. From the thread in which it runs; returns at once."""
        self._loop.call_soon_threadsafe(self._tell, workflow_id)

    def _tell(self, workflow_id: str) -> None:
        heartbeat.poke(workflow_id)
        task = self._loop.create_task(self._append(workflow_id))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _append(self, workflow_id: str) -> None:
        try:
            await self._streams.append(self._key, workflow_id.encode("utf-8", "replace") + b"\n")
        except StreamsUnavailable as error:
            log.info("other workers hear of an interrupt with their next heartbeat: %s", error)

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Listen while the block runs, and look at the store only while a call runs here."""
        hearing = asyncio.create_task(self._hear())
        try:
            yield
        finally:
            hearing.cancel()
            await asyncio.wait((hearing, *self._telling))

    async def _hear(self) -> None:
        """Until it is cancelled. Whatever befalls the store: who gave up would hear of no interrupt before its next
        heartbeat as long as the worker lives."""
        while True:
            await heartbeat.some_call()
            await asyncio.sleep(BRIEF_SECONDS)
            try:
                await self._hear_while_a_call_runs()
            except StreamsUnavailable:
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception:
                log.exception("the store that tells of interrupts could not be read; it is tried again")
                await asyncio.sleep(AGAIN_SECONDS)

    async def _hear_while_a_call_runs(self) -> None:
        reader = self._streams.reader(self._key)
        try:
            while heartbeat.calls():
                for line in await reader.read(READ_SECONDS, gently=True):
                    heartbeat.poke(line.decode("utf-8", "replace"))
        finally:
            await reader.close()
