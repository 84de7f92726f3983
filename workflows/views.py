"""Answers queries: the record as status, pending calls, pages and results, and all that a session would carry into
another run.
"""

from typing import Any, NamedTuple

from longhaul.activities.contract import EntriesPage, SnapshotPage, SpecTexts, TranscriptPage
from longhaul.agent.decisions.compaction import next_cut
from longhaul.agent.decisions.deadline_steps import to_tell, when
from longhaul.agent.decisions.subagent_start import at_work
from longhaul.agent.entries import Doubt
from longhaul.agent.fold.agent_state import OpenCall, effect_of
from longhaul.agent.fold.approval_digest import seen_digest
from longhaul.agent.fold.context_state import tokens
from longhaul.agent.letters import request_operations
from longhaul.agent.letters.approval_operations import must_sign
from longhaul.agent.letters.peer_operations import shutdown
from longhaul.agent.letters.request_operations import told
from longhaul.agent.letters.result_operations import open_doubts
from longhaul.agent.life.rollover_state import carry
from longhaul.agent.permission.preview import Preview, at_length, preview
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ToolCallState, title_of
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.agent.views.events import EventFold
from longhaul.agent.views.session_views import CALL_ID, family, path, reply_word, standing, status_word, tasks_told
from longhaul.agent.views.transcript import page, reply_message
from longhaul.workflows.contract import (
    PAGE_BYTES,
    EventPage,
    MessagePage,
    PendingCall,
    PendingHere,
    ReplyResult,
    Status,
    WaitingRequest,
    lacking,
    outage,
)

SHOWN_REQUESTS = 20
REQUEST_CHARS = 600


def lacking_budget(record: Record) -> list[PendingCall]:
    """No call of a model, but somebody has to answer all the same."""
    question = record.account.question if record.account else None
    if question is None or record.reply is None:
        return []
    lacks = {"lacks": [lack.model_dump(mode="json") for lack in question.lacks]}
    return [
        PendingCall(
            path=path(record, CALL_ID),
            reply_id=record.reply.reply_id,
            call_id=CALL_ID,
            tool=CALL_ID,
            input=canonical_json(lacks),
            waits_for="budget",
            reason=question.why,
            asked_at=iso(question.at),
        )
    ]


def in_doubt(doubt: Doubt, where: str) -> PendingCall:
    return PendingCall(
        path=where,
        reply_id=doubt.reply_id,
        call_id=doubt.call_id,
        tool=doubt.tool,
        input=doubt.input,
        waits_for="settlement",
        reason=doubt.why,
        asked_at=iso(doubt.at),
    )


def first_requests(record: Record) -> tuple[WaitingRequest, ...]:
    """Those that have not begun, in their order."""
    joins = len(record.requests.steering)
    return tuple(
        WaitingRequest(
            request_id=each.request_id,
            reply_id=each.reply_id,
            when=each.when,
            joins=place < joins,
            text=title_of(each.messages, REQUEST_CHARS),
        )
        for place, each in enumerate(request_operations.waiting(record)[:SHOWN_REQUESTS])
    )


SHOWN_DECISIONS = 20
SHOWN_ADJUSTMENTS = 20


def waiting(record: Record) -> list[OpenCall]:
    return record.reply.waiting() if record.reply else []


def pending_here(record: Record) -> PendingHere:
    calls, children = tuple(pending(record)), tuple(record.children.values())
    return PendingHere(status=status_word(record), calls=calls, children=children)


def pending(record: Record, most: int | None = None) -> list[PendingCall]:
    """`most`: of the first ones so many."""
    calls, doubts = waiting(record), open_doubts(record)
    return [
        PendingCall(
            reply_id=record.reply.reply_id if record.reply else "",
            call_id=call.block.id,
            tool=call.block.name,
            input=call.input,
            waits_for=call.waits_for or "",
            reason=call.reason,
            risk=call.facts.risk,
            notice=call.facts.notice,
            suggested_rules=call.suggested_rules,
            asked_at=iso(call.asked_at),
            digest=seen_digest(call, record),
            # What lists keep is written down when it changes: so they have of it what verdicts have, and no more.
            preview=_preview(record, call, whole=most is None),
            **when(call),
            signed=must_sign(record),
            approvers=record.state.permission_context.approvers(call.block.name),
            approved_by=tuple(one.approver for one in call.approvals),
            asked=call.asked.shown() if call.asked is not None else None,
            path=path(record, call.block.name),
        )
        for call in calls[:most]
    ] + [
        *lacking_budget(record),
        *(
            in_doubt(doubt, path(record, doubt.tool))
            for doubt in doubts[: None if most is None else max(most - len(calls), 0)]
        ),
    ]


