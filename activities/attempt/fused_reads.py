"""The bounds of a read that is fused into its session's task, as a local activity of Temporal's.

Its answer is a marker in the session's history, which is sent with the whole task and never by reference: a long one
goes its own way. So does a call around which somebody else's code may ask the session, which can't answer before its
task ends.

Makes the quick reads of a model's answer at once, in the activity that has heard it, and hands what they say to the
session along with it: the session judges each call, and takes what it allows.

A read has no effect, so that one which the session does not allow was made in vain and is told nobody. Whatever takes
longer than a moment is left to the session: a kill meanwhile would have the provider asked a second time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.contract import MAYBE_STARTED, CallModel, RunTool
from longhaul.agent.decisions.call_rulings import are_read_along
from longhaul.agent.entries import CallOutcome, ModelSaid, ToolReturned
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor

LONGEST_ANSWER_BYTES = 50_000
"""As JSON. Those of a whole turn together stay far below what the server takes with a task."""
UNFUSED = "Unfused"
"""Error type of a read that has to go its own way. Nothing is known of it, and nothing was done."""


def check_first(ask: RunTool) -> None:
    """Raises where the call is made within a task, and a worker before this one may have been lost with it there: it
    would take each further worker along, without end."""
    if ask.maybe_started and activity.info().is_local:
        raise ApplicationError(
            "not within the task: it may have been started there before",
            type=MAYBE_STARTED,
            non_retryable=True,
            category=ApplicationErrorCategory.BENIGN,
        )


def unfused(why: str) -> ApplicationError:
    """No failure: nothing is logged of it, and the session starts the call again as an activity."""
    return ApplicationError(
        f"not within the task: {why}", type=UNFUSED, non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )


class FusedBounds(Interceptor):
    """Next to the activity, so that whoever counts and watches takes it for an attempt that came to nothing."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Bounded(next)


class _Bounded(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        if not activity.info().is_local:
            return await super().execute_activity(input)
        try:
            outcome = await super().execute_activity(input)
        except ApplicationError as error:
            if error.type == MAYBE_STARTED:
                raise
            raise unfused(error.message) from None
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is not None and details.cancel_requested:
                raise
            raise unfused("it takes long, or its worker stops") from None
        if (size := len(outcome.model_dump_json().encode())) > LONGEST_ANSWER_BYTES:
            raise unfused(f"its answer has {size} bytes")
        return outcome


MOMENT_SECONDS = 0.25
"""A kill within it has the provider asked a second time, like any between its answer and the server's hearing of it."""
LONGEST_SAID_TOKENS = 50_000
"""Of an answer: with what it reads it has to stay below what the server takes."""


class ReadingAlong:
    def __init__(self, run: Callable[[str, RunTool], Awaitable[CallOutcome]]) -> None:
        self._run = run

    async def added(self, said: ModelSaid, ask: CallModel, tools: Mapping[str, ToolDescriptor]) -> ModelSaid:
        """With what its calls have read; as it is where it calls for anything else."""
        along = ask.reads_along
        calls = said.message.get_tool_calls()
        if along is None or not 0 < len(calls) <= along.most or said.unmarked or said.tokens > LONGEST_SAID_TOKENS:
            return said
        if not are_read_along(calls, said.analysis, tools, along.permission, ask.place.root):
            return said
        if said.lost_attempts:
            # A tool may have taken the worker along: whoever tries it within another thing's attempt tries it for ever.
            return said.model_copy(update={"reads": dict.fromkeys(call.id for call in calls)})
        asks = [
            RunTool(
                call_id=call.id,
                arguments=call.input,
                tool_digest=tools[call.name].digest,
                effect=Effect.READ,
                agent=ask.agent,
                analysis=said.analysis[call.id].as_run(),
                place=ask.place,
                epoch=ask.context.epoch,
                result_limit=along.result_limit,
                model=ask.model,
                offloader=ask.place.offloader,
                runtime=ask.runtime,
            )
            for call in calls
        ]
        runs = [asyncio.ensure_future(self._run(call.name, ask)) for call, ask in zip(calls, asks, strict=True)]
        with suppress(asyncio.CancelledError):  # the answer is whole, and must not be lost with what it calls for
            await asyncio.wait(runs, timeout=MOMENT_SECONDS)
        read = {call.id: _outcome(run) for call, run in zip(calls, runs, strict=True)}
        for run in runs:
            run.cancel()
            run.add_done_callback(_heard)
        return said.model_copy(update={"reads": read})


def _outcome(run: "asyncio.Future[CallOutcome]") -> ToolReturned | None:
    """None where it has none, or one that its session hears better from an activity of the call's own."""
    if not run.done() or run.cancelled() or run.exception() is not None:
        return None
    outcome = run.result()
    if not isinstance(outcome, ToolReturned) or outcome.result.state is ToolResultState.UNKNOWN:
        return None
    return outcome if len(outcome.model_dump_json().encode()) <= LONGEST_ANSWER_BYTES else None


def _heard(run: "asyncio.Future[CallOutcome]") -> None:
    """Whatever it ends with is told by the call's own activity; without this, asyncio would log it as well."""
    if not run.cancelled():
        run.exception()
