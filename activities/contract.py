"""Lists everything that the workflow may ask of the world: names and inputs. Answers are recorded entries; no body is
imported."""

from typing import Annotated, Any, Literal

from pydantic import Field

from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.permission.call_analysis import CallAnalysis, Confined
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import Msg, ServerAsked
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.prompt_cache import MissReason
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig, ModelConfig, Secrets
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.agent.values.spec.workspace import Sandbox, Seal


class RecordedPlace(OpenValue):
    """The workspace as recorded, and the session's working directory in it."""

    root: str
    nonce: str
    cwd: str = sparse("")
    """Empty: the root."""
    agent: str = sparse("")
    user_id: str | None = sparse(None)
    session_id: str = sparse("")
    """Whose place it is: a worker finds by it what was offloaded for the session. Empty: nobody's."""
    offloader: str = sparse("workspace")
    """And by what."""
    ruled: tuple[str, ...] = sparse(())
    """Folders that deny and ask rules name, which may be links."""
    closed: tuple[tuple[str, str], ...] = sparse(())
    """Tool and pattern of each deny and ask rule about paths."""
    opened: tuple[str, ...] = sparse(())
    """Further folders that the agent works in as in the workspace."""
    sandbox: Sandbox = sparse("off")
    """What the agent wants around commands."""
    sandbox_network: bool | None = sparse(None)
    seal: Seal | None = sparse(None)
    """All tools work in a sandbox."""
    snapshots: bool = sparse(False)
    """The files are kept before a call that may change any."""
    skills: tuple[str, ...] = sparse(())
    """Folders and loaders of skills, as the agent names them."""


class Runtime(OpenValue):
    """Sent with each attempt again, so that it is the same after a failover. Kept with the request, not in the
    state."""

    session_id: str = sparse("")
    reply_id: str = sparse("")
    request_id: str = sparse("")
    given: dict[str, Any] = sparse({})
    """What came with the request for hooks and tools."""
    middlewares: tuple[str, ...] = sparse(())
    """Those of the session, beside those that its workers put around every agent."""


TELL_ENVIRONMENT = "longhaul.tell_environment"


class WorkerEnvironment(OpenValue):
    """What a worker has around it: names, and no value of a secret."""

    release: str
    """Of the package."""
    keys: tuple[str, ...] = sparse(())
    """Variables of model providers that are set where it was started."""
    ripgrep: str = sparse("")
    """Where the program of Grep is; empty where there is none."""
    sandbox: str = sparse("")
    """Why commands can't run in a box; empty where they can."""
    images: dict[str, str] = sparse({})
    """And why none can in containers of each image that agents may name."""


REQUEST = "longhaul.request"
"""Of a scheduled run of a schedule (`agent.values.scheduled_request`), and no session's."""

TELL_MEMBER = "longhaul.tell_member"
"""Of a hub (`agent.hub`): takes an operation to a member's session, which is opened again where it has closed."""

HEAR_CHILD = "longhaul.hear_child"
"""Looks what the closed session of a sub-agent has returned, for a run that did not start it."""


class HearChild(OpenValue):
    workflow_id: str


class ChildHeard(OpenValue):
    """How it ended: what its workflow returned, as JSON (`workflows.contract.Closed`), or why there is nothing."""

    closed: Any = sparse(None)
    why: str = sparse("")


HANDLE_INTERRUPT = "longhaul.handle_interrupt"
"""Its answer is `entries.InterruptHandled`."""


class InterruptInput(OpenValue):
    """Say what an agent says whose reply was interrupted."""

    runtime: Runtime
    agent: str
    user_id: str | None = sparse(None)
    reply_id: str
    message: str = sparse("")
    """What was said with the interrupt, and is answered next."""
    tools: tuple[str, ...] = sparse(())
    """Of the calls that were cut short, in their order."""
    custom_agent: str = sparse("")
    """The agent's own, which is asked before the middlewares."""


