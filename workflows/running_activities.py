"""Activities under way: what they answer, and how an interrupt cancels them."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, is_cancelled_exception
from temporalio.workflow import ActivityConfig, ActivityHandle, LocalActivityConfig

from longhaul.activities.contract import MAYBE_STARTED
from longhaul.workflows.payload_converter import result_of

Answer = TypeVar("Answer")


class WorkInterrupted(Exception):
    """An activity was cancelled, because the reply that it worked for was interrupted."""


class MaybeStarted(Exception):
    """A worker that is lost may have started it within the same task: it is not started a second time there."""


async def undisturbed(name: str, ask: object, answer: type[Answer], how: ActivityConfig) -> Answer:
    """Start an activity that no interrupt concerns; returns its answer, or raises ActivityError."""
    arrived: RawValue = await workflow.execute_activity(name, ask, result_type=RawValue, **how)
    return result_of(arrived, answer)


async def at_once(name: str, ask: object, answer: type[Answer], how: LocalActivityConfig) -> Answer | None:
    """The same within the session's own task; None where it has no answer, and an activity has to be asked."""
    try:
        arrived: RawValue = await workflow.execute_local_activity(name, ask, result_type=RawValue, **how)
        return result_of(arrived, answer)
    except FailureError:
        # Of whatever kind, as in `Underway.run_fused`.
        if workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError from None
        return None


class LeftRunning(Exception):
    """Code of the user's was told to end, and has not ended: nobody waits for it any longer."""


STOPPING_SECONDS = 10
"""So long an interrupted reply waits for code of the user's to end."""


class Underway:
    """The activities that a session waits for."""

    def __init__(self) -> None:
        # In order of their start: a set's order differs at replay, and so would the commands.
        self._handles: dict[asyncio.Task[Any], bool] = {}
        """To each, whether it was interrupted."""

    def interrupt(self) -> None:
        """Cancel all; whoever waits for one of them gets its answer if it has one after all, or Interrupted."""
        for handle in list(self._handles):
            self._handles[handle] = True
            handle.cancel()

    async def run(self, name: str, ask: object, answer: type[Answer], how: ActivityConfig) -> Answer:
        """Start an activity; returns its answer. Raises ActivityError, or Interrupted."""
        handle: ActivityHandle[RawValue] = workflow.start_activity(name, ask, result_type=RawValue, **how)
        self._handles[handle] = False
        try:
            return result_of(await handle, answer)
        except (ActivityError, asyncio.CancelledError) as error:
            # A cancelled workflow must end as cancelled, also when somebody interrupts it in the same moment.
            cancelled = is_cancelled_exception(error) and workflow.cancellation_reason() is None
            if cancelled and self._handles[handle]:
                raise WorkInterrupted from error
            raise
        finally:
            del self._handles[handle]

    async def run_target(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Start and await code of the user's; returns its answer. Raises FailureError, LeftRunning, or WorkInterrupted
        from what ended it."""
        task = asyncio.create_task(work)
        self._handles[task] = False
        try:
            await workflow.wait_condition(lambda: task.done() or self._handles[task])
            if not task.done():
                with suppress(TimeoutError):
                    await workflow.wait_condition(task.done, timeout=STOPPING_SECONDS)
            if not task.done():
                task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                raise LeftRunning
            return await task
        except (FailureError, asyncio.CancelledError) as error:
            cancelled = is_cancelled_exception(error) and workflow.cancellation_reason() is None
            if cancelled and self._handles[task]:
                raise WorkInterrupted from error
            raise
        finally:
            del self._handles[task]

    async def run_fused(self, name: str, ask: object, answer: type[Answer], how: LocalActivityConfig) -> Answer | None:
        """Run it within the session's own task; returns its answer, or None where there is none. Raises Interrupted, or
        MaybeStarted."""
        handle: ActivityHandle[RawValue] = workflow.start_local_activity(name, ask, result_type=RawValue, **how)
        self._handles[handle] = False
        try:
            return result_of(await handle, answer)
        except FailureError as error:
            # Of whatever kind, for a replay may know it by another one. None of them is an ActivityError for sure, and
            # what is not caught here ends the session.
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError from None
            if self._handles[handle]:
                raise WorkInterrupted from None
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, ApplicationError):
                cause = cause.__cause__
            if cause is not None and cause.type == MAYBE_STARTED:
                raise MaybeStarted from None
            return None
        finally:
            del self._handles[handle]
