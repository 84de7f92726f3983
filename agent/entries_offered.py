"""Entries about signed decisions: they count only when a worker has checked the signature."""

from typing import Any, Literal

from agent.entry import Entry
from agent.values import Guest, sparse


class DecisionsOffered(Entry):
    """Signed decisions came in; until they are checked, their calls go on waiting."""

    kind: Literal["offered"] = "offered"
    body: dict[str, Any]
    """`agent.bodies.Confirm` as it came."""


class OfferSettled(Entry):
    """What became of an offer."""

    kind: Literal["offer_settled"] = "offer_settled"
    offer: int
    """Number of its entry."""
    why: str = sparse("")
    """Why it does not count; empty when it does."""


class VerifyDecisions(Guest):
    """Check signatures. `body`: `agent.bodies.Confirm` as it came."""

    body: dict[str, Any]


class Verified(Guest):
    """Why they do not hold (empty: they do), and the id of the key."""

    why: str = sparse("")
    key: str = sparse("")
