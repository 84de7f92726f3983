"""Items of a live stream as events: in order, of the newest attempt alone, and only while the record has not the whole.

A reader may come late, see items twice, or miss some: what is missing is told, and what was begun anew too, each once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from longhaul.agent.views.event_types import AgentEvent, EventType, Live
from longhaul.stores.streams.streams import PIECES, Item, model_call, tool_call
from longhaul.workflows.contract import EventPage

RESTARTED = "restarted"
"""Name of the CUSTOM event: what was shown of this call does not count, it is made once more."""
LOST = "lost"
"""Name of the CUSTOM event: some of what is shown of this call is missing; the record will have it."""

_TYPES: dict[str, tuple[EventType | None, EventType, EventType | None]] = {
    "text": ("TEXT_BLOCK_START", "TEXT_BLOCK_DELTA", "TEXT_BLOCK_END"),
    "thinking": ("THINKING_BLOCK_START", "THINKING_BLOCK_DELTA", "THINKING_BLOCK_END"),
    "tool_call": ("TOOL_CALL_START", "TOOL_CALL_DELTA", "TOOL_CALL_END"),
    "output": (None, "TOOL_RESULT_TEXT_DELTA", None),
}
"""Kind of a piece to the events of its block. A result's start and end are the record's alone."""


@dataclass(slots=True)
class _Call:
    """The newest attempt at one call, as far as it was told."""

    fence: tuple[int, int]
    """When it was asked for, and the attempt: what is lower is of the past."""
    next: int = 0
    told: bool = False
    lost: bool = False
    block: AgentEvent | None = field(default=None)
    """The last event of a block that is open."""


class LiveEvents:
    """One reader's view."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._open: frozenset[str] = frozenset()
        self._model_calls = 0
        self._since = 0
        """Microseconds, as in items."""
        self.reply_id = ""

    def recorded(self, page: EventPage) -> None:
        """What the session said last: items of calls that have come to a result are of the past."""
        if page.reply_id != self.reply_id:
            # A call of this number may be open again: nothing of it was told in this reply.
            for call in self._calls.values():
                call.told = call.lost = False
                call.block = None
        self.reply_id = page.reply_id
        self._open = frozenset(tool_call(call_id) for call_id in page.open_calls)
        self._model_calls = page.model_calls
        self._since = page.since * 1000
        self._calls = {name: call for name, call in self._calls.items() if self.is_open(name)}

    def of(self, item: Item) -> Iterator[AgentEvent]:
        """What is told of an item; nothing of most marks."""
        # The stream begins with what is kept: also with calls of this number in a reply that was cut off before.
        if not self.reply_id or not self.is_open(item.call) or item.turn < self._since:
            return
        fence = (item.turn, item.attempt)
        call = self._calls.get(item.call)
        if call is None or call.fence < fence:
            if call is not None and call.told:
                yield from self._ended_block(call)
                yield self._event(item, "CUSTOM", name=RESTARTED)
            call = self._calls[item.call] = _Call(fence)
        if call.fence > fence or item.index < call.next:
            return
        gap = item.index > call.next or item.kind == "lost"
        call.next = item.index + 1
        if gap and not call.lost:
            call.lost = call.told = True
            yield self._event(item, "CUSTOM", name=LOST)
        yield from self._told(call, item)

    def _told(self, call: _Call, item: Item) -> Iterator[AgentEvent]:
        if item.kind == "begin" and item.call.startswith("model:"):
            call.told = True
            yield self._event(item, "MODEL_CALL_START", model_name=item.name)
        elif item.kind == "end":
            yield from self._ended_block(call)
        elif item.kind in PIECES:
            call.told = True
            yield from self._piece(call, item)

    def _piece(self, call: _Call, item: Item) -> Iterator[AgentEvent]:
        start, delta, _ = _TYPES[item.kind]
        about = self._about(item)
        if call.block is None or (call.block.type, call.block.block_id) != (delta, about["block_id"]):
            yield from self._ended_block(call)
            if start is not None:
                yield self._event(item, start, **about)
        call.block = self._event(item, delta, delta=item.text, **about)
        yield call.block

    def _ended_block(self, call: _Call) -> Iterator[AgentEvent]:
        last, call.block = call.block, None
        for _, delta, end in _TYPES.values():
            if last is not None and last.type == delta and end is not None:
                yield last.model_copy(update={"type": end, "delta": ""})

    @staticmethod
    def _about(item: Item) -> dict[str, Any]:
        block_id = f"{item.call}.{item.attempt}.{item.block}"
        match item.kind:
            case "tool_call":
                return {"block_id": block_id, "tool_call_id": item.tool_call_id, "tool_call_name": item.name}
            case "output":
                return {"block_id": block_id, "tool_call_id": item.call.removeprefix("tool:")}
            case _:
                return {"block_id": block_id}

    def _event(self, item: Item, kind: EventType, **about: Any) -> AgentEvent:
        live = Live(call=item.call, attempt=item.attempt, index=item.index)
        return AgentEvent(type=kind, reply_id=self.reply_id, live=live, **about)

    def is_of_now(self, item: Item) -> bool:
        """Whether it is of a call that was asked for in the reply that is being made."""
        return item.kind != "wake" and item.turn >= self._since

    def is_open(self, name: str) -> bool:
        """Whether a call had no result when the session was asked last."""
        return name in self._open or name == model_call(self._model_calls)
