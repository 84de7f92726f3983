"""Follows a session until one reply has ended, or waits for somebody: then its reader is told last what for."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Literal

from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolCallState, ToolResultState
from longhaul.agent.views.event_types import AgentEvent, EventType
from longhaul.starter.client.reading.asking import NoReply
from longhaul.starter.client.reading.following import Following
from longhaul.workflows.contract import PendingCall, ReplyResult


class Questions:
    """Of one reply, which is followed."""

    def __init__(
        self,
        reply_id: str,
        standing: Callable[[str], Awaitable[ReplyResult]],
        pending: Callable[[], Awaitable[list[PendingCall]]],
    ) -> None:
        self._reply_id = reply_id
        self._standing = standing
        self._pending = pending
        self._told: set[str] = set()
        """Calls that wait, by what was told."""
        self._untold: frozenset[str] = frozenset()
        """Calls that waited when it was asked last, and of which nothing was told."""
        self._resumed = False
        self.has_ended = False
        self.due = False
        """Whether it may wait for somebody by now, or have ended before, so that its session has to be asked."""

    def resume(self) -> None:
        """The reply was there before its events are told: calls of it may wait that were asked about then."""
        self._resumed = self.due = True

    def is_of_it(self, event: AgentEvent) -> bool:
        return event.reply_id == self._reply_id

    def hear(self, event: AgentEvent) -> None:
        if not self.is_of_it(event):
            # A request that has joined another's reply stands as that one does.
            self.due = self.due or event.type in ("REPLY_END", "REQUIRE_USER_CONFIRM", "REQUIRE_EXTERNAL_EXECUTION")
            return
        match event.type:
            case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
                self._told |= {call.id for call in event.tool_calls}
                self.due = True
            case "USER_CONFIRM_RESULT":
                self._answered(*(decision["call_id"] for decision in event.value["decisions"]))
            case "EXTERNAL_EXECUTION_RESULT":
                self._answered(event.tool_call_id)
            case "TOOL_RESULT_END" if event.state is ToolResultState.UNKNOWN:
                self._told.add(event.tool_call_id)
                self.due = True
            case "TOOL_RESULT_END":
                self._answered(event.tool_call_id)
            case "CUSTOM" if event.name == "asleep":
                self._told.add(event.tool_call_id)
                self.due = True
            case "CUSTOM":
                self.due = self.due or bool(self._told)
            case _:
                pass

    def _answered(self, *call_ids: str) -> None:
        self._told -= set(call_ids)
        self.due = self.due or self._resumed or bool(self._told)

    async def open_ones(self) -> list[AgentEvent] | None:
        """What to tell last of a reply that waits, or has ended, of which all was told that its session had recorded;
        None: it goes on, or may do so. Raises NoReply."""
        found = await self._standing(self._reply_id)
        if found.status == "unknown":
            raise NoReply(f"the session knows no reply {self._reply_id!r}")
        if found.status == "finished":
            # Perhaps in this moment: then the next page tells of it.
            had_ended, self.has_ended = self.has_ended, True
            return [] if had_ended else None
        if found.status != "waiting":
            self.due, self._untold = False, frozenset()
            return None
        asked = frozenset(found.message.metadata.get("waiting_for", ()) if found.message else ())
        untold = asked - self._told
        if untold and untold != self._untold:
            self._untold = untold  # asked about in this moment, perhaps: then the next page tells of it
            return None
        return [*_asked_again([call for call in await self._pending() if call.call_id in untold])] if untold else []


class Until:
    """A session's events in bunches, as `Following` has them, until the reply has ended or waits. Close it."""

    def __init__(self, following: Following, questions: Questions) -> None:
        self._following = following
        self._questions = questions
        self.over: Literal["", "finished", "waiting"] = ""
        """Why the last bunch was the last one."""

    async def next(self) -> list[AgentEvent]:
        """Raises NoReply, and what `Following.next` does."""
        events = await self._following.next()
        for place, event in enumerate(events, 1):
            self._questions.hear(event)
            if event.type == "REPLY_END" and self._questions.is_of_it(event):
                self.over = "finished"
                return events[:place]
        if self._following.is_fresh and self._questions.due:
            if (last := await self._questions.open_ones()) is not None:
                self.over = "finished" if self._questions.has_ended else "waiting"
                return [*events, *last]
            if self._questions.due:
                self._following.expect_news()
        return events

    async def aclose(self) -> None:
        await self._following.aclose()


_REQUIRES: tuple[tuple[str, EventType, ToolCallState], ...] = (
    ("person", "REQUIRE_USER_CONFIRM", ToolCallState.ASKING),
    ("outside", "REQUIRE_EXTERNAL_EXECUTION", ToolCallState.SUBMITTED),
)


def _asked_again(pending: Sequence[PendingCall]) -> Iterator[AgentEvent]:
    """Questions that were recorded before, as events without a number; just the calls that still wait."""
    for whom, kind, state in _REQUIRES:
        calls = [call for call in pending if call.waits_for == whom]
        if not calls:
            continue
        blocks = tuple(
            ToolCallBlock(
                id=call.call_id, name=call.tool, input=call.input, state=state, suggested_rules=call.suggested_rules
            )
            for call in calls
        )
        shown = {
            call.call_id: {**call.preview.model_dump(mode="json"), "reason": call.reason, "digest": call.digest}
            for call in calls
            if call.preview
        }
        value = {"previews": shown} if shown else None
        yield AgentEvent(type=kind, reply_id=calls[0].reply_id, tool_calls=blocks, value=value)
