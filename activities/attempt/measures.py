"""An activity tells its numbers to whoever measures it. Where nobody does, saying it costs next to nothing."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

from longhaul.agent.entries import AnyEntry
from longhaul.agent.fold.ledger import Ledger


class Listener(Protocol):
    """Hears of one attempt of one activity."""

    def written(self, entries: Sequence[AnyEntry], ledger: Ledger) -> None:
        """A checkpoint has these entries that no earlier one had; the ledger is the session's behind them."""


_LISTENERS: ContextVar[tuple[Listener, ...]] = ContextVar("longhaul_listeners", default=())


def listen(listener: Listener) -> None:
    """For the rest of this activity's attempt: each has a context of its own."""
    _LISTENERS.set((*_LISTENERS.get(), listener))


def written(entries: Sequence[AnyEntry], ledger: Ledger) -> None:
    for listener in _LISTENERS.get():
        listener.written(entries, ledger)
