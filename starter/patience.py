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

    @property
    def waited(self) -> float:
        """Seconds since the first asking."""
        return asyncio.get_running_loop().time() - self._began

    async def rest(self) -> None:
        await asyncio.sleep(min(max(self.waited / 10, 0.01), 1.0))


AT_ONCE = 4
"""Messages under way from one handle: a storm of updates costs the server dear, and it refuses more than ten."""

TRIES_SECONDS = 60.0
_NOT_TAKEN = {RPCStatusCode.RESOURCE_EXHAUSTED}
"""Ten updates are under way for the session: this one was not let in."""
_PERHAPS_TAKEN = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.ABORTED, RPCStatusCode.DEADLINE_EXCEEDED}


async def send_again(send: Callable[[], Awaitable[Answer]], *, repeatable: bool) -> Answer:
    """Send until it is taken, for a minute at most; what is not `repeatable` only if it was surely not taken."""
    passing = _NOT_TAKEN | _PERHAPS_TAKEN if repeatable else _NOT_TAKEN
    pauses = Pauses()
    while True:
        try:
            return await send()
        except RPCError as error:
            if error.status not in passing or pauses.waited > TRIES_SECONDS:
                raise
        await pauses.rest()


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
