"""What the queries answer: the record as status, pending calls, pages and results."""

from typing import Any

from activities.contract import EntriesPage, SpecTexts, TranscriptPage
from agent import requests
from agent.compaction import next_cut, tokens
from agent.doubts import Doubt
from agent.events import EventFold
from agent.index import reply_word, status_word
from agent.judgement import seen_digest
from agent.keeping import CARRY_LIMIT
from agent.messages import Msg, ToolCallState
from agent.notifying import to_tell
from agent.offers import must_sign
from agent.pausing import told
from agent.preview import Preview, preview
from agent.prompt import summary_message
from agent.record import Record
from agent.settling import open_doubts
from agent.state import OpenCall, effect_of
from agent.tasks import progress
from agent.times import iso
from agent.transcript import page, reply_message
from agent.upkeep import shutdown
from agent.waiting import when
from workflows.contract import PAGE_BYTES, EventPage, MessagePage, PendingCall, ReplyResult, Status, WaitingRequest

SHOWN_DECISIONS = 20
SHOWN_REQUESTS = 20


def waiting(record: Record) -> list[OpenCall]:
    return record.reply.waiting() if record.reply else []


def pending(record: Record) -> list[PendingCall]:
    return [
        PendingCall(
            reply_id=record.reply.reply_id if record.reply else "",
            call_id=call.block.id,
            tool=call.block.name,
            input=call.input,
            waits_for=call.waits_for or "",
            reason=call.reason,
            notice=call.facts.notice,
            suggested_rules=call.suggested_rules,
            asked_at=iso(call.asked_at),
            digest=seen_digest(call, record),
            preview=_preview(record, call),
            **when(call),
            signed=must_sign(record),
            approvers=record.state.permission_context.approvers(call.block.name),
            approved_by=tuple(one.approver for one in call.approvals),
        )
        for call in waiting(record)
    ] + [_in_doubt(doubt) for doubt in open_doubts(record)]


def _in_doubt(doubt: Doubt) -> PendingCall:
    return PendingCall(
        reply_id=doubt.reply_id,
        call_id=doubt.call_id,
        tool=doubt.tool,
        input=doubt.input,
        waits_for="settlement",
        reason=doubt.why,
        asked_at=iso(doubt.at),
    )


def _preview(record: Record, call: OpenCall) -> Preview | None:
    tool = record.tools.get(call.block.name)
    return preview(call.input, call.facts, effect_of(call, tool)) if tool else None


def status(record: Record) -> Status:
    state = record.state
    return Status(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        model=record.spec.model,
        status=status_word(record),
        reply_id=record.reply.reply_id if record.reply else "",
        queued=len(record.queue),
        requests=_requests(record),
        pending=len(waiting(record)),
        doubts=len(open_doubts(record)),
        messages=record.messages_total,
        context_tokens=tokens(record),
        context_length=record.window,
        compressions=record.epoch - 1,
        compression_tries=record.compressions,
        compressing=record.compress_asked is not None and (record.reply is not None or next_cut(record) is not None),
        compression_error=record.last_compression_error.message if record.last_compression_error else "",
        model_calls=record.model_calls,
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        refused=record.refused_count,
        last_refusals=_last_refusals(record),
        decisions=state.decisions[-SHOWN_DECISIONS:],
        filled=round(record.weight / CARRY_LIMIT, 3),
        mode=state.mode.value,
        **_tasks(record),
        workspace_root=record.workspace_root,
        cwd=state.tool_context.cwd,
        behaviour=state.behaviour,
        seq=record.changed,
        saved_seq=record.mirrored,
        generation=record.generation,
        hold=record.hold,
        **told(record),
        note=record.note,
        segments=tuple(record.segments),
        **_trouble(record),
    )


def _trouble(record: Record) -> dict[str, Any]:
    """What stands in the way of the session, of writing it down and of telling people; why the last reply failed."""
    last = next(reversed(record.finished.values()), None)
    return {
        "last_error": last.error if last else None,
        "checkpoint_error": record.checkpoint_failed.error.message if record.checkpoint_failed else "",
        **shutdown(record),
        "notify_error": record.notify_failed.error if record.notify_failed and to_tell(record) else "",
    }


