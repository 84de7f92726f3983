"""Reads one session: its state, what was said, and what happened, however often it has rolled over."""

from collections.abc import AsyncIterator

from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.life.history import KeptFiles, StepFold
from longhaul.agent.life.rollover_state import Carried
from longhaul.agent.plain.text import Pages
from longhaul.agent.values.conversation.messages import ContentBlock, Msg, ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.tools import answered_in
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.events import EventFold
from longhaul.agent.views.trajectory import Trajectory, TrajectoryEvent
from longhaul.starter.client.reading.asking import Asking, NoSession
from longhaul.starter.client.reading.history import Entries
from longhaul.workflows.contract import EventPage, MessagePage, ReplyResult, SnapshotPage, TranscriptPage

EVERYTHING = 2**62
"""More entries and messages than there ever are: a snapshot without all that is not needed to go on."""


class SessionReader:
    """One session's reader."""

    def __init__(self, asking: Asking, entries: Entries) -> None:
        self._asking = asking
        self._entries = entries

    async def context(self) -> AsyncIterator[Msg]:
        """What the model is shown: the summary, when there is one, and the messages since."""
        epoch, start, total = 0, 0, 1
        while start < total:
            page = await self._asking.query("transcript", TranscriptPage, epoch, start)
            for message in page.messages:
                yield message
            epoch, start, total = page.epoch, page.start + len(page.messages), page.total

    async def transcript(self, start: int, end: int | None = None) -> AsyncIterator[Msg]:
        """All messages from number `start` on; those that the session has given away come from its segments."""
        total = start + 1
        while start < total:
            page = await self._asking.query("messages", MessagePage, start)
            first = page.start if end is None else min(page.start, end)
            if first > start:
                async for message in self._earlier_messages(start, first):
                    yield message
            shown = page.messages if end is None else page.messages[: max(end - page.start, 0)]
            for message in shown:
                yield message
            start, total = page.start + len(shown), page.total
            if not shown:
                return

    async def events(self, start: int) -> EventPage:
        """Events from number `start` on; all of the earlier ones at once where they come from segments."""
        page = await self._asking.query("events", EventPage, start)
        if page.first <= max(start, 1):
            return page
        earlier = await self._earlier_events(start, page.first)
        return page.model_copy(update={"events": tuple(earlier), "first": 1})

    async def last_event(self) -> int:
        """Asked for a page from far beyond the end, a session sends no events, but the number of the newest."""
        try:
            return (await self._asking.query("events", EventPage, 2**31)).last
        except NoSession:
            return 0

    async def standing(self, reply_id: str) -> ReplyResult:
        """How a reply stands; of its message perhaps the last blocks only."""
        return await self._asking.query("result", ReplyResult, reply_id)

    async def result(self, reply_id: str) -> ReplyResult:
        """The same with the whole message. Raises HistoryUnreadable."""
        found = await self.standing(reply_id)
        if found.complete or found.message is None:
            return found
        return ReplyResult(status=found.status, message=await self._whole(found, found.message))

    async def _whole(self, found: ReplyResult, message: Msg) -> Msg:
        pieces = [piece async for piece in self.transcript(found.start, found.end)]
        said = [block for piece in pieces if piece.id == message.id for block in piece.content]
        earlier = [_settled(block) for block in said[: len(said) - len(message.content)]]
        content = (*earlier, *message.content)
        return message.model_copy(update={"content": content, **answered_in(content, message.finished_reason)})

    async def trajectory(self, start: int = 1) -> AsyncIterator[TrajectoryEvent]:
        """The session in OpenHands' words, from entry `start` on. Raises HistoryUnreadable."""
        history = await self._entries.before(start)
        fold = Trajectory(history.take if history else None)
        async for entry in self._entries.all(history.seq + 1 if history else 1):
            events = fold.take(entry)
            if entry.seq >= start:
                for event in events:
                    yield event

    async def ledger(self) -> Ledger:
        """All that the session needs to go on, as of one moment, without its log and its old messages."""
        pages = Pages()
        while not pages.whole:
            asked = (EVERYTHING, EVERYTHING, len(pages.text), pages.seq)
            page = await self._asking.query("snapshot", SnapshotPage, *asked)
            if not pages.take(page.seq, page.total, page.text):
                pages = Pages()
        return Carried.model_validate_json(pages.text).ledger

    async def ledger_after(self, step: int, entry: int = 0) -> tuple[Ledger, str]:
        """The same as of the end of the `step`-th model call and its results, or of the step that an entry belongs to,
        and the commit that keeps the files from then, if there is one. Raises NoSuchStep, HistoryUnreadable."""
        fold, files = StepFold(step, entry=entry), KeptFiles()
        async for each in self._entries.all():
            if fold.take(each) and (not fold.keeps_files or files.take(each)):
                break
        return fold.ledger, files.snapshot

    async def _earlier_messages(self, start: int, end: int) -> AsyncIterator[Msg]:
        async for _, message in self._entries.sealed_messages(start, end):
            yield message

    async def _earlier_events(self, start: int, end: int) -> list[AgentEvent]:
        fold = EventFold()
        log = [entry async for entry in self._entries.all()]
        return [event for event in fold.catch_up(log) if start <= event.seq < end]


def _settled(block: ContentBlock) -> ContentBlock:
    """A call as the session shows it that has its result."""
    if not isinstance(block, ToolCallBlock):
        return block
    return block.model_copy(update={"state": ToolCallState.FINISHED})
