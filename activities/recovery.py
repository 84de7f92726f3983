"""The earlier incarnations of a session: its runs as the server tells of them, its state in the store, and what the
session itself answers page by page.

An older state is never taken for the newest one. What is not certain is held, and the hold says why.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client, WorkflowHandle, WorkflowHistoryEventFilterType
from temporalio.service import RPCError, RPCStatusCode

from longhaul.activities.contract import (
    BAD_START,
    ENTRIES,
    MESSAGES,
    NO_MESSAGES,
    SNAPSHOT,
    EntriesPage,
    MessagePage,
    SnapshotPage,
)
from longhaul.agent.entries import AnyEntry, Restored, Segment
from longhaul.agent.incarnation.continued_state import Carried, as_it_began, carry
from longhaul.agent.journal import Journal
from longhaul.agent.plain.text import Pages
from longhaul.agent.plain.values import OpenValue, digest_of, sparse
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.stores.state.store import DamagedRecord, SessionRecord, extra


class Claim(OpenValue):
    """What the newest incarnation of the session began with: it has said so here, and has written nothing yet."""

    source: Literal["nothing", "store", "history"]
    quarantine: str = sparse("")
    note: str = sparse("")
    after_deletion: bool = sparse(False)
    """The session had been deleted: no run from before this one counts."""


class IncarnationKey(NamedTuple):
    """Whose record it is."""

    user_id: str | None
    agent: str
    session_id: str
    number: int
    run_id: str
    """The run that writes it."""


def session_record(
    incarnation: IncarnationKey, carried: Carried, *, closed: bool = False, claim: Claim | None = None
) -> SessionRecord:
    """The record of this incarnation as far as it has come. Blocking: it writes out the whole state."""
    session = carried.session
    outside = {
        "carried": carried.model_dump(mode="json", exclude={"session": {"state": True, "keeping": {"segments"}}}),
        "state_digest": _digest(session.state),
    }
    return _record(incarnation, session.state, closed=closed, claim=claim, outside=outside).model_copy(
        update={
            "seq": session.seq,
            "segments": [segment.model_dump(mode="json") for segment in session.keeping.segments],
        }
    )


def empty_record(incarnation: IncarnationKey, claim: Claim) -> SessionRecord:
    """The record of an incarnation that begins with nothing: that it has started."""
    state = AgentState(session_id=incarnation.session_id, user_id=incarnation.user_id, agent=incarnation.agent)
    return _record(incarnation, state, closed=False, claim=claim, outside={})


def _record(
    incarnation: IncarnationKey, state: AgentState, *, closed: bool, claim: Claim | None, outside: dict[str, Any]
) -> SessionRecord:
    told: dict[str, Any] = {"claim": claim.model_dump(mode="json")} if claim else {}
    fields: dict[str, Any] = {
        "session_id": incarnation.session_id,
        "user_id": incarnation.user_id,
        "agent_id": incarnation.agent,
        "incarnation": incarnation.number,
        "closed": closed,
        "run_id": incarnation.run_id,
        "state": state,
    }
    return SessionRecord(**fields, **outside, **told)


def claim_of(record: SessionRecord) -> Claim | None:
    """None when a checkpoint has been written since, or when it was never claimed."""
    told = extra(record, "claim")
    return None if told is None else Claim.model_validate(told)


def was_edited(record: SessionRecord) -> bool:
    """Whether somebody has put another state into the record since a session wrote it."""
    return bool(extra(record, "state_digest") != _digest(record.state))


def _digest(state: AgentState) -> str:
    # Without defaults: a release that adds a field must not take every stored state for an edited one.
    return digest_of(state.model_dump(mode="json", exclude_defaults=True))


@dataclass(frozen=True, slots=True)
class StoredIncarnation:
    """The state store's record."""

    incarnation: int
    closed: bool = False
    """It says that the session ended with it."""
    carried: Carried | None = None
    """What can be gone on with; None for an incarnation that had started and had written nothing."""
    place: tuple[int, int] = (0, 0)
    """Generation and entry that it shows; somebody who edits the state does not change it."""
    edited: bool = False
    quarantine: str = ""
    """Why the incarnation was held that has written nothing but that it has started."""


@dataclass
class Past:
    """All that was found out about the lives before this one."""

    stored: StoredIncarnation | None = None
    damage: DamagedRecord | None = None
    closed: bool = False
    """The newest incarnation closed of itself, and the store holds all of it."""
    gone: bool = False
    """The run that wrote the record has no history any more."""
    lost: str = ""
    """Why the newest run that the server knows can't be read; empty when it can, or there is none."""
    history: Carried | None = None
    """The newest run that had started in earnest, as its history tells it."""
    started: list[Carried] = field(default_factory=list[Carried])
    """Runs after that one that ended before they had found out about it, newest first."""
    deleted: int = 0
    """Generation of the mark that the session was deleted, where that lies in the record's place: nothing that was
    before it counts, wherever it is still found."""
    reset: bool = False
    """Somebody has reset the session: there was an incarnation before this one, whatever is left of it."""
    claimed: bool = False
    """The record was written by one of those: that it had started, and with what."""


