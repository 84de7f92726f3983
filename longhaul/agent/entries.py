"""The recorded entries: everything that ever happened in a session, in order, by subject; `every` lists them all.

The state follows from them (`agent.reducer`), so they are the only thing that has to survive a continue-as-new.
Names are past tense: an entry can't be refused any more. Activities return entries as they stand, so nothing
is translated on the way from the world into the journal.
"""

from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, RootModel

from longhaul.agent.permission.call_analysis import CallAnalysis, Confined
from longhaul.agent.permission.preview import Preview, argument_parts
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.budget import NO_CALLS_BEFORE, Amount, CallsBefore, End, Lack, Raise, Tariff
from longhaul.agent.values.conversation.messages import (
    ErrorInfo,
    FinishedReason,
    Msg,
    ServerAsked,
    StopReason,
    ToolResultBlock,
    Usage,
)
from longhaul.agent.values.conversation.tools import Finding, ToolDescriptor
from longhaul.agent.values.permission import Confirming, PermissionMode, PermissionRule
from longhaul.agent.values.plans import PlanChange, PlanModeContext
from longhaul.agent.values.prompt_cache import MissReason
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig, ModelConfig
from longhaul.agent.values.spec.mcp import Sampled
from longhaul.agent.values.stuck_detection import Pattern
from longhaul.agent.values.subagents import Asker, BackgroundCommand, Child, Fate, Outcome, Parent
from longhaul.agent.values.tasks import Task

WRITTEN = "written by a person"
Written = Annotated[str, WRITTEN]
"""What a person wrote beside messages. A secret may stand in it: it is shown as a worker gives it back, with marks
(`agent.reducer.approval_digest`). What becomes a message is shown with marks as messages are."""


class Entry(OpenValue):
    """`seq` counts from 1 and `at` is milliseconds since 1970; both are given by whoever records."""

    seq: int = sparse(0)
    at: int = sparse(0)


class CommandStarted(Entry):
    """A call of Bash runs on while the session goes on; the result of the call is another entry."""

    kind: Literal["command_started"] = "command_started"
    command: BackgroundCommand


class CommandEnded(Entry):
    """It is over, as far as the session can know."""

    kind: Literal["command_ended"] = "command_ended"
    call_id: str
    fate: Fate
    snapshot: str = sparse("")
    """As of `ToolReturned`: the files as they were before the command began. Empty where its worker was lost."""


class StopAsked(Entry):
    """Somebody wants these to stop: commands and sub-agents in the background, by the call that began each."""

    kind: Literal["stop_asked"] = "stop_asked"
    call_ids: tuple[str, ...]
    by: str = sparse("")


BackgroundEntry = CommandStarted | CommandEnded | StopAsked


class BudgetReserved(Entry):
    """Put aside for the call that is made next; what comes of that call settles it."""

    kind: Literal["budget_reserved"] = "budget_reserved"
    model: str
    """As the agent names it."""
    amount: Amount
    closing: bool = sparse(False)
    """For the last call of a reply that is out of budget."""


class BudgetReleased(Entry):
    """What was put aside is free again: the call gave no answer. So many of its attempts may have been billed, and
    count as spent."""

    kind: Literal["budget_released"] = "budget_released"
    lost: int = sparse(0)


class BudgetExhausted(Entry):
    """The next call might pass these limits, and is not made."""

    kind: Literal["budget_exhausted"] = "budget_exhausted"
    lacks: tuple[Lack, ...]
    then: Literal["ask", "stop", "summarise"]
    """The agent's policy: what becomes of the reply."""


class BudgetChanged(Entry):
    """Somebody has raised limits, or has said how the reply is to end that waits for more."""

    kind: Literal["budget_changed"] = "budget_changed"
    more: Raise = sparse(Raise())
    end: End = sparse("")
    by: str = sparse("")
    request_id: str = sparse("")


class BudgetAllotted(Entry):
    """Put aside for the sub-agent of a call: the end of its task settles it."""

    kind: Literal["budget_allotted"] = "budget_allotted"
    call_id: str
    amount: Amount
    """All that it may spend; what was put aside for it before counts no more."""
    more: Raise = sparse(Raise())
    """Of one that is at work: by how much its limits are raised, which it has to be told."""
    by: str = sparse("")
    request_id: str = sparse("")


