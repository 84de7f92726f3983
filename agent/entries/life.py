"""Entries about a session's own life: how it is kept, restored, held and put right from outside."""

from typing import Any, Literal

from pydantic import Field

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.entries.notices import Given
from longhaul.agent.entries.prepared import Prepared
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import ErrorInfo


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
    """`agent.life.rollover_state.Carried` as JSON; None when there was nothing."""
    note: str = sparse("")
    hold: str = sparse("")
    """Why a person has to look first: later steps are unknown, or what was found is damaged."""
    prepared: Prepared | None = sparse(None)
    """What was found in the same activity for the first reply; an entry of its own in the record."""


class RestoreFailed(Entry):
    """It could not be found out whether there is an earlier life; nothing is done until somebody says try again."""

    kind: Literal["restore_failed"] = "restore_failed"
    error: ErrorInfo


class HoldEnded(Entry):
    """Somebody has looked at why the session was held, and lets it go on."""

    kind: Literal["resumed"] = "resumed"
    by: str = sparse("")


class Segment(OpenValue):
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
    with_state: bool = sparse(False)
    """The entries that no segment had before stand in the store with the state, and not in a new one."""
    messages: int = sparse(0)
    """Messages that the session had then."""
    seam: Any = sparse(None)
    """`agent.life.history.seam_of` behind `through`."""
    keep: int = sparse(0)
    """Of the segments that there were: so many from the oldest stay; the rest is contained in the new ones."""
    segments: tuple[Segment, ...] = sparse(())
    store_error: str = sparse("")
    """Why the state could not be written; segments were, if there are new ones."""
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
    why: Written = sparse("")
    note: str = sparse("")
    """For whoever looks at the session: what became of the files and the work of the one that it is a copy of, or of
    its sub-agents."""
    goes_on: bool = sparse(False)
    """The reply that waits goes on behind it: its calls that wait stand in this state, without a result."""


class WorkerLeft(Entry):
    """A worker was shut down before it had done what it was doing for this session."""

    kind: Literal["worker_left"] = "worker_left"
    worker: str
    """As Temporal knows it: its process and host."""
    doing: str = sparse("")
    """The activity that was cut short."""
    call_id: str = sparse("")
    """Of a tool's call."""


LATEST = 253_402_300_799_000
"""The end of the year 9999."""


class Away(OpenValue):
    """A model's provider that is waited for; times in milliseconds since 1970."""

    attempt: int = Field(ge=1, le=1_000_000)
    """The one that has failed."""
    next_at: int = Field(ge=0, le=LATEST)
    until: int = Field(ge=0, le=LATEST)
    """When the waiting is given up."""


class WorkerLacks(Entry):
    """A worker lacks what the next step needs: a tool, a folder, a middleware; or the model's provider, which is away.
    The step is tried again for a while."""

    kind: Literal["worker_lacks"] = "worker_lacks"
    worker: str
    doing: str = sparse("")
    """The activity that could not begin."""
    call_id: str = sparse("")
    """Of a tool's call."""
    why: str
    """What is missing, and where."""
    away: Away | None = sparse(None)
    """Of a provider that is away."""
    host: str = sparse("")
    """Of a workspace whose host is away: nobody polls its queue. What waits for it does so until it is back."""


class HostBack(Entry):
    """The host of the session's workspace is back; what waited for it goes on."""

    kind: Literal["host_back"] = "host_back"
    host: str


class TimeReached(Entry):
    """A durable timer has fired; `at` says when."""

    kind: Literal["time"] = "time"


LifeEntry = (
    Restored
    | RestoreFailed
    | HoldEnded
    | Checkpointed
    | CheckpointFailed
    | StateReplaced
    | TimeReached
    | WorkerLacks
    | HostBack
    | WorkerLeft
)
