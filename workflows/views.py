"""Answers queries: the journal as status, pending calls, pages and results, and all that a session would carry into
another run.
"""

from typing import Any, NamedTuple

from longhaul.activities.contract import EntriesPage, SnapshotPage, SpecTexts, TranscriptPage
from longhaul.agent.decisions.compaction import next_cut
from longhaul.agent.decisions.deadline_steps import to_tell, when
from longhaul.agent.entries import UnknownOutcome
from longhaul.agent.incarnation.continued_state import carry
from longhaul.agent.journal import Journal
from longhaul.agent.operations import request_operations
from longhaul.agent.operations.approval_operations import must_sign
from longhaul.agent.operations.peer_operations import shutdown
from longhaul.agent.operations.request_operations import pause_fields
from longhaul.agent.operations.result_operations import unresolved_outcomes
from longhaul.agent.permission.preview import Preview, at_length, preview
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.reducer.agent_state import OpenCall, effect_of
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.reducer.context_state import tokens
from longhaul.agent.values.conversation.messages import ToolCallState, title_of
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.session_views import (
    CALL_ID,
    family,
    is_left_to_subagents,
    path,
    reply_word,
    standing,
    status_word,
    tasks_told,
)
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


def lacking_budget(journal: Journal) -> list[PendingCall]:
    """No call of a model, but somebody has to answer all the same."""
    question = journal.account.question if journal.account else None
    if question is None or journal.reply is None:
        return []
    lacks = {"lacks": [lack.model_dump(mode="json") for lack in question.lacks]}
    return [
        PendingCall(
            path=path(journal, CALL_ID),
            reply_id=journal.reply.reply_id,
            call_id=CALL_ID,
            tool=CALL_ID,
            input=canonical_json(lacks),
            waits_for="budget",
            reason=question.why,
            asked_at=iso(question.at),
        )
    ]


def outcome_unknown(unknown_outcome: UnknownOutcome, where: str) -> PendingCall:
    return PendingCall(
        path=where,
        reply_id=unknown_outcome.reply_id,
        call_id=unknown_outcome.call_id,
        tool=unknown_outcome.tool,
        input=unknown_outcome.input,
        waits_for="resolution",
        reason=unknown_outcome.why,
        asked_at=iso(unknown_outcome.at),
    )


def first_requests(journal: Journal) -> tuple[WaitingRequest, ...]:
    """Those that have not started, in their order."""
    joins = len(journal.requests.steering)
    return tuple(
        WaitingRequest(
            request_id=each.request_id,
            reply_id=each.reply_id,
            when=each.when,
            joins=place < joins,
            text=title_of(each.messages, REQUEST_CHARS),
        )
        for place, each in enumerate(request_operations.waiting(journal)[:SHOWN_REQUESTS])
    )


SHOWN_DECISIONS = 20
SHOWN_ADJUSTMENTS = 20


def waiting(journal: Journal) -> list[OpenCall]:
    return journal.reply.waiting() if journal.reply else []


def pending_here(journal: Journal) -> PendingHere:
    calls, children = tuple(pending(journal)), tuple(journal.children.values())
    delegates = is_left_to_subagents(journal)
    return PendingHere(status=status_word(journal), calls=calls, children=children, delegates=delegates)


def pending(journal: Journal, most: int | None = None) -> list[PendingCall]:
    """`most`: of the first ones so many."""
    calls, unknown_outcomes = waiting(journal), unresolved_outcomes(journal)
    return [
        PendingCall(
            reply_id=journal.reply.reply_id if journal.reply else "",
            call_id=call.block.id,
            tool=call.block.name,
            input=call.input,
            waits_for=call.waits_for or "",
            reason=call.reason,
            risk=call.analysis.risk,
            notice=call.analysis.notice,
            suggested_rules=call.suggested_rules,
            asked_at=iso(call.asked_at),
            digest=seen_digest(call, journal),
            # What lists keep is written down when it changes: so they have of it what verdicts have, and no more.
            preview=_preview(journal, call, whole=most is None),
            **when(call),
            signed=must_sign(journal),
            approvers=journal.state.permission_context.approvers(call.block.name),
            approved_by=tuple(one.approver for one in call.approvals),
            asked=call.asked.shown() if call.asked is not None else None,
            path=path(journal, call.block.name),
        )
        for call in calls[:most]
    ] + [
        *lacking_budget(journal),
        *(
            outcome_unknown(unknown_outcome, path(journal, unknown_outcome.tool))
            for unknown_outcome in unknown_outcomes[: None if most is None else max(most - len(calls), 0)]
        ),
    ]


