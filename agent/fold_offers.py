"""What entries about signed decisions do to the ledger."""

from agent import entries as e
from agent.ledger import Ledger

KEPT_OUTCOMES = 50
TOO_LATE = "the reply had ended before it was checked"


def apply(ledger: Ledger, entry: e.DecisionsOffered | e.OfferSettled) -> None:
    if isinstance(entry, e.DecisionsOffered):
        ledger.offers[entry.seq] = entry
    else:
        ledger.offers.pop(entry.offer, None)
        _note(ledger, entry.offer, entry.why)


def end_of_reply(ledger: Ledger) -> None:
    """Nobody waits for them any more."""
    for number in ledger.offers:
        _note(ledger, number, TOO_LATE)
    ledger.offers = {}


def _note(ledger: Ledger, number: int, why: str) -> None:
    ledger.settled_offers[number] = why
    while len(ledger.settled_offers) > KEPT_OUTCOMES:
        del ledger.settled_offers[next(iter(ledger.settled_offers))]