def found_in(past: Past) -> Restored:
    """What the session goes on with, the operations included that runs took in which never came to begin.

    Raises DamagedRecord when a person has to fix the store first.
    """
    base, carried = _base(past)
    for started in reversed(past.started):
        carried = as_it_began(started, base, carried)
        base = base.model_copy(update={"source": "history", "incarnation": base.incarnation + 1})
    if past.damage is not None:
        base = base.model_copy(update={"note": f"{base.note} The store's record was written again: {past.damage}"})
    return base.model_copy(update={"carried": carried.model_dump(mode="json") if carried else None})


def _base(past: Past) -> tuple[Restored, Carried | None]:
    if past.deleted:
        return Restored(incarnation=past.deleted + 1, source="nothing"), None
    stored, history = past.stored, past.history
    kept = stored.carried if stored else None
    incarnation = 1 + max(stored.incarnation if stored else 0, history.session.incarnation.number if history else 0)
    note = EDITED if stored is not None and stored.edited else RESET if past.reset else ""
    if past.closed and kept is not None:
        return Restored(incarnation=incarnation, source="store", note=note), kept
    if trouble := _trouble(past):
        if past.damage is not None:
            raise past.damage
        if kept is None:
            return Restored(incarnation=incarnation, source="nothing", quarantine=_nothing_left(trouble)), None
        return Restored(incarnation=incarnation, source="store", note=note, quarantine=_may_be_old(kept, trouble)), kept
    if history is not None and (kept is None or stored is None or stored.place <= place_of(history)):
        return Restored(incarnation=incarnation, source="history", note=RESET if past.reset else REBUILT), history
    if past.damage is not None:
        raise past.damage
    if stored is None or kept is None:
        return Restored(incarnation=incarnation, source="nothing"), None
    quarantine = stored.quarantine if past.claimed else ""
    if history is not None:
        quarantine = _may_be_old(kept, "its history ends before that")
    return Restored(incarnation=incarnation, source="store", note=note, quarantine=quarantine), kept


def _trouble(past: Past) -> str:
    """Why nobody can say whether something came after what there is; empty when that is certain."""
    if past.lost:
        return past.lost
    if past.reset and past.history is None:
        return GONE
    stored = past.stored
    if stored is None or not past.gone or stored.closed:
        return ""
    # An incarnation after the one that wrote the record may have failed to say so: its history is enough.
    newer = past.history is not None and past.history.session.incarnation.number >= stored.incarnation
    return "" if newer else GONE


GONE = "its history is gone"
RESET = "It was reset from outside, which takes nothing back: it goes on from what is known of the run before that."
REBUILT = "It was rebuilt from the history of a run that was ended from outside."
EDITED = "It goes on with the state that somebody put into the state store."


def place_of(carried: Carried) -> tuple[int, int]:
    """Later places have a higher one."""
    return carried.session.incarnation.number, carried.session.seq


def _may_be_old(stored: Carried, why: str) -> str:
    return (
        f"restored from the checkpoint of entry {stored.session.seq}; later steps are unknown, for the session did not "
        f"close of itself and {why}. Look at what it has done, then `longhaul resume {stored.session.state.session_id}`"
    )


def _nothing_left(why: str) -> str:
    return (
        f"an earlier incarnation of this session is known, but {why} and no checkpoint of it is left: what it said and "
        "did is lost. Look at what it has done; `longhaul resume` lets it start again"
    )


MOST_RUNS = 50
LOOK_BACK_EVENTS = 20
MOST_HOPS = 1_000


class ClosedAt(OpenValue):
    """What a session answers that has closed of itself (`workflows.contract.Closed`)."""

    seq: int
    incarnation: int


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
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    query = f"WorkflowId = '{escaped}' AND ExecutionStatus != 'ContinuedAsNew'"
    runs = [run async for run in client.list_workflows(query, limit=MOST_RUNS) if run.run_id != own]
    listed = [run.run_id for run in sorted(runs, key=lambda run: run.start_time, reverse=True)]
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


