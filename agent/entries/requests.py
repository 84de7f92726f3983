"""Entries about requests: that they came, began, joined another one's reply, were dropped or interrupted."""

from functools import cached_property
from typing import Any, Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, Msg, ToolResultBlock

When = Literal["queue", "now", "interrupt"]
"""What becomes of a message that comes while a reply is being made: it waits for its turn, it is told to the model at
the next step boundary of that reply, or the reply ends and it is next."""


class RequestAccepted(Entry):
    """Somebody wants a reply; it waits in the queue."""

    kind: Literal["accepted"] = "accepted"
    request_id: str
    reply_id: str
    body_digest: str
    """Tells the same request sent twice from another one under the same id."""
    messages: tuple[Msg, ...] = sparse(())
    """Empty = go on from where the context stands."""
    context: dict[str, Any] = sparse({})
    """For hooks and tools; no model sees it."""
    when: When = sparse("queue")
    structured_schema: dict[str, Any] | None = sparse(None)
    """JSON Schema that the answer has to fit; None = words."""

    @cached_property
    def size_bytes(self) -> int:
        """As JSON. Kept, for it is asked again with each request that comes while this one waits."""
        return len(self.model_dump_json().encode())


class RequestDropped(Entry):
    """Somebody has interrupted a request that had not begun: it never will."""

    kind: Literal["dropped"] = "dropped"
    request_id: str
    reply_id: str


class Joined(Entry):
    """What these requests say stands in the context of the reply that is being made; they get no reply of their own."""

    kind: Literal["joined"] = "joined"
    request_ids: tuple[str, ...]
    reply_ids: tuple[str, ...]


class ReplyStarted(Entry):
    kind: Literal["started"] = "started"
    reply_id: str


class InterruptAsked(Entry):
    kind: Literal["interrupted"] = "interrupted"
    reply_id: str
    messages: tuple[Msg, ...] = sparse(())
    """Becomes the next request."""
    overdue: bool = sparse(False)
    """Of a sub-agent: nobody has asked for it, but the time of its task is over."""


class InterruptHandled(Entry):
    """What the workers' hooks have said to an interrupt; `error`: why none of them could say anything."""

    kind: Literal["interrupt_handled"] = "interrupt_handled"
    reply_id: str
    said: str = sparse("")
    error: str = sparse("")


class MemoryRecorded(Entry):
    """The reply that is about to end was written down in the long-term memory, or why not."""

    kind: Literal["memory_recorded"] = "memory_recorded"
    reply_id: str
    memories: int = sparse(0)
    error: str = sparse("")


class ReplyFinished(Entry):
    kind: Literal["finished"] = "finished"
    reply_id: str
    reason: FinishedReason
    error: ErrorInfo | None = sparse(None)
    closing: tuple[ToolResultBlock, ...] = sparse(())
    """Results for the calls that were still open."""
    said: str = sparse("")
    """The agent's last words, behind them: of a reply that was interrupted, or that a tool has ended."""


RequestEntry = (
    RequestAccepted
    | RequestDropped
    | Joined
    | ReplyStarted
    | InterruptAsked
    | InterruptHandled
    | MemoryRecorded
    | ReplyFinished
)
