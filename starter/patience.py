"""Asking a session by query without wearing it out: pauses grow with the time already waited."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
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

    def length(self, longest: float = 1.0) -> float:
        """Seconds of the next one."""
        return min(max(self.waited / 10, 0.01), longest)

    async def rest(self) -> None:
        await asyncio.sleep(self.length())


STUCK_SECONDS = 15.0
"""A task that fails for so long does not mend itself in the next moment: whoever asks should hear why."""
AT_ONCE = 4
"""Messages under way from one handle: a storm of updates costs the server dear, and a stock one refuses more than ten
for a session."""

TRIES_SECONDS = 60.0
_NOT_TAKEN = {RPCStatusCode.RESOURCE_EXHAUSTED}
"""As many updates of the session are under way as the server allows: this one was not let in."""
_PERHAPS_TAKEN = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.ABORTED, RPCStatusCode.DEADLINE_EXCEEDED}
_OVERLOOKED = "UnprocessedUpdate"
"""The server's word for an update that a worker did not look at: nothing of it is recorded, so the session has not seen
it."""


async def send_again(send: Callable[[], Awaitable[Answer]], *, repeatable: bool) -> Answer:
    """Send until it is taken, for a minute at most; what is not `repeatable` only if it was surely not taken.

    A session whose tasks fail takes nothing: that error is raised after STUCK_SECONDS.
    """
    passing = _NOT_TAKEN | _PERHAPS_TAKEN if repeatable else _NOT_TAKEN
    pauses = Pauses()
    while True:
        try:
            return await send()
        except RPCError as error:
            stuck = error.status is RPCStatusCode.FAILED_PRECONDITION
            if error.status not in passing and not stuck:
                raise
            if pauses.waited > (STUCK_SECONDS if stuck else TRIES_SECONDS):
                raise
        except WorkflowUpdateFailedError as error:
            if not _overlooked(error) or pauses.waited > TRIES_SECONDS:
                raise
        await pauses.rest()


def _overlooked(error: WorkflowUpdateFailedError) -> bool:
    return isinstance(error.cause, ApplicationError) and error.cause.type == _OVERLOOKED


async def insist(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask until an answer comes; errors that time does not mend are raised as they are."""
    pauses = Pauses()
    while True:
        try:
            return await ask()
        except RPCError as error:
            if error.status not in _PASSING:
                raise
            if error.status is RPCStatusCode.FAILED_PRECONDITION and pauses.waited > STUCK_SECONDS:
                raise
        await pauses.rest()
