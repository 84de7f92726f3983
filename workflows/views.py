"""What the queries answer: the record as status, pending calls, pages and results."""

from activities.contract import SpecTexts
from agent.decision import CARRY_LIMIT
from agent.judgement import seen_digest
from agent.messages import Msg, ToolCallState
from agent.record import Record
from agent.state import OpenCall
from agent.times import iso
from agent.transcript import page, reply_message
from workflows.contract import PAGE_BYTES, PendingCall, ReplyResult, Status

_WAITS_FOR = {ToolCallState.ASKING: "person", ToolCallState.SUBMITTED: "outside"}


def waiting(record: Record) -> list[OpenCall]:
    """The calls that a person or an outside system must answer, in the model's order."""
    calls = record.reply.calls.values() if record.reply else ()
    return [call for call in calls if call.state in _WAITS_FOR]


def pending(record: Record) -> list[PendingCall]:
    return [
        PendingCall(
            reply_id=record.reply.reply_id if record.reply else "",
            call_id=call.block.id,
            tool=call.block.name,
            input=call.input,
            waits_for=_WAITS_FOR[call.state],
            reason=call.reason,
            notice=call.facts.notice,
            suggested_rules=call.suggested_rules,
            asked_at=iso(call.asked_at),
            digest=seen_digest(call),
        )
        for call in waiting(record)
    ]


def status_word(record: Record) -> str:
    if record.reply is None:
        return "working" if record.queue else "idle"
    return "waiting" if waiting(record) else "working"


def status(record: Record) -> Status:
    state = record.state
    last = next(reversed(record.finished.values()), None)
    return Status(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        model=record.spec.model,
        status=status_word(record),
        reply_id=record.reply.reply_id if record.reply else "",
        queued=len(record.queue),
        pending=len(waiting(record)),
        messages=len(state.context),
        model_calls=record.model_calls,
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        refused=record.refused_count,
        last_refusals=tuple(
            {"name": refusal.name, "reason": refusal.reason, "at": iso(refusal.at)} for refusal in record.refusals[-20:]
        ),
        filled=round(record.weight / CARRY_LIMIT, 3),
        mode=state.permission_context.mode.value,
        workspace_root=record.workspace_root,
        cwd=state.tool_context.cwd,
        behaviour=state.behaviour,
        last_error=last.error if last else None,
    )


def result(record: Record, reply_id: str) -> ReplyResult:
    """How a reply stands. A message that is too large for one answer comes with its last blocks only."""
    standing = _standing(record, reply_id)
    message = reply_message(record, reply_id) if standing in ("finished", "waiting") else None
    if message is None:
        return ReplyResult(status=standing)
    cut = _last_blocks(message)
    return ReplyResult(status=standing, message=cut, complete=len(cut.content) == len(message.content))


def _standing(record: Record, reply_id: str) -> str:
    if reply_id in record.finished:
        return "finished"
    if record.reply and record.reply.reply_id == reply_id:
        return status_word(record)
    return "queued" if any(entry.reply_id == reply_id for entry in record.queue) else "unknown"


def _last_blocks(message: Msg) -> Msg:
    blocks = [message.model_copy(update={"content": (block,)}) for block in reversed(message.content)]
    kept = len(page(blocks, 0, PAGE_BYTES)) if blocks else 0
    return message.model_copy(update={"content": message.content[len(message.content) - kept :]})


def details(record: Record) -> str:
    """The session as a page for the Web UI, the important line first."""
    word = status_word(record)
    lines = [f"**{word}** · {record.spec.name} · {record.model_calls} model calls"]
    for call in waiting(record):
        lines.append(f"\nWaits for {_WAITS_FOR[call.state]}: **{call.block.name}** `{call.input[:300]}`")
        lines.append(f"\n{_answer(record, call)}")
    return "\n".join(lines)


def _answer(record: Record, call: OpenCall) -> str:
    session, call_id = record.state.session_id, call.block.id
    if call.state is ToolCallState.SUBMITTED:
        return f"    longhaul result {session} {call_id} --output TEXT"
    return f"    longhaul approve {session} {call_id}    or    longhaul deny {session} {call_id} --reason TEXT"


def spec_texts(record: Record) -> SpecTexts:
    return SpecTexts(
        spec_digest=record.spec_digest,
        system_prompt=record.spec.system_prompt,
        tools=tuple(record.tools.values()),
    )
