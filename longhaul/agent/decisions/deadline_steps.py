"""Decides when a waiting call is reminded of, escalated and given up, and which notifications are still to be sent.

All of it follows from recorded times: a restart, a continue-as-new or a late timer changes no deadline.
"""

from collections.abc import Iterator

from longhaul.agent.entries import Due, Notice, Stage
from longhaul.agent.fold.agent_state import OpenCall
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.fold.notification_state import asleep
from longhaul.agent.plain.measures import iso
from longhaul.agent.record import Record
from longhaul.agent.values.deadlines import Deadline


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


def next_due(record: Record) -> int | None:
    """Milliseconds since 1970 of the earliest thing that is to come, or None: then no timer is needed."""
    times = [due.due_at for call in _waiting(record) for due in _to_come(call)]
    times += [call.sleep.until for call in asleep(record) if call.sleep is not None]
    again = retry_at(record)
    return min(times if again is None else [*times, again], default=None)


def retry_is_due(record: Record, now: int) -> bool:
    """Whether somebody is to be told now of what they could not be told before."""
    again = retry_at(record)
    return again is not None and again <= now


def sleep_is_over(record: Record, now: int) -> bool:
    """Whether the time has come for a call that sleeps."""
    return any(call.sleep is not None and call.sleep.until <= now for call in asleep(record))


def reached(record: Record, now: int) -> tuple[Due, ...]:
    """What is due at `now` in milliseconds since 1970. Of each call only the last thing: whoever was down while a call
    expired need not remind anybody of it."""
    last = ([due for due in _to_come(call) if due.due_at <= now][-1:] for call in _waiting(record))
    return tuple(due for found in last for due in found)


def expires_at(call: OpenCall) -> int | None:
    """Milliseconds since 1970."""
    deadline = call.deadline
    return _at(call, deadline.expire_after) if deadline and deadline.expire_after is not None else None


def when(call: OpenCall) -> dict[str, str]:
    """What is to come of a call that waits, and what has come, as ISO times and words for those who look at it."""
    deadline = call.deadline or Deadline()
    times = {
        **{f"{due.stage}_at".replace("expire_", "expires_"): due.due_at for due in _to_come(call)},
        "reminded_at": call.reminded_at,
        "escalated_at": call.escalated_at,
        "expired_at": call.expired_at,
    }
    if call.sleep is not None:
        return {"wakes_at": iso(call.sleep.until), "event": call.sleep.event}
    words = {"escalate_to": deadline.escalate_to, "on_expiry": deadline.on_expiry if deadline.expire_after else ""}
    return {**{name: iso(at) for name, at in times.items() if at}, **words}


def is_overdue(call: OpenCall) -> bool:
    """Somebody has been reminded of it, or it was handed up, or its time is over and it waits all the same."""
    return bool(call.reminded_at or call.escalated_at or call.expired_at)


def _waiting(record: Record) -> list[OpenCall]:
    return record.reply.waiting() if record.reply else []


def _to_come(call: OpenCall) -> Iterator[Due]:
    """In the order of their times."""
    deadline = call.deadline
    if deadline is None or call.expired_at or call.waits_for is None:
        return
    if not call.reminded_at:
        yield from _due(call, "remind", deadline.remind_after, deadline)
    if not call.escalated_at:
        yield from _due(call, "escalate", deadline.escalate_after, deadline)
    yield from _due(call, "expire", deadline.expire_after, deadline)


def _due(call: OpenCall, stage: Stage, after: float | None, deadline: Deadline) -> Iterator[Due]:
    if after is None or call.waits_for is None or call.waits_for == "wake-up":
        return
    yield Due(
        call_id=call.block.id,
        stage=stage,
        waits_for=call.waits_for,
        asked_at=call.asked_at,
        due_at=_at(call, after),
        to=deadline.escalate_to if stage == "escalate" else "",
        server=call.asked.server if call.asked is not None and call.waits_for == "outside" else "",
        closes=stage == "expire" and deadline.on_expiry == "deny",
    )


def _at(call: OpenCall, after: float) -> int:
    return call.asked_at + round(after * 1000)
