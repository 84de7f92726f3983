"""What the server's index says of a session: how it stands, and what waits in it."""

from dataclasses import dataclass

from agent.pausing import is_paused
from agent.record import Record
from agent.settling import blocking, open_doubts
from agent.waiting import expires_at

ALL_INDEXED = 2
"""A namespace with the first search attributes has 1; with all that `Row` has, 2."""


_RISKS = ("", "low", "medium", "unknown", "high")
"""The lowest first."""


@dataclass(frozen=True, slots=True)
class Row:
    """The searchable part of a session. What the namespace has no attribute for stays empty."""

    status: str
    """idle, working, waiting or paused."""
    tools: tuple[str, ...] = ()
    """Of the calls that wait, and of those of which nobody knows whether they ran."""
    risk: str = ""
    team: str = ""
    deadline: int = 0
    """Milliseconds since 1970 at which the first of them expires; 0 = never."""


def status_word(record: Record) -> str:
    if is_paused(record):
        return "paused"
    return reply_word(record)


def reply_word(record: Record) -> str:
    """How the reply stands that is being made: a call that waits in it waits in a paused session too."""
    if record.hold:
        return "waiting"
    if record.reply is None:
        return "working" if record.queue else "idle"
    if record.reply.interrupted and record.hooked_interrupts:
        return "working"  # on its last words: nobody is waited for any more
    return "waiting" if record.reply.waiting() or blocking(record) else "working"


def row_of(record: Record) -> Row:
    status = status_word(record)
    if record.indexed < ALL_INDEXED:
        return Row(status)
    waiting = record.reply.waiting() if record.reply else []
    ends = [end for call in waiting if not call.expired_at and (end := expires_at(call)) is not None]
    return Row(
        status=status,
        tools=tuple(sorted({call.block.name for call in waiting} | {doubt.tool for doubt in open_doubts(record)})),
        risk=max((call.facts.risk for call in waiting), key=_RISKS.index, default=""),
        team=record.spec.team,
        deadline=min(ends, default=0),
    )