def _preview(record: Record, call: OpenCall, *, whole: bool) -> Preview | None:
    tool = record.provided.tools.get(call.block.name)
    if tool is None:
        return None
    seen = preview(call.input, call.facts, effect_of(call, tool), tool.name if tool.inside else "")
    return at_length(seen, call.facts, has_network=record.spec.sandbox_network is not False) if whole else seen


def status(record: Record) -> Status:
    state = record.state
    newest = dict.fromkeys(record.context.adjusted[-SHOWN_ADJUSTMENTS:])
    adjusted = {model: tuple(sentence for of, sentence in newest if of == model) for model, _ in newest}
    return Status(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        kind=record.spec.kind,
        model=record.spec.model,
        status=status_word(record),
        reply_id=record.reply.reply_id if record.reply else "",
        queued=len(record.requests.queue),
        requests=first_requests(record),
        pending=len(waiting(record)),
        doubts=len(open_doubts(record)),
        messages=record.messages_total,
        context_tokens=tokens(record),
        context_length=record.provided.window,
        compressions=record.context.epoch - 1,
        compression_tries=record.compaction.tries,
        compressing=record.compaction.asked is not None and (record.reply is not None or next_cut(record) is not None),
        compression_error=record.compaction.error.message if record.compaction.error else "",
        adjusted=adjusted,
        **_spent(record),
        refused=record.refused.count,
        decisions=state.decisions[-SHOWN_DECISIONS:],
        mode=state.mode.value,
        **tasks_told(record),
        workspace_root=record.provided.workspace_root,
        left_out=record.provided.left_out,
        cwd=state.tool_context.cwd,
        behaviour=state.behaviour,
        seq=record.keeping.changed,
        saved_seq=record.keeping.mirrored,
        generation=record.life.generation,
        hold=record.life.hold,
        **told(record),
        note=record.life.note,
        segments=tuple(record.keeping.segments),
        **_trouble(record),
    )


def _spent(record: Record) -> dict[str, Any]:
    return {
        "model_calls": record.spent.model_calls,
        "input_tokens": record.spent.usage.input_tokens,
        "output_tokens": record.spent.usage.output_tokens,
        "by_model": record.spent.by_model,
        "cache_missed": record.spent.cache_missed,
        "lost": record.spent.lost,
        "tokens_estimated": record.spent.usage.estimated,
        "budget": standing(record),
    }


def _trouble(record: Record) -> dict[str, Any]:
    """What stands in the session's way, and in the way of telling of it; what failed, what was refused; its family."""
    last = next(reversed(record.requests.finished.values()), None)
    refused = record.refused.newest[-20:]
    return {
        **family(record),
        "last_error": last.error if last else None,
        "last_refusals": tuple({"name": one.name, "reason": one.reason, "at": iso(one.at)} for one in refused),
        "checkpoint_error": record.keeping.failed.error.message if record.keeping.failed else "",
        **shutdown(record),
        "lacking": lacking(record),
        "outage": outage(record),
        "host_away": record.life.host_away,
        "notify_error": record.notices.failed.error if record.notices.failed and to_tell(record) else "",
    }


