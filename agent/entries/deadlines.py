"""Entries about calls that have waited for long."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import OpenValue, sparse

Stage = Literal["remind", "escalate", "expire"]


class Due(OpenValue):
    """One call, and what its deadline says has come."""

    call_id: str
    stage: Stage
    waits_for: Literal["person", "outside"]
    asked_at: int
    """Milliseconds since 1970, as `due_at`: when it began to wait."""
    due_at: int
    """What the deadline says, however much later it was recorded."""
    to: str = sparse("")
    """Whom it is escalated to."""
    server: str = sparse("")
    """Of a call that waits for an answer to its MCP server: who asks."""
    closes: bool = sparse(False)
    """The call is denied with it, and does not run; else it waits on."""


class DeadlineReached(Entry):
    """A durable timer has fired for calls that wait."""

    kind: Literal["deadline"] = "deadline"
    due: tuple[Due, ...]
