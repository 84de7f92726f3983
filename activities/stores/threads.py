"""Threads for drivers that block: few, and none that keeps a process from ending."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


class Threads:
    """At most `number` pieces of work at a time.

    Not an executor: Python waits for an executor's threads before it ends, and one that hangs on a database which
    has stopped would keep the worker from leaving.
    """

    def __init__(self, number: int) -> None:
        self._free = threading.BoundedSemaphore(number)

    async def run(self, work: Callable[[], Answer], seconds: float) -> Answer:
        """What the work returns or raises; TimeoutError after `seconds`, when it may still be under way."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def settle(settled: Callable[[], None]) -> None:
            if not answer.done():
                settled()

        def tell(settled: Callable[[], None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, settled)

        def body() -> None:
            with self._free:
                try:
                    result = work()
                except BaseException as error:  # noqa: BLE001  it is raised where the work was asked for
                    raised = error
                    tell(lambda: answer.set_exception(raised))
                else:
                    tell(lambda: answer.set_result(result))

        threading.Thread(target=body, daemon=True, name="longhaul-store").start()
        async with asyncio.timeout(seconds):
            return await answer
