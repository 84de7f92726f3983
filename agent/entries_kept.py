"""Entries about a session's own life: how it is kept, restored, held and put right from outside."""

from typing import Any, Literal

from agent.entries_prepared import Prepared
from agent.entry import Entry
from agent.messages import ErrorInfo
from agent.notices import Given
from agent.values import Guest, sparse


class Restored(Entry):
    """What an earlier life of this session left behind, found when the session was opened again.

    Requests that were recorded before it are taken anew after it: what the earlier life has answered is answered.
    """

    kind: Literal["restored"] = "restored"
    generation: int
    """Lives of the session, this one included."""
    source: Literal["nothing", "store", "history"]
    """`store`: the checkpoint that the closed session confirmed. `history`: rebuilt from a run that did not close."""
    carried: Any = sparse(None)
    """`agent.carried.Carried` as JSON; None when there was nothing."""
    note: str = sparse("")
    hold: str = sparse("")
    """Why a person has to look first: later steps are unknown, or what was found is damaged."""
    prepared: Prepared | None = sparse(None)
    """What was found in the same activity for the first reply; an entry of its own in the record."""


class RestoreFailed(Entry):
    """It could not be found out whether there is an earlier life; nothing is done until somebody says try again."""

    kind: Literal["restore_failed"] = "restore_failed"
    error: ErrorInfo


class Resumed(Entry):
    """Somebody has looked at why the session was held, and lets it go on."""

    kind: Literal["resumed"] = "resumed"
    by: str = sparse("")


class Segment(Guest):
    """Entries that were written down outside the session, never to change."""

    key: str
    """In the blob store."""
    first_seq: int
    last_seq: int
    size: int
    """Bytes."""
    messages: int | None = sparse(None)
    """The number of its first message. None: unknown, and it is read together with the segments before."""


class Checkpointed(Entry):
    """Everything up to `through` is written down outside: entries in segments, the state in the store."""

    kind: Literal["checkpointed"] = "checkpointed"
    through: int
    messages: int = sparse(0)
    """Messages that the session had then."""
    seam: Any = sparse(None)
    """`agent.history.seam_of` behind `through`."""
    keep: int = sparse(0)
    """Of the segments that there were: so many from the oldest stay; the rest is contained in the new ones."""
    segments: tuple[Segment, ...] = sparse(())
    store_error: str = sparse("")
    """Why the state could not be written; the segments were."""
    notified: tuple[Given, ...] = sparse(())
    notify_error: str = sparse("")
    """Why something could not be told."""
    closing: bool = sparse(False)
    """The store says that the session ends with it, unless something else is written there later."""


class CheckpointFailed(Entry):
    """Nothing is lost: the session itself still holds everything."""

    kind: Literal["checkpoint_failed"] = "checkpoint_failed"
    error: ErrorInfo
    events: int = sparse(0)
    """Length of the history then: the next try is made when it has grown."""


class StateReplaced(Entry):
    """Somebody put another state in the place of this one: an import, an edit, a fork."""

    kind: Literal["state_replaced"] = "state_replaced"
    state: Any
    """AgentState as JSON; what was open in it is closed."""
    by: str = sparse("")
    why: str = sparse("")


class WorkerLeft(Entry):
    """A worker was shut down before it had done what it was doing for this session."""

    kind: Literal["worker_left"] = "worker_left"
    worker: str
    """As Temporal knows it: its process and host."""
    doing: str = sparse("")
    """The activity that was cut short."""
    call_id: str = sparse("")
    """Of a tool's call."""


class TimeReached(Entry):
    """A durable timer has fired; `at` says when."""

    kind: Literal["time"] = "time"
