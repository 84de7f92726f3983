"""Replays live sessions and hubs against the code of this installation: what a worker of this build would make of
them.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace

from temporalio.client import Client, WorkflowExecution, WorkflowHistory
from temporalio.converter import DataConverter, DefaultFailureConverter
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from longhaul.starter.client.cards import card_of, query, texts_of_memo
from longhaul.starter.client.hubs import OPEN_HUBS
from longhaul.starter.worker_host.own_build import own_build_id
from longhaul.workflows.contract import HUB
from longhaul.workflows.hubs import AgentHub
from longhaul.workflows.session import AgentSession

MOST_CHARACTERS = 600
"""Of what is told of a session that would break."""
_EVENT = re.compile(r"event[^0-9]{0,20}(\d+)", re.IGNORECASE)
_MESSAGE = re.compile(r'message: "((?:[^"\\]|\\.)*)"')
"""The SDK tells of a failed replay in the words of its core, with the sentence in the midst of them."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """One live session, and whether this build goes on with it. Of a hub its name stands in place of the session's."""

    session_id: str
    user_id: str | None
    agent: str
    workflow_id: str
    events: int
    ok: bool
    why: str = ""
    """What this build does otherwise, and at which event, as far as the replay can tell."""


@dataclass(frozen=True, slots=True)
class OpenSessions:
    """The sessions and hubs that are open, and those of them that are replayed."""

    total: int
    chosen: tuple[WorkflowExecution, ...]


async def live_sessions(client: Client, task_queue: str, limit: int | None) -> OpenSessions:
    """Open sessions and hubs of a queue: all, or as many as the limit says: half the longest, half the newest."""
    rows = [
        row
        for wanted in (query(), OPEN_HUBS)
        async for row in client.list_workflows(wanted)
        if row.task_queue == task_queue
    ]
    return OpenSessions(len(rows), tuple(rows) if limit is None else choose(rows, limit))


def choose(rows: Sequence[WorkflowExecution], limit: int) -> tuple[WorkflowExecution, ...]:
    """The longest have been through most, and the newest are what the code of today begins."""
    longest = sorted(rows, key=lambda row: row.history_length or 0, reverse=True)
    newest = sorted(rows, key=lambda row: row.start_time, reverse=True)
    chosen = {row.id: row for row in [*longest[: limit // 2], *newest]}
    return tuple(chosen.values())[:limit]


def replayer(converter: DataConverter, namespace: str) -> Replayer:
    """Of sessions and hubs of that namespace, as a worker of this build would run them."""
    return Replayer(
        workflows=[AgentSession, AgentHub],
        # Names of blobs begin with the namespace: without it each would be taken for a foreign one.
        namespace=namespace,
        # Without it the SDK reads the bytecode of every loaded module to make one up.
        build_id=own_build_id(),
        # A failure converter that encodes would hide the sentence.
        data_converter=replace(converter, failure_converter_class=DefaultFailureConverter),
        workflow_runner=UnsandboxedWorkflowRunner(),
        # The SDK's own log goes to stdout, and says of each failure what is found here anyway.
        runtime=Runtime(telemetry=TelemetryConfig(logging=None)),
    )


async def replay_failure(replayer: Replayer, history: WorkflowHistory) -> str:
    """What this build does otherwise than was recorded, and at which event, in one line; empty: it goes on with it."""
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    return "" if result.replay_failure is None else _describe_failure(result.replay_failure, history)


async def replay(client: Client, rows: Iterable[WorkflowExecution]) -> AsyncIterator[Replayed]:
    """Each session as it stands now, one after the other; one that has ended meanwhile is passed over."""
    this_build = replayer(client.data_converter, client.namespace)
    for row in rows:
        try:
            history = await client.get_workflow_handle(row.id, run_id=row.run_id).fetch_history()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            continue
        why = await replay_failure(this_build, history)
        if row.workflow_type == HUB:
            memo = await texts_of_memo(row) or {}
            named = memo.get("hub") or row.id, memo.get("user"), ""
        else:
            card = await card_of(row)
            named = card.session_id, card.user_id, card.agent
        yield Replayed(*named, row.id, len(history.events), not why, why)


def _describe_failure(failure: Exception, history: WorkflowHistory) -> str:
    """The failure in one line: what the history has at the event that it names, and what this build says of it."""
    text = " ".join(str(failure).split())
    quoted = _MESSAGE.search(text)
    said = quoted[1].replace('\\"', '"') if quoted else text
    number = _EVENT.search(text)
    where = ""
    if number and 0 < int(number[1]) <= len(history.events):
        event = history.events[int(number[1]) - 1]
        kind = (event.WhichOneof("attributes") or "").removesuffix("_event_attributes").replace("_", " ")
        scheduled = event.activity_task_scheduled_event_attributes.activity_type.name
        named = f"{kind} {scheduled}".strip()
        where = f"at event {number[1]} ({named}): "
    return f"{where}{said}"[:MOST_CHARACTERS]
