"""Asking a session by query without wearing it out: how seldom a client asks that hears nothing, and pauses that grow
with the time already waited.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    QueryWorkflowInput,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.workflows.contract import AHEAD, BLOBS_UNREACHABLE

ASK_SECONDS = 90.0
"""Between queries of one who waits and hears nothing, each of which costs a worker's time, and is billed. Nearly all
ends are told by the live stream, or seen in what the server knows."""

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

IN_VAIN = {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
"""The server's or the SDK's word for a question that nobody took in its time."""


class Pauses:
    """From 10 ms up to five seconds; a tenth of the time already spent waiting, so that an answer is not late by much
    more. A fifth more or less, by chance: of hundreds who began to wait together not all ask in the same moment."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    @property
    def waited(self) -> float:
        """Seconds since the first asking."""
        return asyncio.get_running_loop().time() - self._began

    def length(self, longest: float = 5.0) -> float:
        """Seconds of the next one."""
        return min(max(self.waited / 10, 0.01), longest) * random.uniform(0.8, 1.2)  # noqa: S311  no secret

    async def rest(self) -> None:
        await asyncio.sleep(self.length())


STUCK_SECONDS = 15.0
"""A task that fails for so long does not fix itself in the next moment: whoever asks should hear why."""
AT_ONCE = 4
"""Messages under way from one handle: a storm of updates costs the server dear, and a stock one refuses more than ten
for a session."""

TRIES_SECONDS = 60.0
_NOT_TAKEN = {RPCStatusCode.RESOURCE_EXHAUSTED}
"""As many updates of the session are under way as the server allows: this one was not let in."""
_PERHAPS_TAKEN = _PASSING - {RPCStatusCode.FAILED_PRECONDITION}
"""A connection that breaks in the middle is `UNKNOWN` or `CANCELLED`."""
_OVERLOOKED = "UnprocessedUpdate"
"""The server's word for an update that a worker did not look at: nothing of it is recorded, so the session has not seen
it."""


async def send_again(
    send: Callable[[], Awaitable[Answer]], *, repeatable: bool, is_behind: Callable[[], Awaitable[bool]] | None = None
) -> Answer:
    """Send until it is taken, for a minute at most; what is not `repeatable` only if it was surely not taken.

    A session whose tasks fail takes nothing: that error is raised after STUCK_SECONDS. While `is_behind` says that the
    session only waits its turn, it is sent for longer.
    """
    passing = _NOT_TAKEN | _PERHAPS_TAKEN if repeatable else _NOT_TAKEN
    pauses = Pauses()
    too_long = partial(_in_vain, pauses, is_behind)

    while True:
        try:
            return await send()
        except RPCError as error:
            stuck = error.status is RPCStatusCode.FAILED_PRECONDITION
            if error.status not in passing and not stuck:
                raise
            if await too_long(STUCK_SECONDS if stuck else TRIES_SECONDS):
                raise
        except WorkflowUpdateFailedError as error:
            overlooked = isinstance(error.cause, ApplicationError) and error.cause.type == _OVERLOOKED
            if not overlooked or await too_long(TRIES_SECONDS):
                raise
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            # The SDK's one word for a server that was silent for too long, and for a sender that is to stop.
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise error.__cause__ from None
            if not repeatable or await too_long(TRIES_SECONDS):
                raise
        await pauses.rest()


async def _in_vain(pauses: Pauses, is_behind: Callable[[], Awaitable[bool]] | None, seconds: float) -> bool:
    """Whether it was waited for so long, and the session is not one that only waits its turn."""
    return pauses.waited > seconds and not (is_behind is not None and await is_behind())


async def insist(
    ask: Callable[[], Awaitable[Answer]],
    is_hopeless: Callable[[RPCError], Awaitable[bool]] | None = None,
    is_behind: Callable[[], Awaitable[bool]] | None = None,
) -> Answer:
    """Ask until an answer comes; errors that time does not fix are raised as they are. Of a question behind a task
    that waits the server says no more than that time was up, also where no worker is left; and of tasks that busy
    workers did not end in time the same as of tasks that fail: `is_hopeless` looks for what tells, and `is_behind`
    whether the session only waits its turn."""
    pauses = Pauses()
    while True:
        try:
            return await ask()
        except RPCError as error:
            if error.status not in _PASSING:
                raise
            refused, late = error.status is RPCStatusCode.FAILED_PRECONDITION, pauses.waited > TRIES_SECONDS
            if refused and pauses.waited > STUCK_SECONDS and is_hopeless is None:
                raise
            if refused and await _in_vain(pauses, is_behind, TRIES_SECONDS):
                raise
            doubted = (refused and pauses.waited > STUCK_SECONDS) or (error.status in IN_VAIN and late)
            if doubted and is_hopeless is not None and await is_hopeless(error):
                raise
        except WorkflowQueryFailedError as error:
            if BLOBS_UNREACHABLE not in str(error) or pauses.waited > STUCK_SECONDS:
                raise
        await pauses.rest()


UNREPLAYABLE = "TMPRL1100"
"""The SDK's mark for a history that asks for other commands than the worker's code makes."""
MOST_ASKINGS: Mapping[str, int] = MappingProxyType({AHEAD: 30, UNREPLAYABLE: 3})
"""Of one question, by what its worker answers. A session may move on under it each time, and one refusal take seconds
of a busy worker. A run that is not as its history says was kept by mistake: it is forgotten with the answer, and if the
next one says the same, nobody can replay it."""


class AsksAgain(Interceptor):
    """Of a client: asks once more what a worker could not answer with the run that it had in its memory."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002  the SDK's own name
        return _AskingAgain(next)


class _AskingAgain(OutboundInterceptor):
    async def query_workflow(self, input: QueryWorkflowInput) -> Any:  # noqa: A002  the SDK's own name
        pauses = Pauses()
        for asked in count(1):
            try:
                return await self.next.query_workflow(input)
            except WorkflowQueryFailedError as error:
                if asked >= max((most for why, most in MOST_ASKINGS.items() if why in str(error)), default=0):
                    raise
            await pauses.rest()
        return None
