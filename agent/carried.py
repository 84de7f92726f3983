"""What a session takes along into its next run, and what a checkpoint of it holds: the ledger, cut to what is live.

What was written down in segments is left out of it: the entries, and the messages that the context no longer shows.
"""

from copy import copy

from agent.event import EventsSoFar
from agent.events import EventFold
from agent.ledger import Ledger
from agent.record import Record
from agent.values import Guest, sparse


class Carried(Guest):
    """JSON round trip is exact."""

    ledger: Ledger
    events: EventsSoFar = sparse(EventsSoFar())


def carry(record: Record, before: EventsSoFar, saved: int, saved_messages: int) -> Carried:
    """The record without the entries up to `saved`, and the messages that they brought: they stand outside.

    `before`: events of entries that the record's log no longer has.
    """
    ledger = copy(record)
    unsaved = next((at for at, entry in enumerate(record.log) if entry.seq > saved), len(record.log))
    fold = EventFold(before)
    fold.catch_up(record.log[:unsaved])
    ledger.log = record.log[unsaved:]
    ledger.transcript_base = max(record.transcript_base, min(saved_messages, record.messages_total))
    ledger.transcript = record.transcript[ledger.transcript_base - record.transcript_base :]
    return Carried(ledger=ledger, events=fold.so_far)
