"""A worker's shutdown, as an attempt meets it: a session is told of work that could not be ended, which another worker
repeats; what another one can do as well is dropped at once, instead of holding the shutdown up."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import own_session
from longhaul.activities.contract import CALL_MODEL, COMPRESS, NOT_HERE, RunTool
from longhaul.agent.entries import ToolReturned
from longhaul.agent.letters.bodies import LEAVING, WORKER_LEFT
from longhaul.agent.values.conversation.messages import ToolResultState

log = logging.getLogger(__name__)

TELL_SECONDS = 3
"""The worker has used up its time already; whoever stops it will not wait much longer."""
AGAIN = timedelta(seconds=0.2)
"""Another worker should not wait for the pause that failures of a provider have earned."""


class Departures(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Departing(next)


class _Departing(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        try:
            result = await super().execute_activity(input)
        except (asyncio.CancelledError, ApplicationError) as error:
            if not is_shut_down() or (isinstance(error, ApplicationError) and error.non_retryable):
                raise
            await _tell_session(input.args)
            who = activity.client().identity
            # A `once` call may begin elsewhere after NotHere alone: that it has not begun must stay to be seen.
            kind = NOT_HERE if isinstance(error, ApplicationError) and error.type == NOT_HERE else LEAVING
            raise ApplicationError(f"its worker {who} was shut down", type=kind, next_retry_delay=AGAIN) from None
        if isinstance(result, ToolReturned) and result.result.state is ToolResultState.UNKNOWN and is_shut_down():
            await _tell_session(input.args)
        return result


def is_shut_down() -> bool:
    """Whether the running activity was cancelled because its worker had no more time, and not by anybody's wish."""
    details = activity.cancellation_details()
    return details is not None and details.worker_shutdown and not details.cancel_requested


async def _tell_session(arguments: Sequence[Any]) -> None:
    """Only of what a person waits for; the rest is repeated in a moment. A session that can't be told goes on all the
    same, and its history shows the attempt."""
    doing = activity.info().activity_type
    is_tool = "." not in doing
    if not is_tool and doing not in (CALL_MODEL, COMPRESS):
        return
    left = {"worker": activity.client().identity, "doing": doing, "call_id": call_id_of(arguments) if is_tool else ""}
    try:
        await own_session.handle().signal(WORKER_LEFT, left, rpc_timeout=timedelta(seconds=TELL_SECONDS))
    except RPCError as error:
        log.warning("session %s could not be told of the shutdown: %s", own_session.key(), error)


def call_id_of(arguments: Sequence[Any]) -> str:
    """Of the tool call that a dynamic activity was started with."""
    return RunTool.model_validate_json(arguments[0][0].payload.data).call_id


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
