"""Changes the ledger by entries about signed decisions."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.ledger import Ledger

KEPT_OUTCOMES = 50
TOO_LATE = "the reply had ended before it was checked"


def apply(ledger: Ledger, entry: e.OfferEntry) -> None:
    if isinstance(entry, e.DecisionsOffered):
        ledger.offers.waiting[entry.seq] = entry
    else:
        ledger.offers.waiting.pop(entry.offer, None)
        _note(ledger, entry.offer, entry.why)


def end_of_reply(ledger: Ledger) -> None:
    """Nobody waits for them any more."""
    for number in ledger.offers.waiting:
        _note(ledger, number, TOO_LATE)
    ledger.offers.waiting = {}


def _note(ledger: Ledger, number: int, why: str) -> None:
    ledger.offers.settled[number] = why
    while len(ledger.offers.settled) > KEPT_OUTCOMES:
        del ledger.offers.settled[next(iter(ledger.offers.settled))]