def _tasks(record: Record) -> dict[str, Any]:
    done, total, current = progress(record.state.tasks_context.tasks)
    return {"tasks_done": done, "tasks_total": total, "current_task": current}


def _requests(record: Record) -> tuple[WaitingRequest, ...]:
    joins = len(record.steering)
    return tuple(
        WaitingRequest(request_id=each.request_id, reply_id=each.reply_id, when=each.when, joins=place < joins)
        for place, each in enumerate(requests.waiting(record)[:SHOWN_REQUESTS])
    )


def _last_refusals(record: Record) -> tuple[dict[str, str], ...]:
    newest = record.refusals[-20:]
    return tuple({"name": each.name, "reason": each.reason, "at": iso(each.at)} for each in newest)


def result(record: Record, reply_id: str) -> ReplyResult:
    """How a reply stands. A message that is too large for one answer comes with its last blocks only.

    Of a request that has joined another one's reply, it is that one.
    """
    reply_id = record.joined.get(reply_id, reply_id)
    standing = _standing(record, reply_id)
    message = reply_message(record, reply_id) if standing in ("finished", "waiting") else None
    if message is None:
        return ReplyResult(status=standing)
    cut = _last_blocks(message)
    ended = record.finished.get(reply_id)
    start, end = (ended.start, ended.end) if ended else (record.reply_start, record.messages_total)
    if len(cut.content) == len(message.content) and start >= record.transcript_base:
        return ReplyResult(status=standing, message=cut)
    return ReplyResult(status=standing, message=cut, complete=False, start=start, end=end)


def _standing(record: Record, reply_id: str) -> str:
    if reply_id in record.finished:
        return "finished"
    if record.reply and record.reply.reply_id == reply_id:
        return reply_word(record)
    return "queued" if any(entry.reply_id == reply_id for entry in requests.waiting(record)) else "unknown"


def _last_blocks(message: Msg) -> Msg:
    blocks = [message.model_copy(update={"content": (block,)}) for block in reversed(message.content)]
    kept = len(page(blocks, 0, PAGE_BYTES)) if blocks else 0
    return message.model_copy(update={"content": message.content[len(message.content) - kept :]})


def context_page(record: Record, start: int) -> TranscriptPage:
    """Messages of the model's context from `start`; number 0 is the summary, when there is one."""
    context = record.state.context
    if record.state.summary:
        # Only the asked-for part is put together: a long context is paged through many times.
        head = [summary_message(record.state.summary)] if start == 0 else []
        shown = page([*head, *context[max(start - 1, 0) :]], 0, PAGE_BYTES)
    else:
        shown = page(context, start, PAGE_BYTES)
    return TranscriptPage(epoch=record.epoch, start=start, total=record.context_length, messages=shown)


def message_page(record: Record, start: int) -> MessagePage:
    """Messages by number from `start`, or from the first one that the session still holds."""
    first = max(start, record.transcript_base)
    return MessagePage(
        start=first,
        total=record.messages_total,
        messages=page(record.transcript, first - record.transcript_base, PAGE_BYTES),
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
        model_calls=record.model_calls,
        open_calls=_open_calls(record),
    )


def _open_calls(record: Record) -> tuple[str, ...]:
    return tuple(call_id for call_id, call in record.calls.items() if call.state is not ToolCallState.FINISHED)


def entries_page(record: Record, start: int) -> EntriesPage:
    at = next((at for at, entry in enumerate(record.log) if entry.seq >= start), len(record.log))
    return EntriesPage(entries=page(record.log, at, PAGE_BYTES), seq=record.seq, messages=record.messages_total)


def spec_texts(record: Record) -> SpecTexts:
    return SpecTexts(
        spec_digest=record.spec_digest,
        system_prompt=record.spec.system_prompt if record.system_prompt is None else record.system_prompt,
        tools=tuple(record.tools.values()),
        skills=record.spec.skills,
    )
