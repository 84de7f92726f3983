"""What reached deadlines do to the ledger."""

from agent import entries as e
from agent import fold_notices
from agent.fold_calls import close
from agent.ledger import KEPT_REQUESTS, Ledger
from agent.results import expired
from agent.state import OpenCall


def apply(ledger: Ledger, entry: e.DeadlineReached) -> None:
    for due in entry.due:
        call = ledger.current.calls[due.call_id]
        fold_notices.due(ledger, call, due, entry)
        _mark(call, due, entry.at)
        if due.closes:
            _close(ledger, call, due, entry)


def _mark(call: OpenCall, due: e.Due, at: int) -> None:
    """A later stage stands for the earlier ones: they are not made up for."""
    match due.stage:
        case "remind":
            call.reminded_at = at
        case "escalate":
            call.escalated_at = at
            call.reminded_at = call.reminded_at or at
        case "expire":
            call.expired_at = at


def _close(ledger: Ledger, call: OpenCall, due: e.Due, entry: e.DeadlineReached) -> None:
    ledger.expired[due.call_id] = entry.at
    while len(ledger.expired) > KEPT_REQUESTS:
        del ledger.expired[next(iter(ledger.expired))]
    ledger.current.rejected |= due.waits_for == "person"
    close(ledger, call, expired(call.block, due), entry)
