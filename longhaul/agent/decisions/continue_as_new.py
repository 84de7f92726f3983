"""Decides when a session continues as new, is stored, closes because nobody uses it, and reports to hubs."""

from dataclasses import dataclass

from longhaul.agent.journal import Journal
from longhaul.agent.steps import Checkpoint, Close, ContinueAsNew, Idle, Step, TellHub

CONTINUE_AS_NEW_EVENTS = 2_000
CONTINUE_AS_NEW_BYTES = 4_000_000
TRIES_APART_EVENTS = 200
"""A failed checkpoint is made again, for the sake of a continue-as-new, when the history has grown by so much."""
CARRIED_ENTRIES = 20
LONGEST_HISTORY = 20_000
"""Events after which a session continues as new although nothing could be written down outside: at 51,200 events the
server ends it."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the journal can't know: how long this run's history is, and which calls are running now."""

    events: int = 0
    bytes: int = 0
    continue_as_new_suggested: bool = False
    running: frozenset[str] = frozenset()
    """Call ids."""
    checkpointing: bool = False
    """A checkpoint is being written, beside whatever else happens."""
    unfused: frozenset[str] = frozenset()
    """Tools of which a fused read passed a bound in this reply."""
    tried: frozenset[str] = frozenset()
    """Ids of calls that may have been started along with an answer or within a task, by a worker that was lost."""
    brought: bool = False
    """Whether results of reads came along with the newest answer, which a fresh history would not have."""
    background: frozenset[str] = frozenset()
    """Ids of the calls whose commands this run has started, and not heard the end of."""
    at: int = 0
    """What time it is, in milliseconds since 1970; 0 = as of the newest entry."""


def history_is_long(journal: Journal, load: Load) -> bool:
    long = load.events > CONTINUE_AS_NEW_EVENTS or load.bytes > CONTINUE_AS_NEW_BYTES or load.continue_as_new_suggested
    tried = journal.keeping.failed
    return long and (tried is None or load.events > tried.events + TRIES_APART_EVENTS)


def continue_as_new(journal: Journal, load: Load) -> Step:
    """With everything written down outside first, so that only what is live is carried."""
    # What comes in while a checkpoint is written is carried: waiting for a moment of silence could take for ever.
    saved = journal.keeping.saved > 0 and journal.keeping.changed - journal.keeping.saved <= CARRIED_ENTRIES
    return ContinueAsNew() if saved or load.events > LONGEST_HISTORY else Checkpoint()


def should_save(journal: Journal, load: Load) -> bool:
    """After a reply, and when somebody else's answer is awaited; the same state is not tried twice."""
    tried = journal.keeping.failed
    return (
        not load.checkpointing
        and journal.keeping.mirrored < journal.keeping.changed
        and (tried is None or tried.changed < journal.keeping.changed)
    )


def idle_for_long(journal: Journal) -> bool:
    limit = journal.spec.idle_close_seconds
    if any(child.background and not child.outcome for child in journal.children.values()):
        return False  # what they say last would find nobody
    if any(not command.fate for command in journal.commands.values()):
        return False
    return limit > 0 and journal.latest_at - journal.keeping.active_at >= limit * 1000


def close(journal: Journal, load: Load) -> Step:
    """Only what a checkpoint has confirmed may end; a session that can't be written down stays open."""
    if load.checkpointing or journal.keeping.failed is not None:
        return Idle()
    return (
        Close()
        if journal.keeping.mirrored >= journal.keeping.changed and journal.keeping.closing
        else Checkpoint(closing=True)
    )


def to_tell_hub(journal: Journal) -> TellHub | None:
    """The oldest reply that a hub has not been told; None in a session that is in no hub."""
    return next((TellHub(hub, known.owed[0]) for hub, known in journal.hubs.items() if known.owed), None)
