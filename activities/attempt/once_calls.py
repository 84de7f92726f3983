"""A `once` call is begun one time. It is tried again after NotHere alone, which is raised before anything was done;
whatever else an attempt ends in, also a kind that nobody has thought of, is final."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import NOT_HERE
from longhaul.activities.process.output_truncation import words_of

UNKNOWN_OUTCOME = (
    "Outcome unknown: this call was started, and {} It may have done part of its work, and it was not started again. "
    "Find out what is true before you repeat it."
)
SHUT_DOWN = "its worker was shut down"
LOOK_SECONDS = 10
ENDED = "Ended"
"""Error type of an attempt that had begun and came to no outcome."""


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
        kind = await _failure_before()
    except Exception as error:  # noqa: BLE001  who can't see that nothing was done must not begin
        return f"what became of it could not be seen ({words_of(error, 200)})."
    return "" if kind == NOT_HERE else f"its attempt ended in a failure of its worker ({kind[:200] or 'of no kind'})."


async def _failure_before() -> str:
    info = activity.info()
    told = await own_session.handle().describe(rpc_timeout=timedelta(seconds=LOOK_SECONDS))
    for pending in told.raw_description.pending_activities:
        if pending.activity_id == info.activity_id:
            return pending.last_failure.application_failure_info.type
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
