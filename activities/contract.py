"""What the workflow may ask of the world: names, inputs and answers. No body is imported with it.

Answers are recorded entries (`agent.entries`) as they stand.
"""

from typing import Annotated, Literal

from pydantic import Field

from agent.messages import Msg
from agent.permission.facts import CallFacts
from agent.settings import AgentSpec, ModelConfig
from agent.tools import Effect, ToolDescriptor
from agent.values import Guest, sparse

PREPARE_REPLY = "longhaul.prepare_reply"
CALL_MODEL = "longhaul.call_model"
EXAMINE_CALLS = "longhaul.examine_calls"
"""Our own activities carry a dot, which no tool name can: a tool call is an activity under the tool's name."""

NOT_HERE = "NotHere"
"""Error type: this worker can't do it (tool or workspace missing), another one may; nothing was done."""
MODEL_FAILED = "ModelFailed"
"""Error type: the model gave up for good; details are [ErrorInfo]."""
STALE_CONTEXT = "StaleContext"
"""Error type: the context that an attempt asked for is not the session's any more."""

TRANSCRIPT = "transcript"
SPEC = "spec"
"""Queries by which an activity pulls from its own session what its worker does not have."""


class Place(Guest):
    """The workspace as recorded, and the session's working directory in it."""

    root: str
    nonce: str
    cwd: str = sparse("")
    """Empty: the root."""


class PrepareReply(Guest):
    spec: AgentSpec
    session_key: str
    """Names the session's own folder where no workspace was asked for."""
    tools_digest: str = sparse("")
    """Of what the session has recorded: when it is the same, the schemas do not come back."""
    place: Place | None = sparse(None)
    """The workspace bound before; it must still be there."""


class Ref(Guest):
    """A message that an activity made: its worker may still have it."""

    kind: Literal["ref"] = "ref"
    digest: str


class Inline(Guest):
    """A message that no activity made."""

    kind: Literal["inline"] = "inline"
    message: Msg


Tail = tuple[Annotated[Ref | Inline, Field(discriminator="kind")], ...]


class ContextAddress(Guest):
    """A context by content: a prefix that some model call has seen, and what came after it."""

    prefix_digest: str = sparse("")
    prefix_length: int = sparse(0)
    tail: Tail = sparse(())
    epoch: int = sparse(1)


class CallModel(Guest):
    context: ContextAddress
    spec_digest: str
    model: str
    config: ModelConfig
    call_number: int
    """Model calls that the session made before this one."""
    agent: str
    place: Place


class MessageAddress(Guest):
    """One message of the context, for arguments that are too long to be sent a second time."""

    index: int
    digest: str = sparse("")
    epoch: int = sparse(1)


class CallToExamine(Guest):
    id: str
    name: str
    input: str | None
    """None: longer than INLINE_ARGUMENTS; it stands in the message at `said_in`."""


class ExamineCalls(Guest):
    calls: tuple[CallToExamine, ...]
    place: Place
    said_in: MessageAddress


INLINE_ARGUMENTS = 2_000
"""Longer arguments are not sent a second time."""


class RunTool(Guest):
    """One call of one tool; the activity's type is the tool's name."""

    call_id: str
    arguments: str | None
    """JSON as decided on. None: longer than INLINE_ARGUMENTS; it stands in the message at `said_in`."""
    said_in: MessageAddress | None = sparse(None)
    tool_digest: str
    effect: Effect
    """As decided: a call proven read-only is `read`, whatever its tool could do."""
    facts: CallFacts
    place: Place
    agent: str
    epoch: int = sparse(1)
    edited_by: str | None = sparse(None)
    """Who changed the arguments; the model is told with the result."""


class TranscriptPage(Guest):
    """Part of a transcript: messages from `start`; `total` is the whole length."""

    epoch: int
    start: int
    total: int
    messages: tuple[Msg, ...]


class SpecTexts(Guest):
    """What a model call needs beside the context."""

    spec_digest: str
    system_prompt: str
    tools: tuple[ToolDescriptor, ...]