BudgetEntry = BudgetReserved | BudgetReleased | BudgetExhausted | BudgetChanged | BudgetAllotted


class CallsExamined(Entry):
    """Fresh findings: after an edit, after the working directory moved, after a long wait."""

    kind: Literal["examined"] = "examined"
    analysis: dict[str, CallAnalysis]
    user_rules: tuple[PermissionRule, ...] | None = sparse(None)
    """As in `Prepared`: they may have changed while calls waited."""
    user_rules_digest: str = sparse("")
    marked: dict[str, str] = sparse({})
    """Arguments with marks, by call id, of calls into which somebody else than the model wrote a secret."""
    usage: Usage | None = sparse(None)
    """What a model cost that was asked how risky they are."""
    model: str = sparse("")
    """That model, where something was left out when it was asked."""
    adjusted: tuple[str, ...] = sparse(())
    """What its API could not express of that, where the session was not told so of this model before."""


Ruling = Literal["allow", "deny", "ask", "external", "invalid", "stands", "later"]
"""`external`: allowed, and it runs outside. `invalid`: not a call that could run (unknown tool, broken arguments).
`stands`: a person is asked already, and nothing of the question has changed. `later`: nobody has to be asked as things
stand, and what becomes of it is said when the calls before it have their results."""


class CallRuling(OpenValue):
    """What permission says about one call. Of a call that does not run, the model reads the reason."""

    call_id: str
    behavior: Ruling
    reason: str = sparse("")
    suggested_rules: tuple[PermissionRule, ...] = sparse(())
    warning: str = sparse("")
    """Of a call that runs: why people should know of it."""
    confined: Confined = sparse("")
    """Of a call that runs unasked: the sandbox that its proof is held to."""
    seen: str = sparse("")
    """Of a call that is asked about: its material (`agent.reducer.approval_digest`), and below what a person is
    shown."""
    preview: Preview | None = sparse(None)


class CallsJudged(Entry):
    kind: Literal["judged"] = "judged"
    rulings: tuple[CallRuling, ...]


class DecisionGiven(OpenValue):
    """A person's word on one call."""

    call_id: str
    allow: bool
    reason: str = sparse("")
    input: str | None = sparse(None)
    """Other arguments to run with, as JSON; None = as the model wrote them."""
    rules: tuple[PermissionRule, ...] = sparse(())
    digest: str = sparse("")
    """Of what the person had before them; empty when they did not say."""


class HumanDecided(Entry):
    kind: Literal["decided"] = "decided"
    decisions: tuple[DecisionGiven, ...]
    approver: str = sparse("")
    key: str = sparse("")
    """Id of the key that it was signed with."""


class ToolReturned(Entry):
    """The one result of a call, from whatever source."""

    kind: Literal["returned"] = "returned"
    result: ToolResultBlock
    digest: str = sparse("")
    """Of the message; empty for results that no activity made."""
    tokens: int = sparse(0)
    """Of the message, as the worker counts; 0 for results that no activity made."""
    cwd: str | None = sparse(None)
    """The session's new working directory, when the call moved it."""
    runs_on: bool = sparse(False)
    """The call is over for its session, and its worker could not end what it does."""
    outside: bool = sparse(False)
    """Handed in from outside for an external tool."""
    sampled: Sampled | None = sparse(None)
    """What a model was asked in the name of its server."""
    snapshot: str = sparse("")
    """The commit, or the clone, that keeps the files as they were before the call; empty: none was kept."""


class ResultReceived(Entry):
    """A result from outside that may be too long for the context: a worker looks at it first."""

    kind: Literal["received"] = "received"
    result: ToolResultBlock


class DeltaReceived(Entry):
    """A piece of a result that is still being made outside; the last one closes the call."""

    kind: Literal["piece"] = "piece"
    call_id: str
    text: str


class CallUnsettled(Entry):
    """The world had changed between the decision and the run; nothing was done, and it is decided again."""

    kind: Literal["unsettled"] = "unsettled"
    call_id: str
    analysis: CallAnalysis
    reason: str
    input: str | None = sparse(None)
    """Other arguments, as JSON, that a middleware wants it to run with; None = as they were."""


CallEntry = CallsExamined | CallsJudged | HumanDecided | ToolReturned | ResultReceived | DeltaReceived | CallUnsettled


