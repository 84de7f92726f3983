"""Decides when a session goes on in a new run, because the history of this one has grown long."""

from dataclasses import dataclass

from longhaul.agent.record import Record
from longhaul.agent.steps import Checkpoint, RollOver, Step

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
