"""Puts what a session waits for into few words, for its row in the server's index: so an inbox asks no session."""

from longhaul.agent.letters.doubts import open_doubts
from longhaul.agent.letters.pausing import told
from longhaul.agent.record import Record
from longhaul.workflows import views
from longhaul.workflows.contract import PendingCall, Waits

MOST_CALLS = 16
LARGEST_CALL_BYTES = 8_000
LARGEST_BYTES = 24_000
"""Of all calls: whoever lists a thousand sessions reads them all at once."""


def waits(record: Record) -> str:
    """`Waits` as JSON; empty where nobody is waited for."""
    calls = _with_room(views.pending(record, MOST_CALLS))
    lacks_budget = record.account is not None and record.account.question is not None
    count = len(views.waiting(record)) + len(open_doubts(record)) + lacks_budget
    found = Waits.model_validate(
        {
            **told(record),
            "calls": calls,
            "left_out": count - len(calls),
            "hold": record.life.hold,
            "host_away": record.life.host_away,
        }
    )
    return "" if found == Waits() else found.model_dump_json()


def _with_room(calls: list[PendingCall]) -> tuple[PendingCall, ...]:
    taken, room = list[PendingCall](), LARGEST_BYTES
    for call in calls:
        length = len(call.model_dump_json().encode("utf-8", "replace"))
        if length <= min(LARGEST_CALL_BYTES, room):
            taken.append(call)
            room -= length
    return tuple(taken)
