"""What the workflow may ask of the world: names and inputs. Answers are recorded entries; no body is imported."""

from typing import Annotated, Literal

from pydantic import Field

from activities.contract_kept import Checkpoint as Checkpoint
from activities.contract_kept import EntriesPage as EntriesPage
from activities.contract_kept import MessagePage as MessagePage
from activities.contract_kept import Restore as Restore
from activities.contract_kept import SnapshotPage as SnapshotPage
from activities.contract_place import Place as Place
from activities.contract_prepare import PrepareReply as PrepareReply
from activities.contract_pulled import SpecTexts as SpecTexts
from activities.contract_pulled import TranscriptPage as TranscriptPage
from activities.contract_runtime import HANDLE_INTERRUPT as HANDLE_INTERRUPT
from activities.contract_runtime import HandleInterrupt as HandleInterrupt
from activities.contract_runtime import Runtime as Runtime
from agent.messages import Msg
from agent.permission.facts import CallFacts
from agent.settings import ContextConfig, ModelConfig
from agent.tools import Effect
from agent.values import Guest, sparse

PREPARE_REPLY = "longhaul.prepare_reply"
CALL_MODEL = "longhaul.call_model"
COMPRESS = "longhaul.compress"
TAKE_RESULT = "longhaul.take_result"
"""Its input is RunTool, its answer ToolReturned: the result itself is pulled by the query RECEIVED."""
PROBE_CALL = "longhaul.probe_call"
VERIFY_DECISIONS = "longhaul.verify_decisions"
"""Its input and its answer are those of `agent.entries_offered`."""
RESTORE = "longhaul.restore"
CHECKPOINT = "longhaul.checkpoint"
EXAMINE_CALLS = "longhaul.examine_calls"
"""Our own activities carry a dot, which no tool name can: a tool call is an activity under the tool's name."""

NOT_HERE = "NotHere"
"""Error type: this worker can't do it (tool or workspace missing), another one may; nothing was done."""
PROBE_SECONDS = 20.0
"""A look that takes longer could not tell."""

MODEL_FAILED = "ModelFailed"
"""Error type: the model gave up for good; details are [ErrorInfo]."""
BAD_START = "BadStart"
"""Error type of a run whose start input could not be read: it was never a session."""
STALE_CONTEXT = "StaleContext"
"""Error type: the context that an attempt asked for is not the session's any more."""

STREAM_ADDRESS = "longhaul.stream_address"
"""Name of the function by which a worker lets its sessions tell where their live streams are."""

TRANSCRIPT = "transcript"
SPEC = "spec"
RECEIVED = "received"
ENTRIES = "entries"
SNAPSHOT = "snapshot"
MESSAGES = "messages"
"""Queries by which an activity pulls from its own session what its worker does not have."""


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
    closing: bool = sparse(False)
    """The last call of a reply that has reached its limit: no tool may be called, and the model is told why."""
    fixed_tokens: int = sparse(0)
    """Of the system prompt and the tools, as they were counted when the reply was prepared."""
    agent: str
    place: Place
    hidden_tools: tuple[str, ...] = sparse(())
    runtime: Runtime | None = sparse(None)


class Compress(Guest):
    """Make a context shorter. The split was decided from recorded numbers; the activity makes the summary."""

    context: ContextAddress
    """As `call_model` would get it: with the old summary, if there is one, as its first message."""
    has_summary: bool = sparse(False)
    keep_from: int
    """Messages from here on stay as they are. Like `pinned`, counted without the summary."""
    pinned: tuple[int, ...] = sparse(())
    """Earlier messages that stay too: the first goal and the newest request."""
    epoch: int
    """The new epoch's number."""
    goal_tokens: int
    """What the messages that may be dropped or masked have to come down to, the summary included."""
    spec_digest: str
    model: str
    config: ModelConfig
    context_config: ContextConfig
    context_length: int
    """Tokens of the model's window."""
    call_number: int
    """Summaries that the session made before this one."""
    session_id: str
    user_id: str | None = sparse(None)
    agent: str
    offloader: str = sparse("workspace")
    must_mention: tuple[str, ...] = sparse(())
    """What is not finished; a line that the summary and what stays of the context would lose is put at its end."""
    instructions: str = sparse("")


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


class Analysis(Guest):
    """How risky the calls are is to be found out too, by these analyzers."""

    analyzers: tuple[str, ...]
    tainted: str = sparse("")
    model: str
    config: ModelConfig
    call_number: int = sparse(0)
    """Calls of the session that a model was asked about before."""
    context: ContextAddress


class ExamineCalls(Guest):
    calls: tuple[CallToExamine, ...]
    place: Place
    said_in: MessageAddress
    user_rules_digest: str = sparse("")
    analysis: Analysis | None = sparse(None)


INLINE_ARGUMENTS = 2_000
"""Longer arguments are not sent a second time."""


class RunTool(Guest):
    """One call of one tool; the activity's type is the tool's name. `secrets` are names."""

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
    result_limit: int = sparse(3000)
    """Tokens of `model`; a longer result is cut, and kept whole by the offloader."""
    model: str = sparse("")
    offloader: str = sparse("workspace")
    sandbox: Literal["off", "auto", "bwrap"] = sparse("off")
    sandbox_network: bool | None = sparse(None)
    edited_by: str | None = sparse(None)
    """Who changed the arguments; the model is told with the result."""
    secrets: tuple[str, ...] = sparse(())
    runtime: Runtime | None = sparse(None)


class ProbeCall(Guest):
    """Look whether a call happened, without changing anything. The answer is `entries.DoubtProbed`."""

    call_id: str
    tool: str
    arguments: str
    """JSON, as it ran."""
    tool_digest: str
    place: Place
    secrets: tuple[str, ...] = sparse(())
