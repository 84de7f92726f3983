"""Seams found while entries are written down: from one that is known, the entries tell all that come after it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from longhaul.agent.entries import AnyEntry
from longhaul.agent.life.history import History


class Begin(NamedTuple):
    """How a segment begins."""

    messages: int | None
    """Messages before it; None when the seam is not known, or too large to be written down."""
    seam: Any


class SeamWalk:
    """Goes over entries in order. Where too much is open to be written down, the seam is not known."""

    def __init__(self, known: Mapping[int, Any]) -> None:
        """`known`: by the entry before which they are."""
        self._known = {seq: seam for seq, seam in known.items() if seam is not None}
        self._history: History | None = None
        self._behind: Sequence[AnyEntry] = ()

    def before(self, seq: int) -> Begin:
        """Before this entry, which is the next one."""
        self._fold()
        history = self._begun(seq)
        seam = history.seam if history else None
        return Begin(history.messages_total, seam) if history and (seam is not None or seq == 1) else Begin(None, None)

    def over(self, entries: Sequence[AnyEntry]) -> None:
        """They are folded when it is asked what comes behind them: mostly it is not."""
        self._behind = entries

    def _fold(self) -> None:
        entries, self._behind = self._behind, ()
        try:
            for entry in entries:
                self._history = self._begun(entry.seq)
                if self._history is not None:
                    self._history.take(entry)
        except (LookupError, ValueError):
            # Raised, it would fail every checkpoint of a session; unknown, it only makes reading slower.
            self._known, self._history = {}, None

    def _begun(self, seq: int) -> History | None:
        if self._history is not None or seq == 1:
            return self._history or History()
        try:
            return History.at(self._known[seq]) if seq in self._known else None
        except ValueError:
            return None
