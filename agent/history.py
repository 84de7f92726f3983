"""Every message that a session ever had, by number, from its entries alone: also those that it has long put away."""

from collections.abc import Iterable, Iterator

from agent.entries import AnyEntry, SessionOpened
from agent.messages import Msg
from agent.record import Record


class History:
    """Folds entries from the very first on, and keeps neither them nor the messages: only what the next ones need."""

    def __init__(self, opened: AnyEntry) -> None:
        """Raises ValueError when it is not the first entry of a session."""
        if not isinstance(opened, SessionOpened) or opened.seq != 1:
            raise ValueError(f"a history begins with entry 1, 'opened', not with {opened.kind!r}, {opened.seq}")
        self._record = Record.of([opened])
        self._record.log.clear()

    @property
    def seq(self) -> int:
        """The newest entry that was folded."""
        return self._record.seq

    @property
    def messages_total(self) -> int:
        return self._record.messages_total

    def take(self, entry: AnyEntry) -> list[tuple[int, Msg]]:
        """The messages that the entry brought, with the numbers that they had live. Raises ValueError for a gap."""
        record = self._record
        if entry.seq != record.seq + 1:
            raise ValueError(f"entry {entry.seq} does not follow on {record.seq}")
        first = record.messages_total
        record.take(entry)
        brought = list(enumerate(record.transcript, start=first))
        record.log.clear()
        record.transcript_base, record.transcript = record.messages_total, []
        return brought


def messages(entries: Iterable[AnyEntry]) -> Iterator[tuple[int, Msg]]:
    """Number and message, oldest first. Raises ValueError when the entries do not begin at the first, or have a gap."""
    history: History | None = None
    for entry in entries:
        if history is None:
            history = History(entry)
        else:
            yield from history.take(entry)