GREET_HOST = "longhaul.greet_host"
"""Taken by workers of the host that a workspace lies on: whoever answers is back. The answer is `entries.HostBack`."""


class GreetHost(OpenValue):
    host: str


RECORD_MEMORY = "longhaul.record_memory"
"""Its answer is `entries.MemoryRecorded`."""


class MemoryInput(OpenValue):
    """Write a reply down in the long-term memory."""

    user_id: str | None = sparse(None)
    agent: str
    session_id: str
    reply_id: str
    asked: str = sparse("")
    answered: str = sparse("")


class PrepareReply(OpenValue):
    spec: AgentSpec
    session_key: str
    """Names the session's own folder where no workspace was asked for."""
    tools_digest: str = sparse("")
    prompt_digest: str = sparse("")
    """Of what the session has recorded: texts that are the same do not come back."""
    place: RecordedPlace | None = sparse(None)
    """The workspace bound before; it must still be there."""
    request: str = sparse("")
    """The newest request's text, not all of a long one, for skills that it may trigger; `hinted` are shown already."""
    hinted: tuple[str, ...] = sparse(())
    context_tokens: int = sparse(0)
    user_id: str | None = sparse(None)
    user_rules_digest: str = sparse("")
    runtime: Runtime = sparse(Runtime())
    structured_schema: dict[str, Any] | None = sparse(None)
    """What the reply's answer has to fit; None = words."""
    outdated: tuple[str, ...] = sparse(())
    """MCP servers whose lists are to be made again, whatever is known here."""
    is_under_way: bool = sparse(False)
    """The reply has started: it is for the tools alone."""


class RestoreInput(OpenValue):
    """Look for an earlier incarnation of the session that this activity works for. The answer is `entries.Restored`."""

    session_id: str
    user_id: str | None = sparse(None)
    agent: str
    ahead: PrepareReply | None = sparse(None)
    """For the first reply of a session that has no earlier incarnation: found out in the same activity, if that goes
    well."""
    reset_run: str = sparse("")
    """The run before this one, which began when somebody reset the session, and ended when it noticed."""


class CheckpointInput(OpenValue):
    """Write down what is not saved yet: entries as segments, the state in the store. The answer is
    `entries.Checkpointed`. Bodies are pulled by the queries ENTRIES and SNAPSHOT: none crosses the history."""

    session_id: str
    user_id: str | None = sparse(None)
    agent: str
    incarnation: int
    saved: int
    """Entries up to this one are in segments."""
    saved_boundary: Any = sparse(None)
    """As the last checkpoint said it."""
    segments: tuple[Segment, ...] = sparse(())
    """The newest ones, oldest first: small ones among them may be written again as one."""
    segments_before: int = sparse(0)
    """How many there are before those."""
    closing: bool = sparse(False)
    """The session ends with it, unless something comes in meanwhile."""
    whole: str = sparse("")
    """What the query SNAPSHOT would answer, for a session that can't be asked in the midst of its task."""


class EntriesPage(OpenValue):
    """Entries in order, as many as fit; `seq` and `messages` say how far the session was at this moment."""

    entries: tuple[AnyEntry, ...]
    seq: int
    messages: int


class SnapshotPage(OpenValue):
    """Part of `agent.incarnation.continued_state.Carried` as JSON text, without what `saved` says is outside."""

    seq: int
    """The state is of this entry: pages of another one do not fit together."""
    total: int
    """Characters of the whole text."""
    text: str


class MessagePage(OpenValue):
    """Messages by number from `start` on, as many as fit; earlier ones may lie in sealed segments."""

    start: int
    total: int
    messages: tuple[Msg, ...]


class TranscriptPage(OpenValue):
    """Part of a transcript: messages from `start`; `total` is the whole length."""

    epoch: int
    start: int
    total: int
    messages: tuple[Msg, ...]


