"""A descriptor is what the journal knows of a tool: enough to decide, to schedule and to tell the model.

Call runs: what a worker tells of one in the metadata of its result, for whoever reads the message.

An answer in a form that was asked for: the finish function that gives it, and the value in a reply that has ended.

The value stands once in the journal, as the arguments of the call: here it is read from there.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, ValidationError

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    FinishedReason,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.values.deadlines import Deadline


class Effect(StrEnum):
    """What happens if a call runs twice."""

    READ = "read"
    """Nothing happens: the call may be retried."""
    IDEMPOTENT = "idempotent"
    """The same happens as with one run: the call is retried, with the call id as idempotency key."""
    ONCE = "once"
    """Something else happens: the call has one attempt, and if that is lost, the outcome is unknown."""


EFFECT_WORDS = {
    Effect.READ: "only reads: it changes nothing",
    Effect.IDEMPOTENT: "runs again if a worker dies",
    Effect.ONCE: "runs at most once: if a worker dies, nobody knows whether it ran",
}
"""As people read them; what stands before the colon is enough for a list."""


Finding = Literal["happened", "did_not", "unknown"]
"""What a look at the world came to, for a call whose outcome was lost."""


class TemporalTarget(OpenValue):
    """What the session starts for a call of a tool that is the user's own activity, workflow or Nexus operation."""

    kind: Literal["activity", "workflow", "nexus"]
    name: str
    """Of the activity's type, the workflow's type or the operation."""
    queue: str = sparse("")
    """Task queue of the user's workers; empty for a Nexus operation."""
    endpoint: str = sparse("")
    service: str = sparse("")
    parameters: tuple[str, ...] = sparse(())
    """Properties of the arguments in the order of the code's parameters; empty: the code takes one object."""
    heartbeat_seconds: float | None = sparse(None)
    """An activity that is silent for longer is lost; None: its end is awaited until its time is up."""

    @property
    def spelt(self) -> str:
        """As an agent names it."""
        if self.kind == "nexus":
            return f"nexus:{self.endpoint}/{self.service}/{self.name}"
        return f"{self.kind}:{self.name}@{self.queue}"

    @property
    def place(self) -> str:
        """As people read it."""
        if self.kind == "nexus":
            return f"the Nexus operation {self.name!r} of {self.service!r} at the endpoint {self.endpoint!r}"
        return f"the {self.kind} {self.name!r} on the task queue {self.queue!r}"


class ToolDescriptor(OpenValue):
    """One tool as recorded at `prepare_reply`. The model can call no other tools."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)
    digest: str = ""
    """sha-256 of name, description, schema and flags. A worker with another digest does not run the call."""
    effect: Effect = Effect.ONCE
    concurrency_safe: bool = False
    read_only: bool = False
    """No call of the tool changes anything, whatever the arguments."""
    external: bool = False
    """An external tool (`is_external_tool`): the session waits until another system hands in the result."""
    inside: bool = sparse(False)
    """An in-workflow tool: the session answers the call itself (`agent.decisions.session_tools`)."""
    child: bool = sparse(False)
    """A call is a sub-agent's task: the session starts another session, and no worker runs a tool."""
    untrusted: bool = sparse(False)
    """The results contain untrusted text from others, such as a page or a mail. After such a result, Longhaul asks
    about calls that send data out."""
    quick: bool = sparse(False)
    """A call that only reads mostly takes a moment and asks nothing of its session, so it may be a local read."""
    probes: bool = sparse(False)
    """The tool has a probe: it can check whether a call happened if the outcome is unknown."""
    result_schema: dict[str, Any] | None = sparse(None)
    """Schema of results from external systems (`agent.plain.json_schemas`). None = anything."""
    timeout_seconds: float = 600.0
    target: TemporalTarget | None = sparse(None)
    """Your code that the session starts, on workers that are not Longhaul's."""
    deadline: Deadline | None = sparse(None)
    """How long a call may wait, if the agent's settings do not name the tool."""


_KEY = "ran"


class CallRun(OpenValue):
    """Of a call that a worker ran."""

    effect: Effect
    """As decided: a call proven read-only is `read`, whatever its tool could do."""
    seconds: float | None = sparse(None, ge=0)
    """The attempt that its result comes from; None: that was lost."""


def with_ran(result: ToolResultBlock, ran: CallRun) -> ToolResultBlock:
    return result.model_copy(update={"metadata": {**result.metadata, _KEY: ran.model_dump(mode="json")}})


def ran_in(result: ToolResultBlock) -> CallRun | None:
    """None where no worker ran it."""
    try:
        return CallRun.model_validate(result.metadata.get(_KEY))
    except ValidationError:
        return None


GENERATE_RESPONSE = "generate_response"
"""The finish function's name; no other tool has it."""
DESCRIPTION = """\
Gives your answer, in the form that was asked for, and ends this reply. Call it once, when all of the work is done: \
words alone are no answer here. If the arguments do not fit, you read which field is wrong, and call it again."""
ANSWERED = "The answer is taken."
LATER = "An earlier call has given the answer; that one counts."


def value_of(call: ToolCallBlock) -> dict[str, Any] | None:
    """The arguments of a call of the finish function; None where they are no JSON object."""
    try:
        value: Any = json.loads(call.input)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def answered_in(blocks: Sequence[ContentBlock], reason: FinishedReason | None) -> dict[str, Any]:
    """The fields of a reply's message that hold its answer; none of one that has not come to one, or was asked for
    words."""
    value = _taken(blocks) if reason is FinishedReason.COMPLETED else None
    return {} if value is None else {"metadata": value, "structured_output": value}


def _taken(blocks: Sequence[ContentBlock]) -> dict[str, Any] | None:
    """The newest answer that was taken, in the blocks of a reply; None in one without."""
    for result in reversed(blocks):
        if (
            isinstance(result, ToolResultBlock)
            and result.name == GENERATE_RESPONSE
            and result.state is ToolResultState.SUCCESS
        ):
            calls = (block for block in blocks if isinstance(block, ToolCallBlock) and block.id == result.id)
            call = next(calls, None)
            return value_of(call) if call is not None else None
    return None
