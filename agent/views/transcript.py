"""The record as people read it: one message per reply, and the part of a context that was asked for."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import BaseModel

from longhaul.agent.fold.ledger.ledger_values import Finished
from longhaul.agent.letters.doubts import blocking
from longhaul.agent.plain.times import iso
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ContentBlock, FinishedReason, Msg, ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.structured_output import answered_in

Item = TypeVar("Item", bound=BaseModel)
MAX_PAGE_ITEMS = 2_000


def reply_message(record: Record, reply_id: str) -> Msg | None:
    """The message that a reply came to, or has come to so far; None for a reply that never began.

    All of its blocks in order. While it waits, `metadata["waiting_for"]` names the calls and
    `finished_reason` is None.
    """
    ended = record.requests.finished.get(reply_id)
    if ended is not None:
        return _ended(record, ended)
    reply = record.reply
    if reply is None or reply.reply_id != reply_id:
        return None
    pieces = _numbered(record, record.requests.reply_start, record.messages_total)
    shown = {call_id: call.shown() for call_id, call in reply.calls.items()}
    waiting = [call.block.id for call in reply.waiting()] or [doubt.call_id for doubt in blocking(record)]
    return Msg(
        name=record.spec.name,
        role="assistant",
        content=tuple(_blocks(pieces, reply_id, shown)),
        id=reply_id,
        created_at=iso(reply.started_at),
        usage=reply.usage,
        metadata={"waiting_for": waiting} if waiting else {},
    )


def _ended(record: Record, ended: Finished) -> Msg:
    pieces = _numbered(record, ended.start, ended.end)
    content = tuple(_blocks(pieces, ended.reply_id, {}))
    return Msg(
        name=record.spec.name,
        role="assistant",
        content=content,
        id=ended.reply_id,
        created_at=iso(ended.started_at),
        finished_at=iso(ended.at),
        finished_reason=ended.reason,
        error=ended.error,
        usage=ended.usage,
        **answered_in(content, ended.reason),
    )


def _numbered(record: Record, start: int, end: int) -> list[Msg]:
    """The messages of these numbers, as far as the record still holds them."""
    base = record.context.transcript_base
    return record.context.transcript[max(start - base, 0) : max(end - base, 0)]


def _blocks(pieces: Iterable[Msg], reply_id: str, shown: dict[str, ToolCallBlock]) -> Iterable[ContentBlock]:
    for piece in pieces:
        if piece.id != reply_id:
            continue
        for block in piece.content:
            if isinstance(block, ToolCallBlock):
                finished = block.model_copy(update={"state": ToolCallState.FINISHED})
                yield shown.get(block.id, finished)
            else:
                yield block


def final_text(message: Msg) -> str:
    """What a person wants to read first: the text after the last tool result, or why there is none."""
    if message.error is not None:
        return f"{message.error.message}"
    said = message.get_text_content()
    if not said and message.finished_reason is FinishedReason.EXCEED_MAX_ITERS:
        return "(stopped: the limit of iterations was reached)"
    if message.finished_reason is FinishedReason.REJECTED:
        return "(stopped: a call was denied)"
    return said


def page(items: Sequence[Item], start: int, max_bytes: int) -> tuple[Item, ...]:
    """Items from `start` on, as many as fit as JSON (at least one, if there is one)."""
    taken: list[Item] = []
    size = 0
    for item in items[start : start + MAX_PAGE_ITEMS]:
        size += len(item.model_dump_json().encode())
        if taken and size > max_bytes:
            break
        taken.append(item)
    return tuple(taken)