class SpecTexts(OpenValue):
    """What a model call needs beside the context."""

    spec_digest: str
    system_prompt: str
    tools: tuple[ToolDescriptor, ...]
    skills: tuple[str, ...] = sparse(())
    """The folders that the agent names."""


PREPARE_REPLY = "longhaul.prepare_reply"
CALL_MODEL = "longhaul.call_model"
COMPRESS = "longhaul.compress"
TAKE_RESULT = "longhaul.take_result"
"""Its input is RunTool, its answer ToolReturned: the result itself is pulled by the query RECEIVED."""
PROBE_CALL = "longhaul.probe_call"
VERIFY_DECISIONS = "longhaul.verify_decisions"
"""Its input and its answer are those of `agent.entries`."""
RESTORE = "longhaul.restore"
CHECKPOINT = "longhaul.checkpoint"
EXAMINE_CALLS = "longhaul.examine_calls"
"""Our own activities carry a dot, which no tool name can: a tool call is an activity under the tool's name."""

NOT_HERE = "NotHere"
"""Error type: this worker can't do it (tool or workspace missing), another one may; nothing was done."""
WORKER_LOST = "WorkerLost"
"""Error type of an attempt whose worker died: another worker has told the server so."""
PROBE_SECONDS = 20.0
"""A look that takes longer could not tell."""

MODEL_FAILED = "ModelFailed"
"""Error type: the model gave up for good; details are [ErrorInfo]."""
BAD_START = "BadStart"
"""Error type of a run whose start input could not be read: it was never a session."""
REFUSED = "Refused"
"""Error type of an update that changed nothing; the message says why, and the first detail, if any, of which kind."""
OUT_OF_BUDGET = "OutOfBudget"
"""Error type: so many attempts of the call were lost that the budget does not do for another one."""
LOST_ATTEMPTS = "lost_attempts"
"""Key of the failure's detail that says how many attempts may have been billed, where there is a budget."""
STALE_CONTEXT = "StaleContext"
"""Error type: the context that an attempt asked for is not the session's any more."""

STREAM_ADDRESS = "longhaul.stream_address"
"""Name of the function by which a worker lets its sessions tell where their live streams are."""

NO_MESSAGES = 2**53
"""As the number of messages that are saved: more than any session has, so that only those of open calls are told."""

TRANSCRIPT = "transcript"
SPEC = "spec"
RECEIVED = "received"
ENTRIES = "entries"
SNAPSHOT = "snapshot"
MESSAGES = "messages"
"""Queries by which an activity pulls from its own session what its worker does not have."""


class Ref(OpenValue):
    """A message that an activity made: its worker may still have it."""

    kind: Literal["ref"] = "ref"
    digest: str


class Inline(OpenValue):
    """A message that no activity made."""

    kind: Literal["inline"] = "inline"
    message: Msg


Tail = tuple[Annotated[Ref | Inline, Field(discriminator="kind")], ...]


class ContextAddress(OpenValue):
    """A context by content: a prefix that some model call has seen, and what came after it."""

    prefix_digest: str = sparse("")
    prefix_length: int = sparse(0)
    tail: Tail = sparse(())
    epoch: int = sparse(1)


class CustomAgentStep(OpenValue):
    """The next step of a reply that a custom agent makes, and where the context holds what it is made from."""

    name: str
    heard: int = sparse(0)
    """Index of the first message that somebody has said: a summary stands before it."""
    since: int
    """Index of the first message of the reply, as the model's context counts."""
    first: int
    end: int
    """The request: from `first` to before `end`."""
    structured_schema: dict[str, Any] | None = sparse(None)
    agents: tuple[str, ...] = sparse(())
    """Those that it may give tasks, as the agent's file has them in order."""
    config: dict[str, bool | int | float | str] = sparse({})


class ReadsAlong(OpenValue):
    """What the reads of an answer are judged by, and bounded by, which its activity makes at once."""

    permission: PermissionContext
    """In force now."""
    most: int
    """Calls of a turn; with more of them none is made."""
    result_limit: int = sparse(3000)
    """As of `RunTool`."""


