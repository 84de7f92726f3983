"""Picks the notices that are still to be told, and says when a checkpoint has to tell them."""

from longhaul.agent.entries.notices import Notice
from longhaul.agent.fold.ledger.ledger import Ledger


def to_tell(ledger: Ledger) -> list[Notice]:
    """Without those of calls that have been answered since."""
    return [left for notice in ledger.notices.unsent.values() if (left := still_true(ledger, notice)) is not None]


def still_true(ledger: Ledger, notice: Notice) -> Notice | None:
    """The notice without the calls that have been answered since; None when that is all of it."""
    left = [each for each in notice.each() if not _is_stale(ledger, each)]
    return left[0].model_copy(update={"more": tuple(left[1:])}) if left else None


def _is_stale(ledger: Ledger, notice: Notice) -> bool:
    call = ledger.reply.calls.get(notice.call_id) if ledger.reply else None
    waits = call is not None and call.waits_for is not None and call.asked_at == notice.asked_at
    return not notice.closed and not waits


def should_notify(ledger: Ledger) -> bool:
    tried = ledger.notices.failed
    return (tried is None or tried.again) and bool(to_tell(ledger))


def retry_at(ledger: Ledger) -> int | None:
    """Milliseconds since 1970; None when nothing has to be tried again."""
    tried = ledger.notices.failed
    return tried.due_at if tried is not None and not tried.again and to_tell(ledger) else None
