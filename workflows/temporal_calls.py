"""Calls of Temporal tools: the session starts an activity, a workflow or a Nexus operation of its user's, and says what
became of it.

The code is the user's, on the user's workers, in any language. So its input is plain JSON, and nothing that it returns
or fails with can stop the session. A worker of Longhaul then takes the result in, as it does with an external one.
"""

import asyncio
import json
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, assert_never

from nexusrpc import HandlerError
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    FailureError,
    NexusOperationError,
    TerminatedError,
    TimeoutType,
    WorkflowAlreadyStartedError,
)
from temporalio.exceptions import TimeoutError as TemporalTimeout
from temporalio.workflow import ActivityHandle, ChildWorkflowHandle, NexusOperationCancellationType

from longhaul.agent import entries as e
from longhaul.agent.operations.result_operations import as_output
from longhaul.agent.plain.ids import target_activity_id, target_workflow_id
from longhaul.agent.reducer.agent_state import OpenCall, effect_of
from longhaul.agent.reducer.synthetic_results import (
    cancelled_before_start,
    failed_to_run,
    outcome_unknown,
    stopped_under_way,
)
from longhaul.agent.values.conversation.messages import ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.tools import Effect, TemporalTarget, ToolDescriptor
from longhaul.workflows import activity_options
from longhaul.workflows.contract import OPERATION, OperationCall
from longhaul.workflows.running_activities import STOPPING_SECONDS, LeftRunning, Underway, WorkInterrupted

FAILURE_CHARS = 3_000
_UNREGISTERED = {
    "NotFoundError": ("Activity function {}", "Activity {}"),
    "ActivityNotRegisteredError": ("unable to find activityType={}.",),
    "java.lang.IllegalArgumentException": ('Activity Type "{}" is not registered',),
}
"""What the SDKs (Python, TypeScript, .NET, Ruby; Go; Java) say of an activity that a worker does not have: the error's
type, and how its message begins."""
_NOT_REGISTERED = "is not registered on this worker"
_STOPPED = ("WorkerShutdown", "ActivityPause", "ActivityReset")
"""Error types by which SDKs report an attempt that was stopped in the middle, and not by its own code."""


class TemporalCalls:
    """The calls of one session to its user's code."""

    def __init__(self, underway: Underway) -> None:
        self._underway = underway

    async def run(
        self, call: OpenCall, tool: ToolDescriptor, target: TemporalTarget, summary: str
    ) -> e.ToolReturned | e.ResultReceived:
        """Start the code and await its end; whatever that is, it is an entry. A FailureError leaves this only where the
        session itself was cancelled."""
        effect = effect_of(call, tool)
        try:
            arrived = await self._underway.run_target(_started(call, tool, target, effect, summary))
        except WorkInterrupted as interrupted:
            cause = interrupted.__cause__
            began = isinstance(cause, ActivityError | ChildWorkflowError) and cause.started_event_id > 0
            return e.ToolReturned(result=(stopped_under_way if began else cancelled_before_start)(call.block))
        except LeftRunning:
            why = f"the reply was interrupted, and {target.place} did not end within {STOPPING_SECONDS} s"
            return _lost(call, effect, why)
        except WorkflowAlreadyStartedError as error:
            why = f"there is a workflow {error.workflow_id!r} already, which this run of the session did not start"
            return _lost(call, effect, why)
        except FailureError as error:
            if workflow.cancellation_reason() is not None:
                raise
            return _failed(call, target, effect, error)
        return e.ResultReceived(result=_returned(call, arrived.payload))


def _started(
    call: OpenCall, tool: ToolDescriptor, target: TemporalTarget, effect: Effect, summary: str
) -> Coroutine[Any, Any, RawValue]:
    match target.kind:
        case "activity":
            return _activity(call, tool, target, effect, summary)
        case "workflow":
            return _workflow(call, tool, target, summary)
        case "nexus":
            return _operation(call, tool, target, summary)
        case _ as never:
            assert_never(never)


async def _activity(
    call: OpenCall, tool: ToolDescriptor, target: TemporalTarget, effect: Effect, summary: str
) -> RawValue:
    """A worker that does not have the activity has done nothing, so the call is not spent: another worker is asked."""
    how = activity_options.run_activity(tool, target, effect, target_activity_id(call.block.id), summary)
    arguments = _arguments(call, tool, target)
    pauses = iter(activity_options.UNREGISTERED_PAUSES)
    while True:
        try:
            handle: ActivityHandle[RawValue] = workflow.start_activity(
                target.name, args=arguments, result_type=RawValue, **how
            )
            return await handle
        except ActivityError as error:
            pause = next(pauses, None) if _is_unregistered(error.cause, target) else None
            me = asyncio.current_task()
            # An interrupt that came during the attempt is not raised again: another attempt would outlive it.
            if pause is None or (me is not None and me.cancelling()):
                raise
        await workflow.sleep(pause, summary=f"no worker has {target.name}"[:100])


async def _workflow(call: OpenCall, tool: ToolDescriptor, target: TemporalTarget, summary: str) -> RawValue:
    workflow_id = target_workflow_id(workflow.info().workflow_id, call.block.id)
    how = activity_options.run_workflow(tool, target, workflow_id, summary)
    handle: ChildWorkflowHandle[Any, RawValue] = await workflow.start_child_workflow(
        target.name, args=_arguments(call, tool, target), result_type=RawValue, **how
    )
    return await handle


