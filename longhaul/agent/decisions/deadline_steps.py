"""Decides when a waiting call is reminded of, escalated and given up, and which notifications are still to be sent.

All of it follows from recorded times: a restart, a continue-as-new or a late timer changes no deadline.
"""

from collections.abc import Iterator

from longhaul.agent.entries import Due, Notification, Stage
from longhaul.agent.journal import Journal
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.notification_state import asleep
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.deadlines import Deadline


def to_tell(session: SessionState) -> list[Notification]:
    """Without those of calls that have been answered since."""
    return [
        left
        for notification in session.notifications.unsent.values()
        if (left := still_true(session, notification)) is not None
    ]


def still_true(session: SessionState, notification: Notification) -> Notification | None:
    """The notification without the calls that have been answered since; None when that is all of it."""
    left = [each for each in notification.each() if not _is_stale(session, each)]
    return left[0].model_copy(update={"more": tuple(left[1:])}) if left else None


def _is_stale(session: SessionState, notification: Notification) -> bool:
    call = session.reply.calls.get(notification.call_id) if session.reply else None
    waits = call is not None and call.waits_for is not None and call.asked_at == notification.asked_at
    return not notification.closed and not waits


def should_notify(session: SessionState) -> bool:
    tried = session.notifications.failed
    return (tried is None or tried.again) and bool(to_tell(session))


def retry_at(session: SessionState) -> int | None:
    """Milliseconds since 1970; None when nothing has to be tried again."""
    tried = session.notifications.failed
    return tried.due_at if tried is not None and not tried.again and to_tell(session) else None


def next_due(journal: Journal) -> int | None:
    """Milliseconds since 1970 of the earliest thing that is to come, or None: then no timer is needed."""
    times = [due.due_at for call in _waiting(journal) for due in _to_come(call)]
    times += [call.sleep.until for call in asleep(journal) if call.sleep is not None]
    again = retry_at(journal)
    return min(times if again is None else [*times, again], default=None)


def retry_is_due(journal: Journal, now: int) -> bool:
    """Whether somebody is to be told now of what they could not be told before."""
    again = retry_at(journal)
    return again is not None and again <= now


def sleep_is_over(journal: Journal, now: int) -> bool:
    """Whether the time has come for a call that sleeps."""
    return any(call.sleep is not None and call.sleep.until <= now for call in asleep(journal))


def reached(journal: Journal, now: int) -> tuple[Due, ...]:
    """What is due at `now` in milliseconds since 1970. Of each call only the last thing: whoever was down while a call
    expired need not remind anybody of it."""
    last = ([due for due in _to_come(call) if due.due_at <= now][-1:] for call in _waiting(journal))
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


def _waiting(journal: Journal) -> list[OpenCall]:
    return journal.reply.waiting() if journal.reply else []


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
    if after is None or call.waits_for is None or call.waits_for == "event":
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
