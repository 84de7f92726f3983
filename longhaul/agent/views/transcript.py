"""Events folded back into the message that they tell of: what a client shows while a reply is made, and the recorded
message when it has ended. Each event costs the same, however long the reply is.

The journal as people read it: one message per reply, and the part of a context that was asked for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from longhaul.agent.journal import Journal
from longhaul.agent.operations.result_operations import blocking
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer.session_state import Finished
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    ErrorInfo,
    FinishedReason,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    Usage,
)
from longhaul.agent.values.conversation.tools import answered_in
from longhaul.agent.views.event_types import AgentEvent


@dataclass(slots=True)
class _Draft:
    """A block whose end has not come."""

    kind: str
    """The start of the types of its events, as in `TEXT_BLOCK`."""
    call_id: str = ""
    tool: str = ""
    pieces: list[str] = field(default_factory=list[str])
    parts: list[TextBlock | DataBlock] = field(default_factory=list[TextBlock | DataBlock])
    """Of a result that is not one text."""

    def take(self, event: AgentEvent) -> None:
        """A recorded delta."""
        if event.type.endswith("DATA_DELTA") or self.kind == "DATA_BLOCK":
            self.parts.append(event.data_block())
        elif self.kind == "TOOL_RESULT" and event.block_id:
            # What came in pieces is the beginning of its first part.
            before, self.pieces = "".join(self.pieces), []
            self.parts.append(TextBlock(text=before + _text(event)))
        else:
            self.pieces.append(_text(event))

    def block(self, end: AgentEvent | None = None) -> ContentBlock:
        text, extras = "".join(self.pieces), end.metadata if end else {}
        match self.kind:
            case "THINKING_BLOCK":
                return ThinkingBlock.model_validate({"thinking": text, **extras})
            case "TOOL_CALL":
                return ToolCallBlock(id=self.call_id, name=self.tool, input=text, extras=extras)
            case "TOOL_RESULT":
                return _result(self, text, end)
            case "DATA_BLOCK":
                return self.parts[0]
            case _:
                return TextBlock(text=text, extras=extras)


class ReplyReducer:
    """Builds the message of one reply from its events. Events of other replies are ignored.

    Recorded events (with `seq`) make the message; a repeated one is ignored. Live events only fill what is not recorded
    yet. They are dropped as soon as the journal has the same part, or says that it starts again.
    """

    def __init__(self, reply_id: str = "") -> None:
        """Without an id, takes the first reply that an event belongs to."""
        self._reply_id = reply_id
        self._seq = 0
        self._name = ""
        self._created_at = ""
        self.hints: list[HintBlock] = []
        """Reminders after the request, which nobody said. They are not part of the message."""
        self._in_call = False
        self._done: list[ContentBlock] = []
        self._draft: _Draft | None = None
        self._results: dict[str, _Draft] = {}
        """Results that were started, by call; several calls run beside each other."""
        self._live: dict[tuple[str, str], _Draft] = {}
        """By the live call and its block."""
        self._usage = Usage()
        self._end: AgentEvent | None = None

    @property
    def seq(self) -> int:
        """Number of the newest recorded event that was taken. Continue with the next one."""
        return self._seq

    @property
    def ended(self) -> bool:
        return self._end is not None

    def take(self, event: AgentEvent) -> None:
        """Take an event. Pass events in the order in which they arrive."""
        self._reply_id = self._reply_id or event.reply_id
        if event.reply_id != self._reply_id:
            return
        if not event.seq:
            self._show(event)
        elif event.seq > self._seq:
            self._seq = event.seq
            self._journal(event)

    def message(self) -> Msg:
        """The message so far. When the reply has ended, the recorded message."""
        end = self._end
        reason: FinishedReason | None = end.finished_reason if end else None
        error: ErrorInfo | None = end.error if end else None
        content = (*self._done, *(draft.block() for draft in self._live.values() if draft.pieces))
        return Msg(
            name=self._name,
            role="assistant",
            content=content,
            id=self._reply_id,
            created_at=self._created_at,
            usage=self._usage,
            finished_at=end.created_at if end else "",
            finished_reason=reason,
            error=error,
            **answered_in(content, reason),
        )

    def _journal(self, event: AgentEvent) -> None:
        kind, _, what = event.type.rpartition("_")
        match event.type:
            case "REPLY_START":
                self._name, self._created_at = event.name, event.created_at
            case "MODEL_CALL_START":
                self._forget("model:")
                self._in_call = True
            case "MODEL_CALL_END":
                self._in_call = False
                self._usage += Usage(
                    input_tokens=event.input_tokens,
                    output_tokens=event.output_tokens,
                    cache_input_tokens=event.cache_input_tokens,
                    cache_creation_input_tokens=event.cache_creation_input_tokens,
                    reasoning_tokens=event.reasoning_tokens,
                    estimated=event.estimated,
                )
            case "REPLY_END":
                self._end = event
                self._live = {}
            case "HINT_BLOCK":
                (self._done if self._in_call else self.hints).append(
                    HintBlock(hint=event.hint or "", source=event.source)
                )
            case "TOOL_RESULT_START" | "TOOL_RESULT_TEXT_DELTA" | "TOOL_RESULT_DATA_DELTA" | "TOOL_RESULT_END":
                self._record_result(event)
            case _ if kind in ("TEXT_BLOCK", "THINKING_BLOCK", "DATA_BLOCK", "TOOL_CALL"):
                self._record_block(event, kind, what)
            case _:
                pass  # What is asked of people, and what has no place in a message.

    def _record_block(self, event: AgentEvent, kind: str, what: str) -> None:
        if what == "START":
            self._draft = _Draft(kind, event.tool_call_id, event.tool_call_name)
        elif self._draft is not None and what == "DELTA":
            self._draft.take(event)
        elif self._draft is not None:
            block = self._draft.block(event)
            if isinstance(block, ToolCallBlock):
                block = block.model_copy(update={"state": ToolCallState.FINISHED})
            self._done.append(block)
            self._draft = None

    def _record_result(self, event: AgentEvent) -> None:
        draft = self._results.setdefault(event.tool_call_id, _Draft("TOOL_RESULT", event.tool_call_id))
        if event.type.endswith("DELTA"):
            draft.take(event)
        elif event.type == "TOOL_RESULT_END":
            self._done.append(draft.block(event))
            del self._results[event.tool_call_id]
            self._forget(f"tool:{event.tool_call_id}")

    def _show(self, event: AgentEvent) -> None:
        if event.live is None:
            return
        call, (kind, _, what) = event.live.call, event.type.rpartition("_")
        if event.type == "MODEL_CALL_START" or (event.type == "CUSTOM" and event.name == "restarted"):
            self._forget(call)
        elif what == "DELTA":
            kind = "TOOL_RESULT" if kind == "TOOL_RESULT_TEXT" else kind
            block = (call, event.block_id)
            if block not in self._live:
                self._live[block] = _Draft(kind, event.tool_call_id, event.tool_call_name)
            self._live[block].pieces.append(event.delta)

    def _forget(self, call: str) -> None:
        """What was shown of a call. All model calls, when just `model:` is named: there is one at a time."""
        self._live = {
            key: draft
            for key, draft in self._live.items()
            if not (key[0] == call or (call == "model:" and key[0].startswith(call)))
        }


def _text(event: AgentEvent) -> str:
    """Of a recorded delta, also of what was told live before."""
    return event.delta if event.whole is None else event.whole


def _result(draft: _Draft, text: str, end: AgentEvent | None) -> ToolResultBlock:
    if end is None:
        return ToolResultBlock.model_validate(
            {"id": draft.call_id, "name": draft.tool, "output": text, "state": "running"}
        )
    return ToolResultBlock.model_validate(
        {
            "id": end.tool_call_id,
            "name": end.tool_call_name,
            "output": tuple(draft.parts) or text,
            "state": end.state,
            "metadata": end.metadata,
        }
    )


Item = TypeVar("Item", bound=BaseModel)
MAX_PAGE_ITEMS = 2_000


def reply_message(journal: Journal, reply_id: str) -> Msg | None:
    """The message that a reply came to, or has come to so far; None for a reply that never began.

    All of its blocks in order. While it waits, `metadata["waiting_for"]` names the calls and
    `finished_reason` is None.
    """
    ended = journal.requests.finished.get(reply_id)
    if ended is not None:
        return _ended(journal, ended)
    reply = journal.reply
    if reply is None or reply.reply_id != reply_id:
        return None
    pieces = _numbered(journal, journal.requests.reply_start, journal.messages_total)
    shown = {call_id: call.shown() for call_id, call in reply.calls.items()}
    waiting = [call.block.id for call in reply.waiting()] or [
        unknown_outcome.call_id for unknown_outcome in blocking(journal)
    ]
    return Msg(
        name=journal.spec.name,
        role="assistant",
        content=tuple(_blocks(pieces, reply_id, shown)),
        id=reply_id,
        created_at=iso(reply.started_at),
        usage=reply.usage,
        metadata={"waiting_for": waiting} if waiting else {},
    )


def _ended(journal: Journal, ended: Finished) -> Msg:
    pieces = _numbered(journal, ended.start, ended.end)
    content = tuple(_blocks(pieces, ended.reply_id, {}))
    return Msg(
        name=journal.spec.name,
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


def _numbered(journal: Journal, start: int, end: int) -> list[Msg]:
    """The messages of these numbers, as far as the journal still holds them."""
    base = journal.context.transcript_base
    return journal.context.transcript[max(start - base, 0) : max(end - base, 0)]


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
