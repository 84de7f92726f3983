"""The entries of a session from the first one on: those that it still holds, and before them its sealed segments."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Protocol

from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.life.history import History
from longhaul.agent.plain.errors import Damaged
from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.reading.asking import Asking
from longhaul.stores.segments import Whole, messages_between
from longhaul.workflows.contract import EntriesPage, Status


class HistoryUnreadable(Damaged):
    """Older entries can't be read from here; the sentence says where they are, what to set, and what is readable."""


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
        begun = [one for one in status.segments if 1 < one.first_seq <= wanted and one.messages is not None]
        seam = (await self._read(begun[-1], status)).seam if begun else None
        return None if seam is None else await asyncio.to_thread(History.at, seam)

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
                f"entries {segment.first_seq} to {segment.last_seq} of session {status.session_id!r} stand in the blob "
                f"store, and can't be read from here: {error}. What came after entry {sealed} can be read"
            ) from error


def _check_gap(status: Status, wanted: int, found: int) -> None:
    if found > wanted:
        raise HistoryUnreadable(
            f"entries {wanted} to {found - 1} of session {status.session_id!r} stand in none of its segments; "
            "what came after them can be read"
        )
