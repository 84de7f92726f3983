"""What the workflow may ask about its own keeping: an earlier life, a checkpoint, and the pages that those pull."""

from typing import Any

from activities.contract_prepare import PrepareReply
from agent.entries import AnyEntry, Segment
from agent.messages import Msg
from agent.values import Guest, sparse


class Restore(Guest):
    """Look for an earlier life of the session that this activity works for. The answer is `entries.Restored`."""

    session_id: str
    user_id: str | None = sparse(None)
    agent: str
    ahead: PrepareReply | None = sparse(None)
    """For the first reply of a session that has no earlier life: found out in the same activity, if that goes well."""


class Checkpoint(Guest):
    """Write down what is not saved yet: entries as segments, the state in the store. The answer is
    `entries.Checkpointed`. Bodies are pulled by the queries ENTRIES and SNAPSHOT: none crosses the history."""

    session_id: str
    user_id: str | None = sparse(None)
    agent: str
    generation: int
    saved: int
    """Entries up to this one are in segments."""
    saved_seam: Any = sparse(None)
    """As the last checkpoint said it."""
    segments: tuple[Segment, ...] = sparse(())
    """The newest ones, oldest first: small ones among them may be written again as one."""
    segments_before: int = sparse(0)
    """How many there are before those."""
    closing: bool = sparse(False)
    """The session ends with it, unless something comes in meanwhile."""


class EntriesPage(Guest):
    """Entries in order, as many as fit; `seq` and `messages` say how far the session was at this moment."""

    entries: tuple[AnyEntry, ...]
    seq: int
    messages: int


class SnapshotPage(Guest):
    """Part of `agent.carried.Carried` as JSON text, without what `saved` says is outside."""

    seq: int
    """The state is of this entry: pages of another one do not fit together."""
    total: int
    """Characters of the whole text."""
    text: str


class MessagePage(Guest):
    """Messages by number from `start` on, as many as fit; earlier ones may lie in sealed segments."""

    start: int
    total: int
    messages: tuple[Msg, ...]
