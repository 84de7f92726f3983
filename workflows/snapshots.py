"""All that a session would carry into another run, as text in pages: what a checkpoint and a rebuilding read."""

from typing import NamedTuple

from longhaul.activities.contract import SnapshotPage
from longhaul.agent.life.rollover_state import carry
from longhaul.agent.record import Record
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.workflows.contract import PAGE_BYTES

KEPT_SNAPSHOTS = 3


class SnapshotAsk(NamedTuple):
    saved: int
    saved_messages: int
    start: int
    """Character of the text."""
    seq: int
    """Of the page before, to read on in the same state; 0 for the first page."""


class Snapshot:
    """Texts that are pulled in pages. One is kept until its last page was read, although the session moves on: under a
    storm of letters no two pages would ever be of the same state."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int, int], str] = {}
        """By the entry that the state is of, and the entry and the number of messages up to which it was saved."""

    def page(self, record: Record, before: EventsSoFar, ask: SnapshotAsk) -> SnapshotPage:
        key = (ask.seq, ask.saved, ask.saved_messages)
        if ask.start == 0 or key not in self._kept:
            key = (record.seq, ask.saved, ask.saved_messages)
            while len(self._kept) >= KEPT_SNAPSHOTS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = carry(record, before, ask.saved, ask.saved_messages).model_dump_json()
        whole = self._kept[key]
        text = whole[ask.start : ask.start + PAGE_BYTES]
        if ask.start + len(text) >= len(whole):
            del self._kept[key]
        return SnapshotPage(seq=key[0], total=len(whole), text=text)
