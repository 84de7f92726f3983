"""The end of an attempt at a tool call: after which failure it is tried again, and what happens when its worker stops,
when nobody wants the call any more, or when it does not let itself be ended.

A `once` call is started one time. It is tried again after NotHere alone, which is raised before anything was done;
whatever else an attempt ends in, also a kind that nobody has thought of, is final.

A worker's shutdown, as an attempt meets it: a session is told of work that could not be ended, which another worker
repeats; what another one can do as well is dropped at once, instead of holding the shutdown up.

A call that does not let itself be ended is left behind: when its worker has no more time, so that its attempt can
still say what is known of it, instead of being found out about by a heartbeat that stays away; and when nobody wants it
any more, or its own time is over, so that nobody waits for it.

Hurry: what a call still waits for when it has run ends soon after somebody wants the call to end, or its worker to
stop. It is not cancelled, for its call has run; and a worker that waited for it would be killed before it can tell so.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.api.failure.v1 import Failure
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import CALL_MODEL, COMPRESS, NOT_HERE, WORKER_LOST, RunTool
from longhaul.activities.process.program_output import words_of
from longhaul.agent.entries import ToolReturned
from longhaul.agent.operations.bodies import LEAVING, WORKER_LEFT
from longhaul.agent.values.conversation.messages import ToolResultState

UNKNOWN_OUTCOME = (
    "Outcome unknown: this call was started, and {} It may have done part of its work, and it was not started again. "
    "Find out what is true before you repeat it."
)
SHUT_DOWN = "its worker was shut down"
LOOK_SECONDS = 10
MOST_LOST = 3
"""Attempts that are lost one after the other, at a call that may run twice. A worker has a hundred sessions: each loses
its model's call with it, so that a fourth try costs more than a result that says it."""
FATAL = "Fatal"
"""Error type of a call that takes its workers along."""
ENDED = "Ended"
"""Error type of an attempt that had started and came to no outcome."""


async def lost_before(run: str) -> str:
    """Why the call that is about to begin may have run before, as the end of a sentence; empty when it has not. `run`:
    how the id of the run begins that has asked for it.

    The server tries again after any failure that is not ruled out by name, also after those of the SDK around an
    activity: what the attempt before this one ended in is asked, and only NotHere lets this one begin. And it gives out
    what was under way when somebody resets the session, as a first attempt of the new run.
    """
    if not (activity.info().workflow_run_id or "").startswith(run):
        return "its session was then reset."
    if activity.info().attempt == 1:
        return ""
    try:
        kind = (await _failure_before()).application_failure_info.type
    except Exception as error:  # noqa: BLE001  who can't see that nothing was done must not begin
        return f"what became of it could not be seen ({words_of(error, 200)})."
    return "" if kind == NOT_HERE else f"its attempt ended in a failure of its worker ({kind[:200] or 'of no kind'})."


async def check_not_fatal() -> None:
    """Raises where a call that may run twice has had MOST_LOST attempts, and the last one was lost with its worker: it
    would take one worker along after the other."""
    if activity.info().attempt <= MOST_LOST:
        return
    try:
        before = await _failure_before()
    except Exception:  # noqa: BLE001  the server counts attempts too, and gives up later
        return
    if before.HasField("timeout_failure_info") or before.application_failure_info.type == WORKER_LOST:
        raise ApplicationError(
            f"the worker that ran it was lost each time; it was tried {MOST_LOST} times and more, and it is not "
            "started again",
            type=FATAL,
            non_retryable=True,
        )


async def _failure_before() -> Failure:
    info = activity.info()
    told = await own_session.handle().describe(rpc_timeout=timedelta(seconds=LOOK_SECONDS))
    for pending in told.raw_description.pending_activities:
        if pending.activity_id == info.activity_id:
            last = pending.last_failure
            # One that was too long for the server is what it says of it, and the failure itself below.
            return last.cause if last.HasField("server_failure_info") and last.HasField("cause") else last
    raise LookupError("the server knows of no such call")


@contextmanager
def started() -> Iterator[None]:
    """Within the block the call may do what it does: nothing that leaves it is tried again."""
    try:
        yield
    except BaseException as error:
        details = activity.cancellation_details()
        if isinstance(error, asyncio.CancelledError) and details is not None and details.cancel_requested:
            raise
        raise ApplicationError(f"its worker failed ({words_of(error, 200)})", type=ENDED, non_retryable=True) from error


@contextmanager
def beginning() -> Iterator[None]:
    """Within the block nothing is done yet: a worker that shuts down meanwhile leaves the call to another one."""
    try:
        yield
    except asyncio.CancelledError:
        details = activity.cancellation_details()
        if details is None or details.cancel_requested or not details.worker_shutdown:
            raise
        raise not_here("its worker was shut down before it began") from None


def stopped_because(reason: str) -> str:
    """What is told of a call that was ended before it had come to an outcome."""
    return UNKNOWN_OUTCOME.format(f"then stopped, because {reason}.")


def given_up_because(reason: str, after: str) -> str:
    """The same of one that could not be ended. `after`: what may come of it yet."""
    return UNKNOWN_OUTCOME.format(f"then given up, because {reason}. {after}")


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
                # Without the frames below: its words say what happened, and around a failure of more than 4 kB the
                # server puts words of its own.
                error.with_traceback(None)
                raise
            await _tell_session(input.args)
            who = activity.client().identity
            # A `once` call may begin elsewhere after NotHere alone: that it has not started must stay to be seen.
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
        log.warning("session %s could not be notified of the shutdown: %s", own_session.key(), error)


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


DEAF_SECONDS = 4.0
"""From its cancellation on. What is told behind it needs the rest of what a worker has in the end
(`starter.worker_host.own_process.LAST_SECONDS`)."""
UNWANTED_SECONDS = 10.0
"""The same where a worker has time: a call may have to tidy up behind it."""

Made = TypeVar("Made")


class LeftBehind(Exception):
    """It may go on until its worker's process ends: in some seconds, where that is shut down."""


class _Raised(Exception):
    """What the work has raised, of whatever kind."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


async def left_behind_when_deaf(
    work: Coroutine[Any, Any, Made], is_over: Callable[[], bool] = activity.is_cancelled
) -> Made:
    """What the work gives. Who cancels this cancels the work, and waits for it. Raises LeftBehind where a worker that
    shuts down would wait for longer than DEAF_SECONDS, or whoever `is_over` speaks for than UNWANTED_SECONDS."""
    task = asyncio.create_task(_in_the_loop(work))
    while True:
        try:
            return await asyncio.shield(task)
        except _Raised as raised:
            raise raised.error from None
        except asyncio.CancelledError:
            if task.cancelled():
                raise
        if task.done():
            continue
        task.cancel()
        seconds = DEAF_SECONDS if is_shut_down() else UNWANTED_SECONDS
        if is_over() and not (await asyncio.wait({task}, timeout=seconds))[0]:
            _left.add(task)
            task.add_done_callback(_ended)
            raise LeftBehind


async def _in_the_loop(work: Coroutine[Any, Any, Made]) -> Made:
    """Out of a task SystemExit and KeyboardInterrupt end its event loop, and with that the worker; GeneratorExit ends
    whoever waits for it."""
    try:
        return await work
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raise _Raised(error) from error


_left = set["asyncio.Task[Any]"]()
"""The event loop itself does not hold its tasks."""


def _ended(task: "asyncio.Task[Any]") -> None:
    _left.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("a call that its worker left has failed: %r", error)


HURRIED_SECONDS = 2.0
"""Less than a worker that stops has in the end (`starter.worker_host.own_process.LAST_SECONDS`)."""


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
