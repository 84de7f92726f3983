"""The carried state is what a session takes along into its next run, and what a checkpoint of it holds: the session
state, cut to what is live.

What was written down in segments is left out of it: the entries, and the messages that the context no longer shows.
"""

from copy import deepcopy

from longhaul.agent.entries import Checkpointed, Restored, SessionOpened, StateReplaced
from longhaul.agent.journal import Journal
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.all_changes import apply
from longhaul.agent.reducer.session_state import SessionState, forget
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.agent.views.events import EventReducer


class Carried(OpenValue):
    """JSON round trip is exact."""

    session: SessionState
    events: EventsSoFar = sparse(EventsSoFar())


def carry(journal: Journal, before: EventsSoFar, saved: int, saved_messages: int) -> Carried:
    """The journal without the entries up to `saved`, and the messages that they brought: they stand outside.

    `before`: events of entries that the journal's log no longer has.
    """
    session = journal.twin()
    unsaved = next((at for at, entry in enumerate(journal.log) if entry.seq > saved), len(journal.log))
    events = EventReducer(before).pass_over(journal.log[:unsaved])
    session.log = journal.log[unsaved:]
    session.context.transcript_base = max(journal.context.transcript_base, min(saved_messages, _first_needed(journal)))
    session.context.transcript = journal.context.transcript[
        session.context.transcript_base - journal.context.transcript_base :
    ]
    session.calls.names, session.calls.forgotten = forget(
        journal.calls.names, journal.calls.forgotten, journal.open_calls
    )
    return Carried(session=session, events=events)


def _first_needed(journal: Journal) -> int:
    """Number of the message in which open calls stand: whoever asks what a session waits for is shown it."""
    for place, message in enumerate(reversed(journal.context.transcript), start=1):
        if any(call.id in journal.open_calls for call in message.get_tool_calls()):
            return journal.messages_total - place
    return journal.messages_total


def slimmed(carried: Carried) -> Carried:
    """The same without what stands outside by the session state's own account."""
    journal = Journal.over(carried.session)
    return carry(journal, carried.events, journal.keeping.saved, journal.keeping.saved_messages)


def once_saved(carried: Carried, saved: Checkpointed) -> Carried:
    """As the session will know of itself when it has recorded that checkpoint: what is stored names what it needs."""
    session = carried.session.twin()
    apply(session, saved)
    return Carried(session=session, events=carried.events)


def with_state(carried: Carried, state: AgentState, by: str, why: str) -> Carried:
    """What it carries with another state in the place of its own, as if that had been done while the session ran."""
    journal = Journal.over(deepcopy(carried.session))
    journal.write(StateReplaced(state=state.model_dump(mode="json"), by=by, why=why), journal.latest_at)
    return Carried(session=journal, events=carried.events)


def imported(opened: SessionOpened, state: AgentState, by: str) -> Carried:
    """A session that begins with this state, of which nothing else is known."""
    return with_state(Carried(session=Journal.of([opened.model_copy(update={"seq": 1})])), state, by, "an import")


def as_it_began(started: Carried, found: Restored, earlier: Carried | None) -> Carried:
    """What a session would have gone on with that ended before it had recorded what was found of its earlier
    incarnation.

    The operations that it had taken in come after that incarnation.
    """
    journal = Journal.over(deepcopy(started.session))
    journal.restore(found, deepcopy(earlier.session) if earlier else None, journal.latest_at)
    return Carried(session=journal, events=earlier.events if earlier else started.events)
