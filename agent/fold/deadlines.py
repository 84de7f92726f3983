"""Changes the ledger by deadlines that were reached."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold import notices as fold_notices
from longhaul.agent.fold.calls import close
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import KEPT_REQUESTS, Ledger
from longhaul.agent.fold.synthetic_results import expired


def apply(ledger: Ledger, entry: e.DeadlineReached) -> None:
    fold_notices.due(ledger, entry)
    for due in entry.due:
        call = ledger.current.calls[due.call_id]
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
    ledger.calls.expired[due.call_id] = entry.at
    while len(ledger.calls.expired) > KEPT_REQUESTS:
        del ledger.calls.expired[next(iter(ledger.calls.expired))]
    ledger.current.rejected |= due.waits_for == "person"
    close(ledger, call, expired(call.block, due), entry)
