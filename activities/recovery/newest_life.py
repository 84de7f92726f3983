"""Finds the newest of the lives that a session has had, and whether that is certain. No input, no output.

Rules of this file: an older state is never taken for the newest one. What is not certain is
held, and the hold says why.
"""

from dataclasses import dataclass, field

from longhaul.agent.entries import Restored
from longhaul.agent.life.rollover_state import Carried, as_it_began
from longhaul.stores.state.store import DamagedRecord


@dataclass(frozen=True, slots=True)
class StoredLife:
    """The state store's record."""

    generation: int
    closed: bool = False
    """It says that the session ended with it."""
    carried: Carried | None = None
    """What can be gone on with; None for a life that had begun and had written nothing."""
    place: tuple[int, int] = (0, 0)
    """Generation and entry that it shows; somebody who edits the state does not change it."""
    edited: bool = False
    hold: str = ""
    """Why the life was held that has written nothing but that it has begun."""


@dataclass
class Past:
    """All that was found out about the lives before this one."""

    stored: StoredLife | None = None
    damage: DamagedRecord | None = None
    closed: bool = False
    """The newest life closed of itself, and the store holds all of it."""
    gone: bool = False
    """The run that wrote the record has no history any more."""
    lost: str = ""
    """Why the newest run that the server knows can't be read; empty when it can, or there is none."""
    history: Carried | None = None
    """The newest run that had begun in earnest, as its history tells it."""
    begun: list[Carried] = field(default_factory=list[Carried])
    """Runs after that one that ended before they had found out about it, newest first."""
    deleted: int = 0
    """Generation of the mark that the session was deleted, where that lies in the record's place: nothing that was
    before it counts, wherever it is still found."""
    reset: bool = False
    """Somebody has reset the session: there was a life before this one, whatever is left of it."""
    claimed: bool = False
    """The record was written by one of those: that it had begun, and with what."""


def found_in(past: Past) -> Restored:
    """What the session goes on with, the letters included that runs took in which never came to begin.

    Raises DamagedRecord when a person has to mend the store first.
    """
    base, carried = _base(past)
    for begun in reversed(past.begun):
        carried = as_it_began(begun, base, carried)
        base = base.model_copy(update={"source": "history", "generation": base.generation + 1})
    if past.damage is not None:
        base = base.model_copy(update={"note": f"{base.note} The store's record was written anew: {past.damage}"})
    return base.model_copy(update={"carried": carried.model_dump(mode="json") if carried else None})


def _base(past: Past) -> tuple[Restored, Carried | None]:
    if past.deleted:
        return Restored(generation=past.deleted + 1, source="nothing"), None
    stored, history = past.stored, past.history
    kept = stored.carried if stored else None
    generation = 1 + max(stored.generation if stored else 0, history.ledger.life.generation if history else 0)
    note = EDITED if stored is not None and stored.edited else RESET if past.reset else ""
    if past.closed and kept is not None:
        return Restored(generation=generation, source="store", note=note), kept
    if trouble := _trouble(past):
        if past.damage is not None:
            raise past.damage
        if kept is None:
            return Restored(generation=generation, source="nothing", hold=_nothing_left(trouble)), None
        return Restored(generation=generation, source="store", note=note, hold=_may_be_old(kept, trouble)), kept
    if history is not None and (kept is None or stored is None or stored.place <= place_of(history)):
        return Restored(generation=generation, source="history", note=RESET if past.reset else REBUILT), history
    if past.damage is not None:
        raise past.damage
    if stored is None or kept is None:
        return Restored(generation=generation, source="nothing"), None
    hold = stored.hold if past.claimed else ""
    if history is not None:
        hold = _may_be_old(kept, "its history ends before that")
    return Restored(generation=generation, source="store", note=note, hold=hold), kept


def _trouble(past: Past) -> str:
    """Why nobody can say whether something came after what there is; empty when that is certain."""
    if past.lost:
        return past.lost
    if past.reset and past.history is None:
        return GONE
    stored = past.stored
    if stored is None or not past.gone or stored.closed:
        return ""
    # A life after the one that wrote the record may have failed to say so: its history is enough.
    newer = past.history is not None and past.history.ledger.life.generation >= stored.generation
    return "" if newer else GONE


GONE = "its history is gone"
RESET = "It was reset from outside, which takes nothing back: it goes on from what is known of the run before that."
REBUILT = "It was rebuilt from the history of a run that was ended from outside."
EDITED = "It goes on with the state that somebody put into the state store."


def place_of(carried: Carried) -> tuple[int, int]:
    """Later places have a higher one."""
    return carried.ledger.life.generation, carried.ledger.seq


def _may_be_old(stored: Carried, why: str) -> str:
    return (
        f"restored from the checkpoint of entry {stored.ledger.seq}; later steps are unknown, for the session did not "
        f"close of itself and {why}. Look at what it has done, then `longhaul resume {stored.ledger.state.session_id}`"
    )


def _nothing_left(why: str) -> str:
    return (
        f"an earlier life of this session is known, but {why} and no checkpoint of it is left: what it said and did is "
        "lost. Look at what it has done; `longhaul resume` lets it begin anew"
    )
