"""A descriptor is what the record knows of a tool: enough to decide, to schedule and to tell the model."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.deadlines import Deadline


class Effect(StrEnum):
    """What happens when a call runs twice."""

    READ = "read"
    """Nothing: it is retried freely."""
    IDEMPOTENT = "idempotent"
    """The same as once: it is retried, with the call id as key."""
    ONCE = "once"
    """Something else: it has one attempt, and a lost one is *outcome unknown*."""


EFFECT_WORDS = {
    Effect.READ: "only reads: it changes nothing",
    Effect.IDEMPOTENT: "safe to repeat: it runs again if a worker dies",
    Effect.ONCE: "once: it may have run if a worker dies, and is never repeated",
}
"""As people read them; what stands before the colon is enough for a list."""


class ToolDescriptor(OpenValue):
    """One tool as recorded at `prepare_reply`: what is not here can't be called."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)
    digest: str = ""
    """sha-256 of name, description, schema and flags: a worker with another digest does not run the call."""
    effect: Effect = Effect.ONCE
    concurrency_safe: bool = False
    read_only: bool = False
    """Every call of it changes nothing, whatever the arguments."""
    external: bool = False
    """Runs outside (`is_external_tool`): the session parks until the result is handed in."""
    inside: bool = sparse(False)
    """The session answers it itself (`agent.decisions.session_tools`): no worker runs anything."""
    child: bool = sparse(False)
    """A call of it is a sub-agent's task: the session starts one of its own, and no worker runs anything."""
    untrusted: bool = sparse(False)
    """Its results are what others wrote: a page, a mail. After one, a call that goes out is asked about."""
    quick: bool = sparse(False)
    """A call that only reads mostly takes a moment and asks nothing of its session: it may be fused."""
    probes: bool = sparse(False)
    """It can look whether a call of it happened, when the outcome is unknown."""
    result_schema: dict[str, Any] | None = sparse(None)
    """What results from outside have to fit (`agent.plain.result_schema`); None = anything."""
    timeout_seconds: float = 600.0
    deadline: Deadline | None = sparse(None)
    """How long a call of it may wait, where the agent's settings say nothing of this tool."""