class CompressAsked(Entry):
    """Somebody wants the context made shorter now; it happens at the next step boundary."""

    kind: Literal["compress_asked"] = "compress_asked"
    config: ContextConfig | None = sparse(None)
    """For this once; None = the session's own."""
    instructions: str = sparse("")
    by: str = sparse("")


class ContextCompressed(Entry):
    """The context became shorter: `context[i] for i in pinned`, then `context[keep_from:]`, some results masked.

    Indexes count in the context of the old epoch, without the summary. What was dropped stays in the session's
    record and can be recalled.
    """

    kind: Literal["compressed"] = "compressed"
    epoch: int
    """The new one: addresses of the old one are refused from now on."""
    keep_from: int
    pinned: tuple[int, ...] = sparse(())
    masked: tuple[int, ...] = sparse(())
    """Tool results whose text is replaced by `agent.decisions.compaction.MASK`."""
    summary: str | None = sparse(None)
    """The whole new summary; None = the old one stays."""
    summary_tokens: int = sparse(0)
    fields: dict[str, Any] = sparse({})
    """The summary as the model gave it."""
    condenser: str = sparse("summary")
    model: str = sparse("")
    prompt_digest: str = sparse("")
    """Of the prompt that asked for the summary."""
    source_digest: str = sparse("")
    """Of the context that was read for it."""
    offloaded: str = sparse("")
    """Where the dropped messages were written for the agent to read; empty when nowhere."""
    usage: Usage | None = sparse(None)
    adjusted: tuple[str, ...] = sparse(())
    """Of the request for a summary, as of `ModelSaid`."""
    lost_attempts: int = sparse(0)
    """As of `ModelSaid`."""
    context_digest: str = sparse("")
    context_length: int = sparse(0)
    """Of the new epoch's context, summary included: the prefix of the next model call."""


class NotCompressed(Entry):
    """Nothing changed; the session goes on with the context as it is, or says why it can't."""

    kind: Literal["compression_failed"] = "compression_failed"
    error: ErrorInfo
    usage: Usage | None = sparse(None)
    lost_attempts: int = sparse(0)
    """As of `ModelSaid`."""


ContextEntry = CompressAsked | ContextCompressed | NotCompressed


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


SOURCE = "resolution"
"""Of the hint by which the model hears of it."""
SHOWN_INPUT_CHARS = 2_000
"""Of the arguments, once nobody has to look with them any more."""
KEPT_UNKNOWN_OUTCOMES = 100


class UnknownOutcome(OpenValue):
    """A call whose result says that its outcome is unknown."""

    call_id: str
    tool: str
    reply_id: str
    input: str
    """The arguments that ran, as JSON; cut when no probe needs them."""
    why: str
    """What the model was told."""
    at: int
    """Milliseconds since 1970."""
    cwd: str = sparse("")
    runs_on: bool = sparse(False)
    """It may still run: that it has not happened yet says nothing."""
    due: bool = sparse(False)
    """The tool can look whether it happened, and has not been asked yet."""
    finding: Finding | None = sparse(None)
    """What the tool's own look came to."""
    happened: bool | None = sparse(None)
    """None = still open."""
    by: str = sparse("")
    """Who settled it: a person, or the tool's probe."""

    @property
    def open(self) -> bool:
        return self.happened is None


def cut(text: str) -> str:
    return text if len(text) <= SHOWN_INPUT_CHARS else f"{text[:SHOWN_INPUT_CHARS]}… ({len(text)} characters)"


def resolution_text(call: UnknownOutcome, said: str, output: str) -> str:
    """What the model reads of a resolved call. `said`: on whose word, as the end of a sentence."""
    word = "it did happen" if call.happened else "it did not happen, and nothing of it was done"
    text = f"The call {call.tool} ({call.call_id}), whose outcome was unknown, is resolved: {word}. {said}"
    return f"{text}\nIts output:\n{output}" if output else text


class OutcomeProbed(Entry):
    """The tool has looked whether its call happened."""

    kind: Literal["probed"] = "probed"
    call_id: str
    finding: Finding
    detail: str = sparse("")
    """What it saw; of `unknown`, why it could not tell."""


