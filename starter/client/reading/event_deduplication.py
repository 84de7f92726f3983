"""Tells each word of a reply once: of what was told live, the record tells only what is missing.

Recorded events keep their numbers, and none is left out. Where the beginning of a block was told live, its recorded
delta is the rest of it, perhaps nothing, and `whole` is all of it.
"""

from dataclasses import dataclass, field

from longhaul.agent.views.event_types import AgentEvent, Live
from longhaul.starter.client.reading.live_events import LOST, RESTARTED

WITHDRAWN = "withdrawn"
"""Name of the CUSTOM event: what was told live of this block is not in the record; what is follows whole."""

_DELTAS = ("TEXT_BLOCK_DELTA", "THINKING_BLOCK_DELTA", "TOOL_CALL_DELTA", "TOOL_RESULT_TEXT_DELTA")


@dataclass(slots=True)
class _Block:
    """One that was told live, as far as it was."""

    kind: str
    block_id: str
    tool_call_id: str
    live: Live
    pieces: list[str] = field(default_factory=list[str])
    blank: bool = True
    """As far as it has come; a block that stays so is not recorded, so it is not told before it says something."""


class ToldOnce:
    """The events of one reply on their way to a reader, in the order in which they come."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, str], _Block] = {}
        """By call and block, in the order in which they were begun."""
        self._broken: set[str] = set()
        """Live calls of which pieces are missing: from there on the record tells them."""

    def of(self, event: AgentEvent) -> list[AgentEvent]:
        if event.live is not None:
            return self._live(event, event.live)
        return self._recorded(event) if event.seq else [event]

    def _live(self, event: AgentEvent, live: Live) -> list[AgentEvent]:
        if event.name == RESTARTED:
            self._broken.discard(live.call)
            self._blocks = {key: block for key, block in self._blocks.items() if key[0] != live.call}
        elif event.name == LOST:
            self._broken.add(live.call)
        elif event.block_id and live.call in self._broken:
            return []
        elif event.type in _DELTAS:
            return self._piece(event, live)
        return [event]

    def _piece(self, event: AgentEvent, live: Live) -> list[AgentEvent]:
        key = (live.call, event.block_id)
        if key not in self._blocks:
            self._blocks[key] = _Block(event.type, event.block_id, event.tool_call_id, live)
        block = self._blocks[key]
        block.pieces.append(event.delta)
        if not block.blank:
            return [event]
        said = "".join(block.pieces)
        block.blank = not said.strip()
        return [] if block.blank else [event.model_copy(update={"delta": said})]

    def _recorded(self, event: AgentEvent) -> list[AgentEvent]:
        if event.type in _DELTAS:
            return self._whole(event)
        if event.type == "MODEL_CALL_END":
            return [*self._left_over("model:", event), event]
        if event.type == "REPLY_END":
            return [*self._left_over("", event), event]
        return [event]

    def _whole(self, event: AgentEvent) -> list[AgentEvent]:
        block = self._next(event)
        if block is None:
            return [event]
        told = "".join(block.pieces)
        if not event.delta.startswith(told):
            return [_withdrawn(block, event), event]
        return [event.model_copy(update={"delta": event.delta[len(told) :], "whole": event.delta})]

    def _next(self, event: AgentEvent) -> _Block | None:
        """The first that was told of this kind: the record has another id for it, and for its call perhaps, too. Of a
        tool's output the one of the call."""
        output = event.type == "TOOL_RESULT_TEXT_DELTA"
        for key, block in self._blocks.items():
            if (
                block.kind == event.type
                and not block.blank
                and (not output or block.tool_call_id == event.tool_call_id)
            ):
                return self._blocks.pop(key)
        return None

    def _left_over(self, calls: str, event: AgentEvent) -> list[AgentEvent]:
        """Of these calls, what the record has nothing of."""
        left = {key: block for key, block in self._blocks.items() if key[0].startswith(calls)}
        self._blocks = {key: block for key, block in self._blocks.items() if key not in left}
        return [_withdrawn(block, event) for block in left.values() if not block.blank]


def _withdrawn(block: _Block, event: AgentEvent) -> AgentEvent:
    return AgentEvent(
        type="CUSTOM",
        name=WITHDRAWN,
        reply_id=event.reply_id,
        block_id=block.block_id,
        tool_call_id=block.tool_call_id,
        live=block.live,
    )
