"""The steps of a session whose older entries stand in segments: read from where they are asked for."""

from pathlib import Path
from typing import Any, cast

from longhaul.agent.entries import AnyEntry, Segment
from longhaul.starter.client.reading.journal import Entries, SessionReader
from longhaul.starter.client.reading.queries import Asking
from longhaul.stores.blobs.blob_directory import DirectoryBlobs
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.segments import Segments, Whole
from longhaul.workflows.contract import EntriesPage, Status
from tests.agent.incarnation.test_history import long_talk

PREFIX = session_prefix("default", "longhaul/mason/~/wall-8")
SMALL_BYTES = 3_000
HELD = 4
"""Entries that the session still has."""


class Sealed:
    """What a session of these entries would answer, and which of its segments are read."""

    def __init__(self, log: list[AnyEntry], segments: tuple[Segment, ...], store: Segments) -> None:
        self._held, self._segments, self._store = log[-HELD:], segments, store
        self._seq = log[-1].seq
        self.opened = list[int]()

    async def query(self, name: str, _answer: type, *_arguments: Any) -> Any:
        if name == "status":
            return Status(session_id="s", user_id=None, agent="a", model="m", status="idle", segments=self._segments)
        return EntriesPage(entries=tuple(self._held), seq=self._seq, messages=0)

    async def read(self, segment: Segment) -> Whole:
        self.opened.append(segment.first_seq)
        return await self._store.read_whole(segment)


async def test_a_later_page_opens_no_earlier_segment(tmp_path: Path) -> None:
    log = long_talk().journal.log
    store = Segments(DirectoryBlobs(tmp_path, fsync=False), SMALL_BYTES)
    segments = tuple(await store.write(PREFIX, log[:-HELD]))
    sealed = Sealed(log, segments, store)
    reader = SessionReader(cast(Asking, sealed), Entries(cast(Asking, sealed), sealed))
    whole = [event async for event in reader.trajectory()]
    last = next(segment for segment in reversed(segments) if segment.messages is not None)
    sealed.opened.clear()
    later = [event async for event in reader.trajectory(last.first_seq)]

    assert len(segments) > 2
    assert {*sealed.opened} == {one.first_seq for one in segments if one.first_seq >= last.first_seq}
    assert [event.model_copy(update={"forgotten": ()}) for event in later] == [
        event.model_copy(update={"forgotten": ()}) for event in whole if event.seq >= last.first_seq
    ]