class OutcomeResolved(Entry):
    """A person knows whether the call happened."""

    kind: Literal["resolved"] = "resolved"
    call_id: str
    happened: bool
    output: Written = sparse("")
    """What the call answered, if anybody knows."""
    by: str = sparse("")
    reason: Written = sparse("")


OutcomeEntry = OutcomeProbed | OutcomeResolved


class HubHeard(Entry):
    """A hub has told what was said there, or that this session has come in or left."""

    kind: Literal["hub_heard"] = "hub_heard"
    hub: str
    """Id of its workflow."""
    incarnation: str
    name: str
    member: str
    through: int
    """With this, everything up to that number has been told."""
    numbers: tuple[int, ...] = sparse(())
    """One to each message: those that were heard before are passed over."""
    messages: tuple[Msg, ...] = sparse(())
    """As the model reads them."""
    left: bool = sparse(False)
    tainted: str = sparse("")


class HubTold(Entry):
    """A hub knows what a reply came to; `error`: it is not there any more."""

    kind: Literal["hub_told"] = "hub_told"
    hub: str
    reply_id: str
    error: str = sparse("")


HubEntry = HubHeard | HubTold


KEPT_NOTIFICATIONS = 200
SHOWN_ARGUMENT_CHARS = 4_000
SHOWN_OF_MORE_CHARS = 1_000
"""Of each further call of a list."""
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 3_600.0


class Notification(OpenValue):
    """One thing that happened to one call."""

    event: Literal["waits", "reminded", "escalated", "expired"]
    call_id: str
    tool: str
    waits_for: Literal["person", "outside"]
    seq: int
    """Of the entry that it comes from."""
    at: int
    """Milliseconds since 1970, as `asked_at`."""
    asked_at: int
    reason: str = sparse("")
    to: str = sparse("")
    """Whom it is escalated to."""
    expires_at: int = sparse(0)
    closed: bool = sparse(False)
    """The call has ended with it."""
    shown: str = sparse("")
    """Its arguments, of a call that has ended; those of one that waits stand in the call."""
    given: tuple[str, ...] = sparse(())
    """Channels that have taken it."""
    more: "tuple[Notification, ...]" = sparse(())
    """The same of other calls, that is told with it: who is asked about a list is told once. None of them has more."""

    def each(self) -> "tuple[Notification, ...]":
        """It alone, and those told with it."""
        return (self.model_copy(update={"more": ()}), *self.more)

    @property
    def key(self) -> str:
        """Names one event of one wait in its session."""
        return f"{self.call_id}/{self.asked_at}/{self.event}"


class Given(OpenValue):
    """What a worker has done about a notification."""

    key: str
    channels: tuple[str, ...] = sparse(())
    """All that have it by now."""
    done: bool = sparse(False)
    """All channels have it, or there is no channel, or nothing is left to say."""


class NotifyTry(NamedTuple):
    """A worker could not tell it."""

    at: int
    tries: int
    error: str
    again: bool = False
    """The pause is over."""

    @property
    def due_at(self) -> int:
        """Milliseconds since 1970 at which it is tried again."""
        doublings = max(min(self.tries - 1, 20), 0)
        return self.at + round(min(FIRST_PAUSE_SECONDS * float(1 << doublings), LONGEST_PAUSE_SECONDS) * 1000)


