"""Tells what happened in a session since an event, as text for whoever reads no events."""

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.following import Following
from longhaul.starter.visible import harmless

MOST_CHARS = 50_000
"""A text ends with the event that goes beyond it."""
SHOWN_CHARS = 2_000
"""Of one call's arguments, and of one piece of a result."""


class Telling:
    """Takes events of one reader, and has their text."""

    def __init__(self, following: Following, since: int) -> None:
        self._following = following
        self._parts: list[str] = []
        self._size = 0
        self._has_ended = False
        self._waiting = set[str]()
        self.last = since
        """Number of the last event that is told."""
        self.more = False
        """There was no room for all that there is."""

    @property
    def text(self) -> str:
        return "".join(self._parts).strip("\n")

    async def recorded(self) -> None:
        """Take what there is by now."""
        while not (self.more or self._following.is_fresh):
            self._take(await self._following.next())

    async def rest(self) -> None:
        """Take what comes, until the reply has ended or waits for somebody."""
        while not (self.more or self._has_ended or self._waiting):
            self._take(await self._following.next())

    def _take(self, events: list[AgentEvent]) -> None:
        for event in events:
            if self._size > MOST_CHARS:
                self.more = True
                return
            said = harmless(told(event))
            self._parts.append(said)
            self._size += len(said)
            self.last = max(self.last, event.seq)
            self._note(event)

    def _note(self, event: AgentEvent) -> None:
        match event.type:
            case "REPLY_START" | "REPLY_END":
                self._has_ended = event.type == "REPLY_END"
                self._waiting.clear()
            case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
                self._waiting.update(call.id for call in event.tool_calls)
            case "USER_CONFIRM_RESULT":
                self._waiting.difference_update(one["call_id"] for one in event.value["decisions"])
            case "TOOL_RESULT_END":
                self._waiting.discard(event.tool_call_id)
            case _:
                pass


def told(event: AgentEvent) -> str:
    """One event; empty for what only programs need."""
    match event.type:
        case "TEXT_BLOCK_DELTA" | "TEXT_BLOCK_END":
            return event.delta or "\n"
        case "TOOL_CALL_START":
            return f"\n[{event.tool_call_id}: {event.tool_call_name} "
        case "TOOL_CALL_DELTA" | "TOOL_RESULT_TEXT_DELTA":
            return _brief(event.delta)
        case "TOOL_CALL_END":
            return "]\n"
        case "TOOL_RESULT_END":
            return f"\n[{event.tool_call_id}: {event.state.value if event.state is not None else 'done'}]\n"
        case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
            who = "a person" if event.type == "REQUIRE_USER_CONFIRM" else "a result from outside"
            who = "an answer to an MCP server" if event.value and "asked_by" in event.value else who
            return f"\n[waits for {who}: {', '.join(f'{call.id} {call.name}' for call in event.tool_calls)}]\n"
        case "REPLY_END":
            why = f": {event.error.message}" if event.error is not None else ""
            return f"\n[reply ended, {event.finished_reason}{why}]\n"
        case _:
            return ""


def _brief(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text) - SHOWN_CHARS} more characters)"
