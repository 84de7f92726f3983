"""The carried state is what a session takes along into its next run, and what a checkpoint of it holds: the ledger, cut
to what is live.

What was written down in segments is left out of it: the entries, and the messages that the context no longer shows.
"""

from copy import deepcopy

from longhaul.agent.entries import Checkpointed, Restored, SessionOpened, StateReplaced
from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.fold.all_changes import apply
from longhaul.agent.fold.ledger import Ledger, forget
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.record import Record
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.agent.views.events import EventFold


class Carried(OpenValue):
    """JSON round trip is exact."""

    ledger: Ledger
    events: EventsSoFar = sparse(EventsSoFar())


def carry(record: Record, before: EventsSoFar, saved: int, saved_messages: int) -> Carried:
    """The record without the entries up to `saved`, and the messages that they brought: they stand outside.

    `before`: events of entries that the record's log no longer has.
    """
    ledger = record.twin()
    unsaved = next((at for at, entry in enumerate(record.log) if entry.seq > saved), len(record.log))
    events = EventFold(before).pass_over(record.log[:unsaved])
    ledger.log = record.log[unsaved:]
    ledger.context.transcript_base = max(record.context.transcript_base, min(saved_messages, _first_needed(record)))
    ledger.context.transcript = record.context.transcript[
        ledger.context.transcript_base - record.context.transcript_base :
    ]
    ledger.calls.names, ledger.calls.forgotten = forget(record.calls.names, record.calls.forgotten, record.open_calls)
    return Carried(ledger=ledger, events=events)


def _first_needed(record: Record) -> int:
    """Number of the message in which open calls stand: whoever asks what a session waits for is shown it."""
    for place, message in enumerate(reversed(record.context.transcript), start=1):
        if any(call.id in record.open_calls for call in message.get_tool_calls()):
            return record.messages_total - place
    return record.messages_total


def slimmed(carried: Carried) -> Carried:
    """The same without what stands outside by the ledger's own account."""
    record = Record.over(carried.ledger)
    return carry(record, carried.events, record.keeping.saved, record.keeping.saved_messages)


def once_saved(carried: Carried, saved: Checkpointed) -> Carried:
    """As the session will know of itself when it has recorded that checkpoint: what is stored names what it needs."""
    ledger = carried.ledger.twin()
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