async def _end_of(client: Client, key: str, run_id: str) -> Ended:
    """How the run ended, or the run that it went on in at last. Raises Gone."""
    for _ in range(MOST_HOPS):
        handle = client.get_workflow_handle(key, run_id=run_id)
        only_the_end = WorkflowHistoryEventFilterType.CLOSE_EVENT
        try:
            events = [event async for event in handle.fetch_history_events(event_filter_type=only_the_end)]
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise Gone from error
            raise
        event = events[-1] if events else HistoryEvent()
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
                run_id = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
                payloads: Sequence[Any] = event.workflow_execution_completed_event_attributes.result.payloads
                try:
                    closed = ClosedAt.model_validate_json(payloads[0].data)
                except (ValidationError, IndexError):
                    closed = None
                return Ended(run_id, closed=closed)
            case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
                failure = event.workflow_execution_failed_event_attributes.failure
                return Ended(run_id, began=failure.application_failure_info.type != BAD_START)
            case _:
                return Ended(run_id)
    raise Gone


QUERY_TIMEOUT = timedelta(seconds=10)
"""A session that is busy answers late; one that nobody hosts does not answer at all."""


QUICK_CHARS = 20_000
"""A text so long is read, or a state of such a text written out, before a thread has taken it."""

STATUS = "status"
SNAPSHOT_TRIES = 20


class Sealed(OpenValue):
    """Of what the session answers about itself: where its older entries are."""

    segments: tuple[Segment, ...] = sparse(())


class Unsteady(Exception):
    """The session moved on while it was read, each time that it was tried."""


async def entries_after(session: WorkflowHandle[Any, Any], seq: int) -> list[AnyEntry]:
    """What the session has recorded after entry `seq`, up to now. Raises RPCError or WorkflowQueryFailedError."""
    taken: list[AnyEntry] = []
    while True:
        start = (taken[-1].seq if taken else seq) + 1
        page: EntriesPage = await session.query(ENTRIES, start, result_type=EntriesPage, rpc_timeout=QUERY_TIMEOUT)
        taken += page.entries
        if not page.entries or page.entries[-1].seq >= page.seq:
            return taken


async def since(session: WorkflowHandle[Any, Any], seq: int) -> tuple[list[AnyEntry], Carried]:
    """Both of what a checkpoint needs, as of one moment: what was recorded after entry `seq`, and what the session
    would take along without that. Raises as `snapshot`."""
    return await parted(await _text(session, seq, NO_MESSAGES))


async def read(text: str) -> Carried:
    """All of what the session answers."""
    whole = Carried.model_validate_json
    return whole(text) if len(text) <= QUICK_CHARS else await asyncio.to_thread(whole, text)


async def parted(text: str) -> tuple[list[AnyEntry], Carried]:
    """The same, its entries by themselves."""
    return _parted(text) if len(text) <= QUICK_CHARS else await asyncio.to_thread(_parted, text)


def _parted(text: str) -> tuple[list[AnyEntry], Carried]:
    whole = Carried.model_validate_json(text)
    record = Journal.over(whole.session)
    return record.log, carry(record, whole.events, record.seq, record.messages_total)


async def sealed(session: WorkflowHandle[Any, Any]) -> tuple[Segment, ...]:
    """The segments that the session has had written, oldest first. Raises RPCError or WorkflowQueryFailedError."""
    told: Sealed = await session.query(STATUS, result_type=Sealed, rpc_timeout=QUERY_TIMEOUT)
    return told.segments


async def messages(session: WorkflowHandle[Any, Any], start: int) -> MessagePage:
    """Messages from number `start`, or from the first one that the session still holds. Raises the same."""
    page: MessagePage = await session.query(MESSAGES, start, result_type=MessagePage, rpc_timeout=QUERY_TIMEOUT)
    return page


async def snapshot(session: WorkflowHandle[Any, Any]) -> Carried:
    """All that the session still holds. Raises RPCError, WorkflowQueryFailedError, and Unsteady when its pages never
    fit together."""
    return Carried.model_validate_json(await _text(session, 0, 0))


async def _text(session: WorkflowHandle[Any, Any], saved: int, saved_messages: int) -> str:
    for _ in range(SNAPSHOT_TRIES):
        text = await _one_state(session, saved, saved_messages)
        if text is not None:
            return text
    raise Unsteady("the session moved on each time that its state was read; it is tried again")


async def _one_state(session: WorkflowHandle[Any, Any], saved: int, saved_messages: int) -> str | None:
    """The whole text, or None when the session moved on between two pages."""
    pages = Pages()
    while not pages.whole:
        asked = [saved, saved_messages, len(pages.text), pages.seq]
        page: SnapshotPage = await session.query(
            SNAPSHOT, args=asked, result_type=SnapshotPage, rpc_timeout=QUERY_TIMEOUT
        )
        if not pages.take(page.seq, page.total, page.text):
            return None
    return pages.text
