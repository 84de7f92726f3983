"""Entries about signed decisions: they count only when a worker has checked the signature."""

from typing import Any, Literal

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.plain.values import OpenValue, sparse


class DecisionsOffered(Entry):
    """Signed decisions came in; until they are checked, their calls go on waiting."""

    kind: Literal["offered"] = "offered"
    body: dict[str, Any]
    """`agent.letters.bodies.Confirm` as it came."""


class OfferSettled(Entry):
    """What became of an offer."""

    kind: Literal["offer_settled"] = "offer_settled"
    offer: int
    """Number of its entry."""
    why: Written = sparse("")
    """Why it does not count; empty when it does."""


class VerifyDecisions(OpenValue):
    """Check signatures. `body`: `agent.letters.bodies.Confirm` as it came."""

    body: dict[str, Any]


class Verified(OpenValue):
    """Why they do not hold (empty: they do), and the id of the key."""

    why: str = sparse("")
    key: str = sparse("")


OfferEntry = DecisionsOffered | OfferSettled