class CallModel(OpenValue):
    context: ContextAddress
    spec_digest: str
    model: str
    config: ModelConfig
    call_number: int
    """Model calls that the session made before this one."""
    shortened: bool = sparse(False)
    """Its provider has refused the conversation as too long, and it was made shorter."""
    closing: bool = sparse(False)
    """The last call of a reply that has reached its limit: no tool may be called. The context says why."""
    must_call: str = sparse("")
    """The tool that it has to call, where its provider can be told so."""
    fixed_tokens: int = sparse(0)
    """Of the system prompt and the tools, as they were counted when the reply was prepared."""
    cached_tokens: int = sparse(0)
    """That the provider should read in its cache; 0 = nobody knows."""
    cache_lost: MissReason = sparse("")
    """Why it may have to read them all the same."""
    agent: str
    place: RecordedPlace
    hidden_tools: tuple[str, ...] = sparse(())
    takes_no_images: bool = sparse(False)
    """Its provider has said so."""
    runtime: Runtime | None = sparse(None)
    mcps: tuple[MCPClient, ...] = sparse(())
    secrets: Secrets | None = sparse(None)
    """Where `Secrets.mark` is set."""
    words: dict[str, str] = sparse({})
    """What people wrote beside messages, by its place: the answer has those that hold a secret, without it."""
    attempts_paid: int = sparse(0)
    """So many attempts may be billed; 0 = there is no budget."""
    reads_along: ReadsAlong | None = sparse(None)
    """None: what the answer calls for is the session's alone to begin."""
    custom_agent: CustomAgentStep | None = sparse(None)
    """Of an agent that is code of its operator's: the code says what is next, and the model is asked where it asks."""


class CompressInput(OpenValue):
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
    context_tokens: int = sparse(0)
    """Of the whole input that the next model call would have: a summary that fits behind it is asked for there, where
    the provider reads the context in its cache. 0: the provider has refused the context as too long."""
    is_cold: bool = sparse(False)
    """The provider has no cache of it, as far as the session knows."""
    model_calls: int = sparse(0)
    """As `CallModel.call_number`; like the next two it makes the beginning that of a model call."""
    hidden_tools: tuple[str, ...] = sparse(())
    takes_no_images: bool = sparse(False)
    session_id: str
    user_id: str | None = sparse(None)
    agent: str
    offloader: str = sparse("workspace")
    must_mention: tuple[str, ...] = sparse(())
    """What is not finished; a line that the summary and what stays of the context would lose is put at its end."""
    instructions: str = sparse("")
    runtime: Runtime | None = sparse(None)
    attempts_paid: int = sparse(0)
    """As of `CallModel`."""


class MessageAddress(OpenValue):
    """One message of the context, for arguments that are too long to be sent a second time."""

    index: int
    digest: str = sparse("")
    epoch: int = sparse(1)


class CallToExamine(OpenValue):
    id: str
    name: str
    input: str | None
    """None: longer than INLINE_ARGUMENTS; it stands in the message at `said_in`."""
    filled: tuple[str, ...] | None = sparse(None)
    """Names of secrets whose marks in the arguments stand for the values; None: what runs is what stands there."""


class RiskAnalysis(OpenValue):
    """How risky the calls are is to be found out too, by these analyzers."""

    analyzers: tuple[str, ...]
    tainted: str = sparse("")
    model: str
    config: ModelConfig
    call_number: int = sparse(0)
    """Calls of the session that a model was asked about before."""
    context: ContextAddress
    agent: str = sparse("")
    runtime: Runtime | None = sparse(None)