def result(record: Record, reply_id: str) -> ReplyResult:
    """How a reply stands. A message that is too large for one answer comes with its last blocks only.

    Of a request that has joined another one's reply, it is that one.
    """
    reply_id = record.requests.joined.get(reply_id, reply_id)
    if reply_id in record.requests.finished:
        standing = "finished"
    elif record.reply and record.reply.reply_id == reply_id:
        standing = reply_word(record)
    elif any(entry.reply_id == reply_id for entry in request_operations.waiting(record)):
        standing = "queued"
    else:
        standing = "unknown"
    delegates = standing == "working" and any(child.reply_id == reply_id for child in at_work(record))
    lacks = lacking(record) if standing == "working" else ""
    message = reply_message(record, reply_id) if delegates or standing in ("finished", "waiting") else None
    if message is None:
        return ReplyResult(status=standing, lacking=lacks)
    blocks = [message.model_copy(update={"content": (block,)}) for block in reversed(message.content)]
    kept = len(page(blocks, 0, PAGE_BYTES)) if blocks else 0
    cut = message.model_copy(update={"content": message.content[len(message.content) - kept :]})
    ended = record.requests.finished.get(reply_id)
    start, end = (ended.start, ended.end) if ended else (record.requests.reply_start, record.messages_total)
    if len(cut.content) == len(message.content) and start >= record.context.transcript_base:
        return ReplyResult(status=standing, message=cut, delegates=delegates, lacking=lacks)
    cut_at = {"complete": False, "start": start, "end": end}
    return ReplyResult(status=standing, message=cut, delegates=delegates, lacking=lacks, **cut_at)


def context_page(record: Record, start: int) -> TranscriptPage:
    """Messages of the model's context from `start`; number 0 is the summary, when there is one."""
    context = record.state.context
    if record.state.summary:
        # Only the asked-for part is put together: a long context is paged through many times.
        head = [summary_message(record.state.summary)] if start == 0 else []
        shown = page([*head, *context[max(start - 1, 0) :]], 0, PAGE_BYTES)
    else:
        shown = page(context, start, PAGE_BYTES)
    return TranscriptPage(epoch=record.context.epoch, start=start, total=record.context_length, messages=shown)


def message_page(record: Record, start: int) -> MessagePage:
    """Messages by number from `start`, or from the first one that the session still holds."""
    first = max(start, record.context.transcript_base)
    return MessagePage(
        start=first,
        total=record.messages_total,
        messages=page(record.context.transcript, first - record.context.transcript_base, PAGE_BYTES),
    )


def event_page(fold: EventFold, record: Record, start: int) -> EventPage:
    first = fold.before.count + 1
    events = fold.catch_up(record.log)
    shown = page(events, max(start - first, 0), PAGE_BYTES)
    return EventPage(
        events=shown,
        last=fold.before.count + len(events),
        first=first,
        reply_id=record.reply.reply_id if record.reply else "",
        since=record.reply.started_at if record.reply else 0,
        model_calls=record.spent.model_calls,
        open_calls=tuple(
            call_id for call_id, call in record.open_calls.items() if call.state is not ToolCallState.FINISHED
        ),
    )


def entries_page(record: Record, start: int) -> EntriesPage:
    at = next((at for at, entry in enumerate(record.log) if entry.seq >= start), len(record.log))
    return EntriesPage(entries=page(record.log, at, PAGE_BYTES), seq=record.seq, messages=record.messages_total)


def spec_texts(record: Record) -> SpecTexts:
    return SpecTexts(
        spec_digest=record.provided.spec_digest,
        system_prompt=record.spec.system_prompt
        if record.provided.system_prompt is None
        else record.provided.system_prompt,
        tools=tuple(record.provided.tools.values()),
        skills=record.spec.skills,
    )


KEPT_SNAPSHOTS = 3


class SnapshotAsk(NamedTuple):
    saved: int
    saved_messages: int
    start: int
    """Character of the text."""
    seq: int
    """Of the page before, to read on in the same state; 0 for the first page."""


class Snapshot:
    """Texts that are pulled in pages. One is kept until its last page was read, although the session moves on: under a
    storm of letters no two pages would ever be of the same state."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, int], str] = {}
        """By the entry that the state is of, and the entry and the number of messages up to which it was saved."""

    def page(self, record: Record, before: EventsSoFar, ask: SnapshotAsk) -> SnapshotPage:
        key = (ask.seq, ask.saved, ask.saved_messages)
        if ask.start == 0 or key not in self._kept:
            key = (record.seq, ask.saved, ask.saved_messages)
            while len(self._kept) >= KEPT_SNAPSHOTS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = carry(record, before, ask.saved, ask.saved_messages).model_dump_json()
        whole = self._kept[key]
        text = whole[ask.start : ask.start + PAGE_BYTES]
        if ask.start + len(text) >= len(whole):
            del self._kept[key]
        return SnapshotPage(seq=key[0], total=len(whole), text=text)
