"""Counts what a context takes of a model's window, as the provider counts; says where it is cut, and what stands for a
result that was left out."""

from dataclasses import dataclass

from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.plain.token_correction import corrected

MASK = "[This result was left out to make room. Ask for it with the recall tool if it is needed.]"


@dataclass(frozen=True, slots=True)
class Cut:
    """Indexes in the context, the summary not counted."""

    keep_from: int
    pinned: tuple[int, ...]
    goal_tokens: int
    """What the part before `keep_from` may take afterwards, the summary included."""


def tokens(ledger: Ledger) -> int:
    """Of the next model call's whole input: what the provider said of the last one, and what came since."""
    counted, heard = ledger.provided.fixed_tokens + ledger.context.tokens, ledger.context.heard
    if heard.counted < 0:
        return as_reported(ledger, counted)
    return heard.reported + as_reported(ledger, counted - heard.counted)


def as_reported(ledger: Ledger, estimate: int) -> int:
    return corrected(estimate, ledger.context.heard.reported, ledger.context.heard.estimated)