class ExamineCalls(OpenValue):
    calls: tuple[CallToExamine, ...]
    place: RecordedPlace
    said_in: MessageAddress
    user_rules_digest: str = sparse("")
    risk_analysis: RiskAnalysis | None = sparse(None)
    mcps: tuple[MCPClient, ...] = sparse(())
    """Of the agent's MCP servers those that bring tools of these calls."""
    structured_schema: dict[str, Any] | None = sparse(None)
    """What the answer has to fit, where one of these calls gives it."""
    targets: tuple[ToolDescriptor, ...] = sparse(())
    """The Temporal tools among the tools of these calls: workers need not know them."""


INLINE_ARGUMENTS = 2_000
"""Longer arguments are not sent a second time."""


class SamplingLeave(OpenValue):
    """The server of a call may have this model asked, so often, for so many tokens in all."""

    model: str
    config: ModelConfig
    calls: int
    tokens: int
    call_number: int = sparse(0)
    """Calls of models that the session's servers have had asked before."""


RUN_CHARS = 8
"""Of the id of a run: enough to tell a run from the one that it was reset from."""


MAYBE_STARTED = "MaybeStarted"
"""Error type of a read within a task that a worker may have started in it before, and was lost."""


class RunTool(OpenValue):
    """One call of one tool; the activity's type is the tool's name. `secrets` are names."""

    call_id: str
    arguments: str | None
    """JSON as decided on. None: longer than INLINE_ARGUMENTS; it stands in the message at `said_in`."""
    said_in: MessageAddress | None = sparse(None)
    tool_digest: str
    effect: Effect
    """As decided: a call proven read-only is `read`, whatever its tool could do."""
    analysis: CallAnalysis
    place: RecordedPlace
    agent: str
    epoch: int = sparse(1)
    result_limit: int = sparse(3000)
    """Tokens of `model`; a longer result is cut, and kept whole by the offloader."""
    model: str = sparse("")
    offloader: str = sparse("workspace")
    postprocess: str = sparse("")
    """The function behind the tool; empty: none."""
    confined: Confined = sparse("")
    """The sandbox that the decision rests on."""
    edited_by: str | None = sparse(None)
    """Who changed the arguments; the model is told with the result."""
    unchanged: str | None = sparse(None)
    """What middlewares are given as its arguments; None: `arguments`. What they make of it has been judged."""
    secrets: tuple[str, ...] = sparse(())
    filled: bool = sparse(False)
    """Their marks in the arguments stand for their values."""
    runtime: Runtime | None = sparse(None)
    mcp: MCPClient | None = sparse(None)
    """The server that brings the tool."""
    knowledge_bases: tuple[str, ...] = sparse(())
    """That the tool may search."""
    connection: str | None = sparse(None)
    """Which one the session's newest result of that server came through, where the server keeps state."""
    held: bool = sparse(False)
    """It is for the worker that holds that connection: any other one is NotHere."""
    asked: ServerAsked | None = sparse(None)
    """What its server has asked a person, with the answers: the call is made again with them."""
    sampling: SamplingLeave | None = sparse(None)
    maybe_started: bool = sparse(False)
    """Of one within a task: a worker before this one may have been lost in it. Then it is not started there."""
    is_own: bool = sparse(False)
    """Its result is what a sub-agent says, and whether others wrote that is recorded with the sub-agent's end; or what
    code of the user's returned to the session itself."""
    run: str = sparse("")
    """Of a `once` call: how the id of the run begins that asks for it. The server asks again for another run where
    the session was reset meanwhile."""


AWAIT_COMMAND = "longhaul.await_command"
"""Of a command in the background that an earlier run of the session has started: the answer is its end, as
`entries.ToolReturned`."""


class AwaitCommand(RunTool):
    """The call that has started it, without arguments."""

    unwanted: bool = sparse(False)
    """It is to be ended first."""


class ProbeCall(OpenValue):
    """Look whether a call happened, without changing anything. The answer is `entries.OutcomeProbed`."""

    call_id: str
    tool: str
    arguments: str
    """JSON, as it ran."""
    tool_digest: str
    place: RecordedPlace
    secrets: tuple[str, ...] = sparse(())
    filled: bool = sparse(False)
    """As in `RunTool`."""
