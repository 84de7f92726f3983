"""Asking a session by query without wearing it out: pauses grow with the time already waited."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.service import RPCError, RPCStatusCode

Answer = TypeVar("Answer")

_PASSING = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.ABORTED,
}
"""No worker just now, a server that restarts, a query behind another: worth asking again."""


class Pauses:
    """From 10 ms up to a second; a tenth of the time already spent waiting, so that an answer is not late by more."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    async def rest(self) -> None:
        waited = asyncio.get_running_loop().time() - self._began
        await asyncio.sleep(min(max(waited / 10, 0.01), 1.0))


async def insist(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask until an answer comes; errors that time does not mend are raised as they are."""
    pauses = Pauses()
    while True:
        try:
            return await ask()
        except RPCError as error:
            if error.status not in _PASSING:
                raise
        await pauses.rest()