def _preview(journal: Journal, call: OpenCall, *, whole: bool) -> Preview | None:
    tool = journal.provided.tools.get(call.block.name)
    if tool is None:
        return None
    seen = preview(call.input, call.analysis, effect_of(call, tool), tool.name if tool.inside else "")
    return at_length(seen, call.analysis, has_network=journal.spec.sandbox_network is not False) if whole else seen


def status(journal: Journal) -> Status:
    state = journal.state
    newest = dict.fromkeys(journal.context.adjusted[-SHOWN_ADJUSTMENTS:])
    adjusted = {model: tuple(sentence for of, sentence in newest if of == model) for model, _ in newest}
    return Status(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=journal.spec.name,
        custom_agent=journal.spec.custom_agent,
        model=journal.spec.model,
        status=status_word(journal),
        priority=journal.spec.priority,
        reply_id=journal.reply.reply_id if journal.reply else "",
        queued=len(journal.requests.queue),
        requests=first_requests(journal),
        pending=len(waiting(journal)),
        unknown_outcomes=len(unresolved_outcomes(journal)),
        messages=journal.messages_total,
        context_tokens=tokens(journal),
        context_length=journal.provided.window,
        compressions=journal.context.epoch - 1,
        compression_tries=journal.compaction.tries,
        compressing=journal.compaction.asked is not None
        and (journal.reply is not None or next_cut(journal) is not None),
        compression_error=journal.compaction.error.message if journal.compaction.error else "",
        adjusted=adjusted,
        **_spent(journal),
        refused=journal.refused.count,
        decisions=state.decisions[-SHOWN_DECISIONS:],
        mode=state.mode.value,
        **tasks_told(journal),
        workspace_root=journal.provided.workspace_root,
        left_out=journal.provided.left_out,
        cwd=state.tool_context.cwd,
        behaviour=state.behaviour,
        seq=journal.keeping.changed,
        saved_seq=journal.keeping.mirrored,
        incarnation=journal.incarnation.number,
        quarantine=journal.incarnation.quarantine,
        **pause_fields(journal),
        note=journal.incarnation.note,
        segments=tuple(journal.keeping.segments),
        **_trouble(journal),
    )


def _spent(journal: Journal) -> dict[str, Any]:
    return {
        "model_calls": journal.spent.model_calls,
        "input_tokens": journal.spent.usage.input_tokens,
        "output_tokens": journal.spent.usage.output_tokens,
        "by_model": journal.spent.by_model,
        "cache_missed": journal.spent.cache_missed,
        "lost": journal.spent.lost,
        "tokens_estimated": journal.spent.usage.estimated,
        "budget": standing(journal),
    }


def _trouble(journal: Journal) -> dict[str, Any]:
    """What stands in the session's way, and in the way of telling of it; what failed, what was refused; its family."""
    last = next(reversed(journal.requests.finished.values()), None)
    refused = journal.refused.newest[-20:]
    return {
        **family(journal),
        "last_error": last.error if last else None,
        "last_refusals": tuple({"name": one.name, "reason": one.reason, "at": iso(one.at)} for one in refused),
        "checkpoint_error": journal.keeping.failed.error.message if journal.keeping.failed else "",
        **shutdown(journal),
        "lacking": lacking(journal),
        "outage": outage(journal),
        "host_unavailable": journal.incarnation.host_unavailable,
        "notify_error": journal.notifications.failed.error if journal.notifications.failed and to_tell(journal) else "",
    }