async def _operation(call: OpenCall, tool: ToolDescriptor, target: TemporalTarget, summary: str) -> RawValue:
    """By a workflow of its own: the server fails each task that calls an endpoint which is not there, for ever."""
    workflow_id = target_workflow_id(workflow.info().workflow_id, call.block.id)
    how = activity_options.run_operation(tool, workflow_id, summary)
    (given,) = _arguments(call, tool, target)
    ask = OperationCall(target=target, given=given, seconds=tool.timeout_seconds)
    handle: ChildWorkflowHandle[Any, RawValue] = await workflow.start_child_workflow(
        OPERATION, ask, result_type=RawValue, **how
    )
    return await handle


@workflow.defn(name=OPERATION)
class NexusCall:
    """One Nexus operation, called for a session."""

    @workflow.run
    async def run(self, ask: OperationCall) -> RawValue:
        client = workflow.create_nexus_client(service=ask.target.service, endpoint=ask.target.endpoint)
        answer: RawValue = await client.execute_operation(
            ask.target.name,
            ask.given,
            output_type=RawValue,
            schedule_to_close_timeout=timedelta(seconds=ask.seconds),
            cancellation_type=NexusOperationCancellationType.WAIT_COMPLETED,
        )
        return answer


def _arguments(call: OpenCall, tool: ToolDescriptor, target: TemporalTarget) -> list[Any]:
    """One object; or each parameter in its place, with the schema's default for one that is left out. What is left out
    at the end stays out: the code has defaults of its own."""
    given: Any = json.loads(call.input)
    given = json.loads(given) if isinstance(given, str) else given
    if not target.parameters:
        return [given]
    passed = [name for name in target.parameters if name in given]
    last = target.parameters.index(passed[-1]) + 1 if passed else 0
    known = tool.input_schema.get("properties", {})
    return [given.get(name, known.get(name, {}).get("default")) for name in target.parameters[:last]]


def _returned(call: OpenCall, payload: Payload) -> ToolResultBlock:
    encoding = payload.metadata.get("encoding", b"").decode("utf-8", "replace")
    state = ToolResultState.SUCCESS
    match encoding:
        case "json/plain" | "json/protobuf":
            text = payload.data.decode("utf-8", "replace")
            try:
                output = as_output(json.loads(text))
            except (ValueError, RecursionError):
                output = text
        case "binary/null":
            output = "null"
        case "binary/plain":
            output = f"It returned {len(payload.data)} bytes that are no text."
        case _:
            state = ToolResultState.ERROR
            output = (
                f"It ran, and what it returned can't be read here: its encoding is {encoding[:100]!r}, for which the "
                "workers of this session have no codec."
            )
    if isinstance(output, str):  # JSON may hold half a surrogate pair, which could not be recorded
        output = output.encode("utf-8", "replace").decode("utf-8")
    return ToolResultBlock(id=call.block.id, name=call.block.name, output=output, state=state)


def _failed(
    call: OpenCall, target: TemporalTarget, effect: Effect, error: FailureError
) -> e.ToolReturned | e.ResultReceived:
    cause: BaseException | None = error
    while isinstance(cause, ActivityError | ChildWorkflowError | NexusOperationError):
        cause = cause.cause
    match cause:
        case TemporalTimeout() if cause.type is TimeoutType.SCHEDULE_TO_START:
            hours = activity_options.QUEUE_SECONDS // 3600
            why = f"no worker took it from the task queue {target.queue!r} within {hours} h. Start a worker there"
            return e.ToolReturned(result=failed_to_run(call.block, why))
        case TemporalTimeout() if cause.type is TimeoutType.HEARTBEAT:
            return _lost(call, effect, "the worker that ran it was lost")
        case TemporalTimeout():
            return _lost(call, effect, "it ran out of time, or its worker was lost")
        case TerminatedError():
            return _lost(call, effect, f"somebody terminated {target.place}")
        case ApplicationError() if _is_unregistered(cause, target):
            why = f"no worker that was asked has {target.place}, so nothing ran. Start a worker that has it"
            return e.ToolReturned(result=failed_to_run(call.block, why))
        case ApplicationError() if cause.type in _STOPPED:
            return _lost(call, effect, "it was stopped in the middle, or its worker was")
        case ApplicationError() | HandlerError():
            said = f"{call.block.name} failed: {str(cause)[:FAILURE_CHARS]}".encode("utf-8", "replace").decode("utf-8")
            failed = ToolResultBlock(id=call.block.id, name=call.block.name, output=said, state=ToolResultState.ERROR)
            return e.ResultReceived(result=failed)
        case _:
            return _lost(call, effect, f"it ended without a result ({type(cause).__name__})")


def _lost(call: OpenCall, effect: Effect, why: str) -> e.ToolReturned:
    """A call that gave no outcome. Of a `once` call nobody knows whether it ran, and the result says so."""
    return e.ToolReturned(result=(outcome_unknown if effect is Effect.ONCE else failed_to_run)(call.block, why))


def _is_unregistered(cause: BaseException | None, target: TemporalTarget) -> bool:
    """Whether an SDK says that the worker does not have the activity: then none of its code ran."""
    if target.kind != "activity" or not isinstance(cause, ApplicationError):
        return False
    begins = tuple(start.format(target.name) for start in _UNREGISTERED.get(cause.type or "", ()))
    found = cause.message.startswith(begins) if begins else False
    return found and (cause.type != "NotFoundError" or _NOT_REGISTERED in cause.message.lower())
