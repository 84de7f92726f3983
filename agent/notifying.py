"""Which notices are still to be told, and when a checkpoint has to tell them."""

from agent.ledger import Ledger
from agent.notices import Notice


def to_tell(ledger: Ledger) -> list[Notice]:
    """Without those of calls that have been answered since."""
    return [notice for notice in ledger.notices.values() if not is_stale(ledger, notice)]


def is_stale(ledger: Ledger, notice: Notice) -> bool:
    call = ledger.reply.calls.get(notice.call_id) if ledger.reply else None
    waits = call is not None and call.waits_for is not None and call.asked_at == notice.asked_at
    return not notice.closed and not waits


def should_notify(ledger: Ledger) -> bool:
    tried = ledger.notify_failed
    return (tried is None or tried.again) and bool(to_tell(ledger))


def retry_at(ledger: Ledger) -> int | None:
    """Milliseconds since 1970; None when nothing has to be tried again."""
    tried = ledger.notify_failed
    return tried.due_at if tried is not None and not tried.again and to_tell(ledger) else None
