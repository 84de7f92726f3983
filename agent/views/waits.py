"""Measures how long calls have waited: for people, and for systems outside, until somebody answered or their time was
over."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from longhaul.agent.entries.all_entries import (
    AnyEntry,
    DeadlineReached,
    HumanDecided,
    InputAnswered,
    ResultReceived,
    ToolReturned,
)
from longhaul.agent.fold.ledger.ledger import Ledger

Outcome = Literal["answered", "expired"]
_Ends = HumanDecided | ToolReturned | ResultReceived | InputAnswered | DeadlineReached


class Waited(NamedTuple):
    tool: str
    waits_for: Literal["person", "outside"]
    outcome: Outcome
    seconds: float


def waits_ended(ledger: Ledger, entry: AnyEntry, at: int) -> list[Waited]:
    """The waits that this entry is about to end. `at`: milliseconds since 1970. Of a call that takes two approvals each
    is a wait of its own."""
    # Asked of every entry that is written: nearly all end no wait.
    if not isinstance(entry, _Ends) or ledger.reply is None:
        return []
    calls = ledger.reply.calls
    return [
        Waited(call.block.name, call.waits_for, outcome, (at - call.asked_at) / 1000)
        for call_id, outcome in _answered(entry)
        if (call := calls.get(call_id)) is not None and call.waits_for is not None and call.waits_for != "wake-up"
    ]


def _answered(entry: _Ends) -> Iterator[tuple[str, Outcome]]:
    """Calls by id."""
    match entry:
        case HumanDecided():
            for decision in entry.decisions:
                yield decision.call_id, "answered"
        case ToolReturned() | ResultReceived():
            yield entry.result.id, "answered"
        case InputAnswered():
            yield entry.call_id, "answered"
        case DeadlineReached():
            for due in entry.due:
                if due.closes:
                    yield due.call_id, "expired"
