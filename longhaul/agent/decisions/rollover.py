"""Decides when a session continues as new, is stored, closes because nobody uses it, and reports to hubs."""

from dataclasses import dataclass

from longhaul.agent.record import Record
from longhaul.agent.steps import Checkpoint, Close, Idle, RollOver, Step, TellHub

ROLL_OVER_EVENTS = 2_000
ROLL_OVER_BYTES = 4_000_000
TRIES_APART_EVENTS = 200
"""A failed checkpoint is made again, for the sake of a roll-over, when the history has grown by so much."""
CARRIED_ENTRIES = 20
LONGEST_HISTORY = 20_000
"""Events after which a session rolls over although nothing could be written down outside: at 51,200 events the server
ends it."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the record can't know: how long this run's history is, and which calls are running now."""

    events: int = 0
    bytes: int = 0
    roll_over_suggested: bool = False
    running: frozenset[str] = frozenset()
    """Call ids."""
    checkpointing: bool = False
    """A checkpoint is being written, beside whatever else happens."""
    unfused: frozenset[str] = frozenset()
    """Tools of which a fused read passed a bound in this reply."""
    tried: frozenset[str] = frozenset()
    """Ids of calls that may have been begun along with an answer or within a task, by a worker that was lost."""
    brought: bool = False
    """Whether results of reads came along with the newest answer, which a fresh history would not have."""
    background: frozenset[str] = frozenset()
    """Ids of the calls whose commands this run has begun, and not heard the end of."""
    at: int = 0
    """What time it is, in milliseconds since 1970; 0 = as of the newest entry."""


def history_is_long(record: Record, load: Load) -> bool:
    long = load.events > ROLL_OVER_EVENTS or load.bytes > ROLL_OVER_BYTES or load.roll_over_suggested
    tried = record.keeping.failed
    return long and (tried is None or load.events > tried.events + TRIES_APART_EVENTS)


def roll_over(record: Record, load: Load) -> Step:
    """With everything written down outside first, so that only what is live is carried."""
    # What comes in while a checkpoint is written is carried: waiting for a moment of silence could take for ever.
    saved = record.keeping.saved > 0 and record.keeping.changed - record.keeping.saved <= CARRIED_ENTRIES
    return RollOver() if saved or load.events > LONGEST_HISTORY else Checkpoint()


def should_save(record: Record, load: Load) -> bool:
    """After a reply, and when somebody else's answer is awaited; the same state is not tried twice."""
    tried = record.keeping.failed
    return (
        not load.checkpointing
        and record.keeping.mirrored < record.keeping.changed
        and (tried is None or tried.changed < record.keeping.changed)
    )


def idle_for_long(record: Record) -> bool:
    limit = record.spec.idle_close_seconds
    if any(child.background and not child.outcome for child in record.children.values()):
        return False  # what they say last would find nobody
    if any(not command.fate for command in record.commands.values()):
        return False
    return limit > 0 and record.latest_at - record.keeping.active_at >= limit * 1000


def close(record: Record, load: Load) -> Step:
    """Only what a checkpoint has confirmed may end; a session that can't be written down stays open."""
    if load.checkpointing or record.keeping.failed is not None:
        return Idle()
    return (
        Close()
        if record.keeping.mirrored >= record.keeping.changed and record.keeping.closing
        else Checkpoint(closing=True)
    )


def to_tell_hub(record: Record) -> TellHub | None:
    """The oldest reply that a hub has not been told; None in a session that is in no hub."""
    return next((TellHub(hub, known.owed[0]) for hub, known in record.hubs.items() if known.owed), None)
