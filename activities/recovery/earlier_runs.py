"""The runs that a session had before this one, and how each of them ended, as the server tells it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client, WorkflowHistoryEventFilterType
from temporalio.service import RPCError, RPCStatusCode

from longhaul.activities.contract import BAD_START
from longhaul.agent.plain.values import OpenValue

MOST_RUNS = 50
LOOK_BACK_EVENTS = 20
MOST_HOPS = 1_000


class ClosedAt(OpenValue):
    """What a session answers that has closed of itself (`workflows.contract.Closed`)."""

    seq: int
    generation: int


class Ended(NamedTuple):
    """One run of the session that is over."""

    run_id: str
    closed: ClosedAt | None = None
    """None: something ended it from outside."""
    began: bool = True
    """False: it failed on its input before it was a session at all."""
    base: str = ""
    """The run that was reset to begin this one. Whether this one has noticed that, it does not say."""


class Gone(Exception):
    """The server knows this run no more."""


async def earlier_runs(client: Client, key: str, own: str, known: str, base: str = "") -> tuple[list[Ended], bool]:
    """The newest runs before `own`, newest first; those that went on in another run are left out.

    `known`: the run that the state store names, `base`: the one that was reset to begin this one. They are looked up by
    themselves, for the server's list may lag behind. The second value tells whether one is gone for ever. Raises
    RPCError.
    """
    listed = await _listed(client, key, own)
    ended: list[Ended] = []
    gone = False
    for named in filter(None, (known, base)):
        try:
            last = await ended_run(client, key, named)
        except Gone:
            gone = True
        else:
            if last.run_id not in (own, *listed, *(each.run_id for each in ended)):
                ended.append(last)
    for run_id in listed:
        try:
            ended.append(await ended_run(client, key, run_id))
        except Gone:
            continue  # deleted; the list says so in a while
    return ended, gone


async def ended_run(client: Client, key: str, run_id: str) -> Ended:
    """How the run ended, or the one that it went on in at last. Raises Gone, RPCError."""
    ended = await _end_of(client, key, run_id)
    return ended._replace(base=await base_of_reset(client, key, ended.run_id))


async def base_of_reset(client: Client, key: str, run_id: str) -> str:
    """The run that was reset to begin this one; empty where it began otherwise, or the server knows it no more. Raises
    RPCError."""
    execution = WorkflowExecution(workflow_id=key, run_id=run_id)
    first = GetWorkflowExecutionHistoryRequest(namespace=client.namespace, execution=execution, maximum_page_size=1)
    pages = GetWorkflowExecutionHistoryReverseRequest(namespace=client.namespace, execution=execution)
    try:
        began = (await client.workflow_service.get_workflow_execution_history(first)).history.events
        if not began or began[0].workflow_execution_started_event_attributes.original_execution_run_id == run_id:
            return ""
        while True:
            page = await client.workflow_service.get_workflow_execution_history_reverse(pages)
            for event in page.history.events:
                failed = event.workflow_task_failed_event_attributes
                if failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW:
                    return str(failed.base_run_id)
            pages.next_page_token = page.next_page_token
            if not page.next_page_token:
                return ""
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return ""
        raise


async def why_task_failed(client: Client, key: str, run_id: str) -> str:
    """The first sentence of what the run's last failed task said; empty when none of its last events is one."""
    newest = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=key, run_id=run_id),
            maximum_page_size=LOOK_BACK_EVENTS,
        )
    )
    for event in newest.history.events:
        if event.HasField("workflow_task_failed_event_attributes"):
            said = event.workflow_task_failed_event_attributes.failure.message
            return first_sentence(said)
    return ""


def first_sentence(text: str) -> str:
    return text.partition(". ")[0][:500]


async def _listed(client: Client, key: str, own: str) -> Sequence[str]:
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    query = f"WorkflowId = '{escaped}' AND ExecutionStatus != 'ContinuedAsNew'"
    runs = [run async for run in client.list_workflows(query, limit=MOST_RUNS) if run.run_id != own]
    return [run.run_id for run in sorted(runs, key=lambda run: run.start_time, reverse=True)]


async def _end_of(client: Client, key: str, run_id: str) -> Ended:
    """How the run ended, or the run that it went on in at last. Raises Gone."""
    for _ in range(MOST_HOPS):
        event = await _last_event(client, key, run_id)
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
                run_id = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
                return Ended(run_id, closed=_closed(event))
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
                failure = event.workflow_execution_failed_event_attributes.failure
                return Ended(run_id, began=failure.application_failure_info.type != BAD_START)
            case _:
                return Ended(run_id)
    raise Gone


async def _last_event(client: Client, key: str, run_id: str) -> HistoryEvent:
    handle = client.get_workflow_handle(key, run_id=run_id)
    only_the_end = WorkflowHistoryEventFilterType.CLOSE_EVENT
    try:
        events = [event async for event in handle.fetch_history_events(event_filter_type=only_the_end)]
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise Gone from error
        raise
    return events[-1] if events else HistoryEvent()


def _closed(event: HistoryEvent) -> ClosedAt | None:
    payloads: Sequence[Any] = event.workflow_execution_completed_event_attributes.result.payloads
    try:
        return ClosedAt.model_validate_json(payloads[0].data)
    except (ValidationError, IndexError):
        return None
