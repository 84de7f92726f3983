"""What a session takes along into its next run, and what a checkpoint of it holds: the ledger, cut to what is live.

What was written down in segments is left out of it: the entries, and the messages that the context no longer shows.
"""

from copy import copy, deepcopy

from agent.entries import Checkpointed, Restored, SessionOpened, StateReplaced
from agent.event import EventsSoFar
from agent.events import EventFold
from agent.fold import apply
from agent.forgotten import forget
from agent.ledger import Ledger
from agent.record import Record
from agent.state import AgentState
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
    events = EventFold(before).pass_over(record.log[:unsaved])
    ledger.log = record.log[unsaved:]
    ledger.transcript_base = max(record.transcript_base, min(saved_messages, _first_needed(record)))
    ledger.transcript = record.transcript[ledger.transcript_base - record.transcript_base :]
    ledger.call_names, ledger.forgotten_calls = forget(record.call_names, record.forgotten_calls, record.calls)
    return Carried(ledger=ledger, events=events)


def _first_needed(record: Record) -> int:
    """Number of the message in which open calls stand: whoever asks what a session waits for is shown it."""
    for place, message in enumerate(reversed(record.transcript), start=1):
        if any(call.id in record.calls for call in message.get_tool_calls()):
            return record.messages_total - place
    return record.messages_total


def slimmed(carried: Carried) -> Carried:
    """The same without what stands outside by the ledger's own account."""
    record = Record.over(carried.ledger)
    return carry(record, carried.events, record.saved, record.saved_messages)


def once_saved(carried: Carried, saved: Checkpointed) -> Carried:
    """As the session will know of itself when it has recorded that checkpoint: what is stored names what it needs."""
    ledger = copy(carried.ledger)
    apply(ledger, saved)
    return Carried(ledger=ledger, events=carried.events)


def with_state(carried: Carried, state: AgentState, by: str, why: str) -> Carried:
    """What it carries with another state in the place of its own, as if that had been done while the session ran."""
    record = Record.over(deepcopy(carried.ledger))
    record.write(StateReplaced(state=state.model_dump(mode="json"), by=by, why=why), record.latest_at)
    return Carried(ledger=record, events=carried.events)


def imported(opened: SessionOpened, state: AgentState, by: str) -> Carried:
    """A session that begins with this state, of which nothing else is known."""
    return with_state(Carried(ledger=Record.of([opened.model_copy(update={"seq": 1})])), state, by, "an import")


def as_it_began(begun: Carried, found: Restored, earlier: Carried | None) -> Carried:
    """What a session would have gone on with that ended before it had recorded what was found of its earlier life.

    The letters that it had taken in come after that life.
    """
    record = Record.over(deepcopy(begun.ledger))
    record.restore(found, deepcopy(earlier.ledger) if earlier else None, record.latest_at)
    return Carried(ledger=record, events=earlier.events if earlier else begun.events)
