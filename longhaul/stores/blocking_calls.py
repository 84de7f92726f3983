"""Threads for drivers that block: few, kept for the next work, and none that keeps a process from ending."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")

IDLE_SECONDS = 10.0
"""A thread that has had nothing to do for so long ends."""


class Threads:
    """At most `number` pieces of work at a time.

    Not an executor: Python waits for an executor's threads before it ends, and one that hangs on a database which
    has stopped would keep the worker from leaving.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._work: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0

    async def run(self, work: Callable[[], Answer], seconds: float) -> Answer:
        """What the work returns or raises; TimeoutError after `seconds`, when it may still be under way."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def resolve(settled: Callable[[], None]) -> None:
            if not answer.done():
                settled()

        def tell(settled: Callable[[], None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(resolve, settled)

        def body() -> None:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  it is raised where the work was asked for
                raised = error
                tell(lambda: answer.set_exception(raised))
            else:
                tell(lambda: answer.set_result(result))

        with self._changed:
            self._work.append(body)
            # An idle thread that was told of earlier work may not have taken it yet.
            if len(self._work) > self._idle and self._threads < self._number:
                self._threads += 1
                threading.Thread(target=self._serve, daemon=True, name="longhaul-store").start()
            else:
                self._changed.notify()
        async with asyncio.timeout(seconds):
            return await answer

    def _serve(self) -> None:
        while (body := self._next()) is not None:
            body()
            del body  # it holds what was written until there is more to do

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._work:
                self._idle += 1
                told = self._changed.wait(IDLE_SECONDS)
                self._idle -= 1
                if not told and not self._work:
                    self._threads -= 1
                    return None
            return self._work.popleft()