def shown_arguments(arguments: str, chars: int = SHOWN_ARGUMENT_CHARS) -> str:
    """As the inbox shows them, but shorter: the beginning and the end of what is long, and how much is left out."""
    text = "\n".join(f"{part.name}: {part.text}" for part in argument_parts(arguments))
    if len(text) <= chars:
        return text
    head, tail = text[: chars * 2 // 3], text[-chars // 3 :]
    return f"{head}\n⟨{len(text) - len(head) - len(tail)} characters are not shown here⟩\n{tail}"


class Pause(OpenValue):
    """Part of the session state, and carried with it: a continue-as-new, a restart or another life changes nothing
    of it."""

    at: int
    """Milliseconds since 1970."""
    by: str = sparse("")
    why: str = sparse("")
    step: Literal["", "asked", "started"] = sparse("")
    """One step is to be taken, or is being taken, before it stands still again."""


class PauseStarted(Entry):
    """Nothing new is started until somebody resumes; what runs ends by itself. Of a paused session: as it was, without
    the step that it was to take."""

    kind: Literal["paused"] = "paused"
    by: str = sparse("")
    why: Written = sparse("")


class PauseEnded(Entry):
    """Somebody lets a paused session go on."""

    kind: Literal["unpaused"] = "unpaused"
    by: str = sparse("")


class StepAsked(Entry):
    """A paused session is to take one step, and stand still again."""

    kind: Literal["step_asked"] = "step_asked"
    by: str = sparse("")


class StepStarted(Entry):
    """The step that was asked for is being taken; the first thing that comes of it ends it."""

    kind: Literal["step_started"] = "step_started"


PauseEntry = PauseStarted | PauseEnded | StepAsked | StepStarted


class Prepared(Entry):
    """What the worker found for this reply. `tools=None`: as before, so their schemas do not cross again."""

    kind: Literal["prepared"] = "prepared"
    behaviour: int
    spec_digest: str
    """Of the system prompt and the tool schemas: what model calls ask for by name."""
    tools: tuple[ToolDescriptor, ...] | None = sparse(None)
    system_prompt: str | None = sparse(None)
    """The agent's own with skills and all that its settings put around it. None: as before, and at first as it stands
    in the agent's settings."""
    prompt_digest: str = sparse("")
    """Of `system_prompt`, when that is given."""
    wrapped: bool = sparse(False)
    """Whether its workers put middlewares around every agent."""
    hooked_interrupts: bool = sparse(False)
    """Whether one of the reply's middlewares has something to say when it is interrupted."""
    hints: tuple[Msg, ...] = sparse(())
    """For the end of the context, behind the request: skills that it triggered, and where things stand."""
    workspace_root: str
    workspace_nonce: str
    """What the marker file in the workspace says: a worker that reads another one sees other files."""
    user_rules: tuple[PermissionRule, ...] | None = sparse(None)
    """Those of the session's user. None: as before."""
    user_rules_digest: str = sparse("")
    no_tool: tuple[str, ...] = sparse(())
    """Tools of the agent's rules, when it begins, and of its user's new ones, that the worker has never heard of."""
    fixed_tokens: int = sparse(0)
    """Of the system prompt and the tool schemas, as this worker counts."""
    indexed: int = sparse(1)
    """Which search attributes the namespace is known to have: 2 = `agent.views.session_views` in full. One that
    it lacks would fail a workflow task for ever."""
    context_length: int = sparse(0)
    """Tokens that the model's window holds; 0 = unknown, and nothing is compressed."""
    tariffs: dict[str, Tariff] = sparse({})
    """Of the agent's models, by its names of them, where it has a budget."""
    left_out: tuple[str, ...] = sparse(())
    """A sentence for each skill, and file of instructions, that is not used or is read otherwise than it is written."""


class Restored(Entry):
    """What an earlier incarnation of this session left behind, found when the session was opened again.

    Requests that were recorded before it are taken again after it: what the earlier incarnation has answered is
    answered.
    """

    kind: Literal["restored"] = "restored"
    incarnation: int
    """Incarnations of the session, this one included."""
    source: Literal["nothing", "store", "history"]
    """`store`: the checkpoint that the closed session confirmed. `history`: rebuilt from a run that did not close."""
    carried: Any = sparse(None)
    """`agent.incarnation.continued_state.Carried` as JSON; None when there was nothing."""
    note: str = sparse("")
    quarantine: str = sparse("")
    """Why a person has to look first: later steps are unknown, or what was found is damaged."""
    prepared: Prepared | None = sparse(None)
    """What was found in the same activity for the first reply; an entry of its own in the journal."""


class RestoreFailed(Entry):
    """It could not be found out whether there is an earlier incarnation; nothing is done until somebody says try
    again."""

    kind: Literal["restore_failed"] = "restore_failed"
    error: ErrorInfo


class QuarantineEnded(Entry):
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
    boundary: Any = sparse(None)
    """`agent.incarnation.history.boundary_of` behind `through`."""
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
    before: CallsBefore = sparse(NO_CALLS_BEFORE)
    """Of a copy."""


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


class ProviderOutage(OpenValue):
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
    away: ProviderOutage | None = sparse(None)
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


IncarnationEntry = (
    Restored
    | RestoreFailed
    | QuarantineEnded
    | Checkpointed
    | CheckpointFailed
    | StateReplaced
    | TimeReached
    | WorkerLacks
    | HostBack
    | WorkerLeft
)


class LeftOut(OpenValue):
    """One block of the context, or one part of a result or a hint, that stands there no more."""

    message: int
    """Its place in the context; a summary, where there is one, is the first."""
    block: int
    part: int | None = sparse(None)
    """Of a result's output or of a hint; None: the block itself."""
    words: str = sparse("")
    """What models read in its place; empty: nothing, for thinking."""
    media_type: str = sparse("")
    """It stays, and is sent as what it is: it was declared as something else."""
    extras: bool = sparse(False)
    """It stays, without what its provider had sent along."""


class Repair(OpenValue):
    """Made before the model could answer. The transcript keeps everything as it came."""

    left_out: tuple[LeftOut, ...] = sparse(())
    takes_no_images: str = sparse("")
    """The model that said so, by its full name: it is sent words in their place, and other models the images."""
    refused: str = sparse("")
    """What the provider said; empty where the worker found it by itself."""
    context_digest: str = sparse("")
    """Of the context without those parts, up to the message."""
    context_length: int = sparse(0)


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
    """Somebody has interrupted a request that had not started: it never will."""

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


class Configured(Entry):
    """Mode, rules or limits changed from outside. None = as before."""

    kind: Literal["configured"] = "configured"
    mode: PermissionMode | None = sparse(None)
    add_rules: tuple[PermissionRule, ...] = sparse(())
    max_iters: int | None = sparse(None)
    model: str | None = sparse(None)
    llm_config: ModelConfig | None = sparse(None)
    """The whole of it."""
    confirm: Confirming | None = sparse(None)
    analyzers: tuple[str, ...] | None = sparse(None)
    middlewares: tuple[str, ...] | None = sparse(None)
    by: str = sparse("")
    no_tool: tuple[str, ...] = sparse(())
    """Tools of the new rules that the agent does not have."""
    again: bool = sparse(False)
    """The step that waited with another model is started again with this one."""


class RulesChanged(Entry):
    """Rules of the session came and went, by somebody's word."""

    kind: Literal["rules_changed"] = "rules_changed"
    add: tuple[PermissionRule, ...] = sparse(())
    """As they were sent: author, time and scope are given to them by the reducer."""
    revoked: tuple[str, ...] = sparse(())
    """Ids."""
    by: str = sparse("")
    why: Written = sparse("")
    no_tool: tuple[str, ...] = sparse(())
    """Tools of the new rules that the agent does not have."""


class InputAsked(Entry):
    """A server needs to know something of a person before it goes on with a call; nothing is under way meanwhile."""

    kind: Literal["input_asked"] = "input_asked"
    call_id: str
    asked: ServerAsked
    sampled: Sampled | None = sparse(None)
    """What a model was asked in the name of the server before."""


class InputAnswered(Entry):
    """A person has answered: the call is decided on once more, and made again with the answers."""

    kind: Literal["input_answered"] = "input_answered"
    call_id: str
    answers: Written
    """JSON: as `ServerAsked.answers`, of this round."""
    by: str = sparse("")


InputEntry = InputAsked | InputAnswered


class Reminded(Entry):
    """The model is told again what holds, at the end of its context. The words are recorded, not only the occasion:
    what a context had lost can't be told from the entries behind a boundary."""

    kind: Literal["reminded"] = "reminded"
    messages: tuple[Msg, ...]
    stuck: Pattern = sparse("")
    """The pattern in which the model repeats itself; the reminder says so."""


class CallAnswered(Entry):
    """The result, and what of the state is as the call left it. None = as before."""

    kind: Literal["answered"] = "answered"
    result: ToolResultBlock
    tasks: tuple[Task, ...] | None = sparse(None)
    plans: PlanChange | None = sparse(None)
    plan: PlanModeContext | None = sparse(None)
    """Of plan mode."""
    groups: tuple[str, ...] | None = sparse(None)
    """Of tools, the active ones."""
    found: tuple[str, ...] = sparse(())
    """Tools whose schemas it has given."""
    structured_output: dict[str, Any] | None = sparse(None)
    """The answer in the form that was asked for."""
    unwanted: tuple[str, ...] = sparse(())
    """Sub-agents and commands in the background that are to stop, by the call that started each."""
    sent: dict[str, str] = sparse({})
    """The words for sub-agents, in the same way."""


InWorkflowEntry = CallAnswered | Reminded


class DecisionsReceived(Entry):
    """Signed decisions came in; until they are checked, their calls go on waiting."""

    kind: Literal["offered"] = "offered"
    body: dict[str, Any]
    """`agent.operations.bodies.Confirm` as it came."""


class DecisionsVerified(Entry):
    """What became of signed decisions."""

    kind: Literal["decisions_verified"] = "decisions_verified"
    decisions_at: int
    """Number of its entry."""
    why: Written = sparse("")
    """Why it does not count; empty when it does."""


class VerifyDecisions(OpenValue):
    """Check signatures. `body`: `agent.operations.bodies.Confirm` as it came."""

    body: dict[str, Any]


class Verified(OpenValue):
    """Why they do not hold (empty: they do), and the id of the key."""

    why: str = sparse("")
    key: str = sparse("")


UnverifiedEntry = DecisionsReceived | DecisionsVerified


class SleepStarted(Entry):
    """A call waits for a moment or an event; no worker has a part in it."""

    kind: Literal["sleep_started"] = "sleep_started"
    call_id: str
    until: int
    """Milliseconds since 1970."""
    event: str


class ExternalEventReceived(Entry):
    """Somebody outside has told of an event. It ends the sleep that waits for it, or is kept for the next one."""

    kind: Literal["external_event"] = "external_event"
    event: str
    request_id: str
    body_digest: str
    """Tells the same notification sent twice from another one under the same id."""
    payload: Written = sparse("")
    by: str = sparse("")


SleepEntry = SleepStarted | ExternalEventReceived


class ChildStarted(Entry):
    """A call has started a session of its own, or found the one that it began before."""

    kind: Literal["child_started"] = "child_started"
    child: Child


class ChildrenTold(Entry):
    """What was passed on to sub-agents."""

    kind: Literal["children_told"] = "children_told"
    operation: Literal["interrupt", "pause", "resume", "budget", "observe"]
    call_ids: tuple[str, ...]
    through: int = sparse(0)
    """Of a budget and of words: the newest entry that was passed on."""


class ChildEnded(Entry):
    """A sub-agent has said how its task ended, or can't say it any more. The result of its call is another entry."""

    kind: Literal["child_ended"] = "child_ended"
    call_id: str
    outcome: Outcome
    session_id: str = sparse("")
    spent: Amount | None = sparse(None)
    """With what it says is of unknown outcome; None: nobody knows it, and all that was put aside for it counts as of
    unknown outcome."""
    doubtful: Amount = sparse(Amount())
    tainted: str = sparse("")
    """Of one in the background: why what it says may hold what others wrote."""


class ParentTold(Entry):
    """Of a sub-agent: its lead has received the report; `error`: why the report can't be delivered."""

    kind: Literal["parent_told"] = "parent_told"
    error: str = sparse("")


class ReportAsked(Entry):
    """Of a sub-agent: its lead asks for the report again."""

    kind: Literal["report_asked"] = "report_asked"


ChildEntry = ChildStarted | ChildrenTold | ChildEnded | ParentTold | ReportAsked


class AskerCame(Entry):
    """A workflow of an application waits for the end of a request, which may have been accepted before."""

    kind: Literal["asker_came"] = "asker_came"
    asker: Asker


class AskerTold(Entry):
    """That workflow knows how the request ended; `error`: why it can't be told."""

    kind: Literal["asker_told"] = "asker_told"
    request_id: str
    error: str = sparse("")


AskEntry = AskerCame | AskerTold


class SessionOpened(Entry):
    """The first entry: who talks with which agent."""

    kind: Literal["opened"] = "opened"
    session_id: str
    user_id: str | None = sparse(None)
    spec: AgentSpec
    search_attributes: bool = sparse(True)
    """Recorded, because workflow code may not read a setting that can differ at replay."""
    parent: Parent | None = sparse(None)
    """Of a sub-agent."""


class Observed(Entry):
    """Messages for the context that ask for no reply."""

    kind: Literal["observed"] = "observed"
    messages: tuple[Msg, ...]


class ModelSaid(Entry):
    kind: Literal["model_said"] = "model_said"
    message: Msg
    digest: str = sparse("")
    """Of the message; empty when the journal changed the message after the activity made it."""
    context_digest: str = sparse("")
    """Of the whole context up to and with this message."""
    context_length: int = sparse(0)
    tokens: int = sparse(0)
    """Of the message, as the worker counts; the provider's own numbers are in `message.usage`."""
    input_estimate: int = sparse(0)
    """Of all that was sent, as the worker counts: against the reported number it tells how far off counting is."""
    analysis: dict[str, CallAnalysis] = sparse({})
    """By call id."""
    unmarked: dict[str, str] = sparse({})
    """Arguments as the model wrote them, by call id, of calls that hold a secret: they run, and nobody is shown them.
    The message has marks."""
    marked: dict[int, Msg] = sparse({})
    """Messages of the context without the secrets that somebody wrote into them, by place in a model's context."""
    words: dict[str, str] = sparse({})
    """What people wrote beside messages, without such secrets, by its place in the log
    (`agent.reducer.approval_digest`)."""
    model: str = sparse("")
    stop_reason: str = sparse("")
    """The provider's own word, and what it comes to."""
    stop: StopReason = sparse(StopReason.END)
    asked: str = sparse("")
    """Of a refusal: the model as the agent names it, so that another one is asked next."""
    refusal: str = sparse("")
    """What the provider said of it, beside the message."""
    cache_missed: int = sparse(0)
    """Tokens that the provider's cache should have served and did not, and why."""
    cache_reason: MissReason = sparse("")
    sent_digest: str = sparse("")
    """Of the system prompt as hooks made it; empty: it was sent as it is recorded."""
    dropped_calls: int = sparse(0)
    """How many it made beyond `batches.CALLS_OF_A_TURN`: they stand nowhere."""
    cut_short: bool = sparse(False)
    """It was interrupted while it spoke: the message is what clients had read by then, without calls."""
    started_calls: tuple[str, ...] = sparse(())
    """Tools of the calls that it was writing then: they are dropped."""
    repair: Repair | None = sparse(None)
    """What the context was sent without, so that it could answer."""
    adjusted: tuple[str, ...] = sparse(())
    """What the provider's API could not express of the request or of the answer, where the session was not told so of
    this model before."""
    lost_attempts: int = sparse(0)
    """Earlier attempts at this call that may have been billed."""
    lost: Usage | None = sparse(None)
    """An estimate of what they were asked and had answered, of which no provider has told anybody."""
    reads: dict[str, ToolReturned | None] = sparse({})
    """What its calls have read at once, by call id; None: it has to go its own way. No part of the journal: the session
    judges these calls like any others, and writes down what it allows."""
    goes_on: bool = sparse(False)
    """It is a step of a custom agent, which is asked for the next one: no answer yet, although it calls nothing."""


class ModelFailed(Entry):
    """A model gave up for good; the fallback model, if there is one, is next."""

    kind: Literal["model_failed"] = "model_failed"
    model: str
    error: ErrorInfo


class OperationRefused(Entry):
    """A signal or update that changed nothing, and why."""

    kind: Literal["refused"] = "refused"
    name: str
    reason: Written
    count: int = 0
    """How many there have been with this one: the older ones are not carried on."""


SingleEntry = (
    SessionOpened
    | Observed
    | Prepared
    | ModelSaid
    | ModelFailed
    | OperationRefused
    | Configured
    | RulesChanged
    | DeadlineReached
)
"""Those whose subject has not several that go together."""
AnyEntry = Annotated[
    SingleEntry
    | RequestEntry
    | CallEntry
    | UnverifiedEntry
    | ContextEntry
    | OutcomeEntry
    | InWorkflowEntry
    | PauseEntry
    | SleepEntry
    | InputEntry
    | ChildEntry
    | AskEntry
    | BackgroundEntry
    | HubEntry
    | BudgetEntry
    | IncarnationEntry,
    Field(discriminator="kind"),
]
"""Each file beside this one says which entries are of its subject."""


CallOutcome = ToolReturned | CallUnsettled | InputAsked


class ToolOutcome(RootModel[Annotated[CallOutcome, Field(discriminator="kind")]]):
    """What a tool's activity answers: one of these, as it stands."""