def result(journal: Journal, reply_id: str) -> ReplyResult:
    """How a reply stands. A message that is too large for one answer comes with its last blocks only.

    Of a request that has joined another one's reply, it is that one.
    """
    reply_id = journal.requests.joined.get(reply_id, reply_id)
    if reply_id in journal.requests.finished:
        standing = "finished"
    elif journal.reply and journal.reply.reply_id == reply_id:
        standing = reply_word(journal)
    elif any(entry.reply_id == reply_id for entry in request_operations.waiting(journal)):
        standing = "queued"
    else:
        standing = "unknown"
    delegates = standing == "working" and is_left_to_subagents(journal)
    lacks = lacking(journal) if standing == "working" else ""
    message = reply_message(journal, reply_id) if delegates or standing in ("finished", "waiting") else None
    if message is None:
        return ReplyResult(status=standing, lacking=lacks)
    blocks = [message.model_copy(update={"content": (block,)}) for block in reversed(message.content)]
    kept = len(page(blocks, 0, PAGE_BYTES)) if blocks else 0
    cut = message.model_copy(update={"content": message.content[len(message.content) - kept :]})
    ended = journal.requests.finished.get(reply_id)
    start, end = (ended.start, ended.end) if ended else (journal.requests.reply_start, journal.messages_total)
    if len(cut.content) == len(message.content) and start >= journal.context.transcript_base:
        return ReplyResult(status=standing, message=cut, delegates=delegates, lacking=lacks)
    cut_at = {"complete": False, "start": start, "end": end}
    return ReplyResult(status=standing, message=cut, delegates=delegates, lacking=lacks, **cut_at)


def context_page(journal: Journal, start: int) -> TranscriptPage:
    """Messages of the model's context from `start`; number 0 is the summary, when there is one."""
    context = journal.state.context
    if journal.state.summary:
        # Only the asked-for part is put together: a long context is paged through many times.
        head = [summary_message(journal.state.summary)] if start == 0 else []
        shown = page([*head, *context[max(start - 1, 0) :]], 0, PAGE_BYTES)
    else:
        shown = page(context, start, PAGE_BYTES)
    return TranscriptPage(epoch=journal.context.epoch, start=start, total=journal.context_length, messages=shown)


def message_page(journal: Journal, start: int) -> MessagePage:
    """Messages by number from `start`, or from the first one that the session still holds."""
    first = max(start, journal.context.transcript_base)
    return MessagePage(
        start=first,
        total=journal.messages_total,
        messages=page(journal.context.transcript, first - journal.context.transcript_base, PAGE_BYTES),
    )


def event_page(reducer: EventReducer, journal: Journal, start: int) -> EventPage:
    first = reducer.before.count + 1
    events = reducer.catch_up(journal.log)
    shown = page(events, max(start - first, 0), PAGE_BYTES)
    return EventPage(
        events=shown,
        last=reducer.before.count + len(events),
        first=first,
        reply_id=journal.reply.reply_id if journal.reply else "",
        since=journal.reply.started_at if journal.reply else 0,
        model_calls=journal.spent.model_calls,
        open_calls=tuple(
            call_id for call_id, call in journal.open_calls.items() if call.state is not ToolCallState.FINISHED
        ),
    )


def entries_page(journal: Journal, start: int) -> EntriesPage:
    at = next((at for at, entry in enumerate(journal.log) if entry.seq >= start), len(journal.log))
    return EntriesPage(entries=page(journal.log, at, PAGE_BYTES), seq=journal.seq, messages=journal.messages_total)


def spec_texts(journal: Journal) -> SpecTexts:
    return SpecTexts(
        spec_digest=journal.provided.spec_digest,
        system_prompt=journal.spec.system_prompt
        if journal.provided.system_prompt is None
        else journal.provided.system_prompt,
        tools=tuple(journal.provided.tools.values()),
        skills=journal.spec.skills,
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
    storm of operations no two pages would ever be of the same state."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, int], str] = {}
        """By the entry that the state is of, and the entry and the number of messages up to which it was saved."""

    def page(self, journal: Journal, before: EventsSoFar, ask: SnapshotAsk) -> SnapshotPage:
        key = (ask.seq, ask.saved, ask.saved_messages)
        if ask.start == 0 or key not in self._kept:
            key = (journal.seq, ask.saved, ask.saved_messages)
            while len(self._kept) >= KEPT_SNAPSHOTS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = carry(journal, before, ask.saved, ask.saved_messages).model_dump_json()
        whole = self._kept[key]
        text = whole[ask.start : ask.start + PAGE_BYTES]
        if ask.start + len(text) >= len(whole):
            del self._kept[key]
        return SnapshotPage(seq=key[0], total=len(whole), text=text)
