"""Sums of what model calls take, by session and by model, and the keys under which a session puts some aside for its
sub-agents."""

from typing import Literal

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import Usage

NANOS = 1_000_000_000
GIVEN_BACK = "given back"
"""Of what a sub-agent had left when its task ended: whoever started it may spend it now."""


def child_key(call_id: str) -> str:
    """Of what is put aside for the sub-agent of that call."""
    return f"sub-agent {call_id}"


class Amount(OpenValue):
    """What model calls take."""

    tokens: int = sparse(0, ge=0)
    nanos: int = sparse(0, ge=0)
    """Billionths of a dollar; 0 where nobody asks what it costs."""
    calls: int = sparse(0, ge=0)
    steps: int = sparse(0, ge=0)
    """Of sub-agents; a session's own are in its `Account`."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            tokens=self.tokens + other.tokens,
            nanos=self.nanos + other.nanos,
            calls=self.calls + other.calls,
            steps=self.steps + other.steps,
        )

    def times(self, number: int) -> "Amount":
        return Amount(
            tokens=self.tokens * number,
            nanos=self.nanos * number,
            calls=self.calls * number,
            steps=self.steps * number,
        )

    def of(self, name: Literal["tokens", "cost", "calls", "steps"]) -> float:
        return {"tokens": self.tokens, "cost": self.nanos / NANOS, "calls": self.calls, "steps": self.steps}[name]


NOTHING = Amount()


class ModelSpent(OpenValue):
    """Of all its calls whose end was heard of; or of those that were lost, as estimated."""

    calls: int = 0
    usage: Usage = Usage()
    nanos: int = sparse(0)
    """Billionths of a dollar; 0 where nobody knows its price, or the session has no budget."""


NOTHING_SPENT = ModelSpent()


def bounded(amount: Amount) -> Amount:
    """One that somebody else tells. Raises ValueError where it has more digits than a budget can count with."""
    for name in ("tokens", "nanos", "calls", "steps"):
        if getattr(amount, name) > 10**18:
            raise ValueError(f"{name}: more than 10^18")
    return amount
