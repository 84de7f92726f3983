"""The index is a session's row at the server: how it stands, and what waits in it."""

from dataclasses import dataclass, field

from longhaul.agent.decisions.deadlines import expires_at
from longhaul.agent.fold.ledger.ledger_parts import Spent
from longhaul.agent.letters.doubts import blocking, open_doubts
from longhaul.agent.record import Record
from longhaul.agent.values.amount import NANOS

WAITS_INDEXED, ALL_INDEXED = 2, 3
"""A namespace with the first search attributes has 1; with those of what waits, 2; with all that `IndexRow` has, 3."""

_RISKS = ("", "low", "medium", "unknown", "high")
"""The lowest first."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """The searchable part of a session. What the namespace has no attribute for stays empty."""

    status: str
    """idle, working, waiting or paused."""
    tools: tuple[str, ...] = ()
    """Of the calls that wait, and of those of which nobody knows whether they ran."""
    risk: str = ""
    team: str = ""
    deadline: int = 0
    """Milliseconds since 1970 at which the first of them expires or wakes up; 0 = never."""
    tokens: int = field(default=0, compare=False)
    dollars: float = field(default=0.0, compare=False)
    """These are told when something else has changed: a row of their own for each step would cost an event."""


def status_word(record: Record) -> str:
    if record.pause is not None:
        return "paused"
    return "waiting" if record.life.host_away else reply_word(record)


def reply_word(record: Record) -> str:
    """How the reply stands that is being made: a call that waits in it waits in a paused session too."""
    if record.life.hold:
        return "waiting"
    if record.reply is None:
        return "working" if record.requests.queue else "idle"
    if record.interrupted and record.provided.hooked_interrupts:
        return "working"  # on its last words: nobody is waited for any more
    lacks_budget = record.account is not None and record.account.question is not None
    return "waiting" if record.reply.waiting() or blocking(record) or lacks_budget else "working"


def row_of(record: Record) -> IndexRow:
    status = status_word(record)
    if record.provided.indexed < WAITS_INDEXED:
        return IndexRow(status)
    waiting = record.reply.waiting() if record.reply else []
    ends = [end for call in waiting if not call.expired_at and (end := expires_at(call)) is not None]
    ends += [call.sleep.until for call in waiting if call.sleep is not None]
    spent = record.spent if record.provided.indexed >= ALL_INDEXED else Spent()
    return IndexRow(
        status=status,
        tools=tuple(sorted({call.block.name for call in waiting} | {doubt.tool for doubt in open_doubts(record)})),
        risk=max((call.facts.risk for call in waiting), key=_RISKS.index, default=""),
        team=record.spec.team,
        deadline=min(ends, default=0),
        tokens=spent.usage.input_tokens + spent.usage.output_tokens,
        dollars=sum(model.nanos for model in spent.by_model.values()) / NANOS,
    )
