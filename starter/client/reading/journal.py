"""Reads one session: its state, what was said, and every entry from the first one on, however often it has rolled
over.

Entries that the session holds no more are read from its sealed segments.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Protocol

from temporalio.client import Client

from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.incarnation.continued_state import Carried
from longhaul.agent.incarnation.history import History, KeptFiles, StepReducer
from longhaul.agent.plain.errors import Damaged
from longhaul.agent.plain.text import Pages
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import ContentBlock, Msg, ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.tools import answered_in
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.run_spans import RunSpans, Span
from longhaul.agent.views.trajectory import Trajectory, TrajectoryEvent
from longhaul.starter.client.reading.queries import Asking, NoSession
from longhaul.starter.connection.connect import keyring_in, opened_blobs
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import BlobsUnavailable
from longhaul.stores.segments import DamagedSegment, Whole, messages_between
from longhaul.stores.segments import Segments as InBlobs
from longhaul.workflows.contract import (
    EntriesPage,
    EventPage,
    MessagePage,
    ReplyResult,
    SnapshotPage,
    Status,
    TranscriptPage,
)


class HistoryUnreadable(Damaged):
    """This client can't read older entries. The sentence says where they are, what to set, and what is readable."""


class SealedEntries(Protocol):
    """Where sealed entries are read."""

    async def read(self, segment: Segment) -> Whole:
        """All of its entries in order, and what was open before them. Raises HistoryUnreadable."""
        ...


class Entries:
    """Every entry of one session, whether the session holds it or a segment does."""

    def __init__(self, asking: Asking, segments: SealedEntries) -> None:
        self._asking = asking
        self._segments = segments

    async def all(self, wanted: int = 1) -> AsyncIterator[AnyEntry]:
        """From that number on, as far as the session has come when the last page is read."""
        while True:
            page = await self._asking.query("entries", EntriesPage, wanted)
            first = page.entries[0].seq if page.entries else page.seq + 1
            if first > wanted:
                async for entry in self._sealed(wanted, first):
                    yield entry
            for entry in page.entries:
                yield entry
            wanted = max(page.entries[-1].seq + 1 if page.entries else first, wanted)
            if wanted > page.seq:
                return

    async def before(self, wanted: int) -> History | None:
        """What was open before an entry, as near in front of that number as it was written down; None where reading
        begins at the first entry."""
        if wanted <= 1:
            return None
        status = await self._asking.query("status", Status)
        started = [one for one in status.segments if 1 < one.first_seq <= wanted and one.messages is not None]
        boundary = (await self._read(started[-1], status)).boundary if started else None
        return None if boundary is None else await asyncio.to_thread(History.at, boundary)

    async def sealed_messages(self, first: int, end: int) -> AsyncIterator[tuple[int, Msg]]:
        """Messages by number out of the segments, from `first` up to `end`. Raises HistoryUnreadable."""
        status = await self._asking.query("status", Status)
        for older, newer in pairwise(status.segments):
            _check_gap(status, older.last_seq + 1, newer.first_seq)
        async for pair in messages_between(lambda one: self._read(one, status), status.segments, first, end):
            yield pair

    async def _sealed(self, wanted: int, end: int) -> AsyncIterator[AnyEntry]:
        status = await self._asking.query("status", Status)
        for segment in status.segments:
            if segment.last_seq < wanted or segment.first_seq >= end:
                continue
            _check_gap(status, wanted, segment.first_seq)
            for entry in (await self._read(segment, status)).entries:
                if wanted <= entry.seq < end:
                    yield entry
            wanted = segment.last_seq + 1
        _check_gap(status, wanted, end)

    async def _read(self, segment: Segment, status: Status) -> Whole:
        try:
            return await self._segments.read(segment)
        except HistoryUnreadable as error:
            sealed = status.segments[-1].last_seq
            raise HistoryUnreadable(
                f"entries {segment.first_seq} to {segment.last_seq} of session {status.session_id!r} are in the blob "
                f"store, and cannot be read from here: {error}. What came after entry {sealed} can be read"
            ) from error


def _check_gap(status: Status, wanted: int, found: int) -> None:
    if found > wanted:
        raise HistoryUnreadable(
            f"entries {wanted} to {found - 1} of session {status.session_id!r} are in none of its segments; "
            "what came after them can be read"
        )


class SealedSegments:
    """Reads from the store through which the client sends; else from one that is opened for each reading."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def read(self, segment: Segment) -> Whole:
        """Raises HistoryUnreadable."""
        async with opened_blobs(self._client, self._settings) as blobs:
            return await _read(InBlobs(blobs, keys=keyring_in(self._client)), blobs.place, segment)


async def _read(segments: InBlobs, place: str, segment: Segment) -> Whole:
    try:
        return await segments.read_whole(segment)
    except (DamagedSegment, BlobsUnavailable) as error:
        raise HistoryUnreadable(
            f"{error}. Here LONGHAUL_BLOBS leads to {place!r}; it must lead to the workers' blobs"
        ) from error


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
        reducer = EventReducer()
        log = [entry async for entry in self._entries.all()]
        earlier = [event for event in reducer.catch_up(log) if start <= event.seq < page.first]
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
        pieces = [piece async for piece in self.transcript(found.start, found.end)]
        said = [block for piece in pieces if piece.id == found.message.id for block in piece.content]
        earlier: list[ContentBlock] = []
        for block in said[: len(said) - len(found.message.content)]:
            # A call as the session shows it that has its result.
            if isinstance(block, ToolCallBlock):
                earlier.append(block.model_copy(update={"state": ToolCallState.FINISHED}))
            else:
                earlier.append(block)
        content = (*earlier, *found.message.content)
        whole = found.message.model_copy(
            update={"content": content, **answered_in(content, found.message.finished_reason)}
        )
        return ReplyResult(status=found.status, message=whole)

    async def trajectory(self, start: int = 1) -> AsyncIterator[TrajectoryEvent]:
        """The session in OpenHands' words, from entry `start` on. Raises HistoryUnreadable."""
        history = await self._entries.before(start)
        reducer = Trajectory(history.take if history else None)
        async for entry in self._entries.all(history.seq + 1 if history else 1):
            events = reducer.take(entry)
            if entry.seq >= start:
                for event in events:
                    yield event

    async def run_spans(self, start: int = 1) -> list[Span]:
        """What took time, from entry `start` on. Raises HistoryUnreadable."""
        spans = RunSpans()
        async for entry in self._entries.all(start):
            spans.take(entry)
        return spans.whole()

    async def session(self) -> SessionState:
        """All that the session needs to go on, as of one moment, without its log and its old messages."""
        pages = Pages()
        while not pages.whole:
            asked = (EVERYTHING, EVERYTHING, len(pages.text), pages.seq)
            page = await self._asking.query("snapshot", SnapshotPage, *asked)
            if not pages.take(page.seq, page.total, page.text):
                pages = Pages()
        return Carried.model_validate_json(pages.text).session

    async def session_after(self, step: int, entry: int = 0) -> tuple[SessionState, str]:
        """The same as of the end of the `step`-th model call and its results, or of the step that an entry belongs to,
        and the commit that keeps the files from then, if there is one. Raises NoSuchStep, HistoryUnreadable."""
        reducer, files = StepReducer(step, entry=entry), KeptFiles()
        async for each in self._entries.all():
            if reducer.take(each) and (not reducer.keeps_files or files.take(each)):
                break
        return reducer.session, files.snapshot

    async def _earlier_messages(self, start: int, end: int) -> AsyncIterator[Msg]:
        async for _, message in self._entries.sealed_messages(start, end):
            yield message
