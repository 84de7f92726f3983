"""AgentState: everything that has to be known to go on, as plain JSON with the seed's names."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from longhaul.agent.permission.call_analysis import CallAnalysis, Confined
from longhaul.agent.plain.values import QuicklyCopied, sparse
from longhaul.agent.values.conversation.messages import (
    ErrorInfo,
    Msg,
    ServerAsked,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    Usage,
)
from longhaul.agent.values.conversation.prompt import GoOn
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.deadlines import Deadline, Sleep
from longhaul.agent.values.permission import Approval, DecisionMade, PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.plans import NO_PLAN_MODE, PlanModeContext
from longhaul.agent.values.stuck_detection import UNWATCHED, Watch
from longhaul.agent.values.tasks import NO_TASKS, TasksContext


class Living(QuicklyCopied):
    """A part of the state. Only `agent.reducer` changes it, by recorded entries."""

    model_config = ConfigDict(extra="ignore")


class OpenCall(Living):
    """A tool call of the current turn and how far it has come."""

    block: ToolCallBlock
    """As the model wrote it."""
    input: str
    """The arguments that would run: the model's, an approver's edit of them, or what a middleware made of either."""
    unchanged: str | None = sparse(None)
    """The arguments that middlewares are given, where they have put others in their place."""
    state: ToolCallState = ToolCallState.PENDING
    analysis: CallAnalysis = Field(default_factory=CallAnalysis)
    analyzed_at: int = 0
    """Milliseconds since 1970."""
    analysis_stale: bool = False
    times_unsettled: int = 0
    """How often the world had changed when it was about to run."""
    changed: str = ""
    """What had changed the last time, until somebody was told."""
    analyzed: bool = sparse(False)
    """The agent's analyzers were asked about these findings, whatever came of it."""
    judged: int = sparse(0)
    """Number of the entry with the newest verdict on it, and its time in milliseconds since 1970."""
    judged_at: int = sparse(0)
    reason: str = ""
    """Why it was asked about, denied or allowed."""
    confined: Confined = sparse("")
    suggested_rules: tuple[PermissionRule, ...] = ()
    seen: str = sparse("")
    """Of a call that a person was asked about: `agent.reducer.approval_digest.material` of it then."""
    asked_at: int = 0
    deadline: Deadline | None = sparse(None)
    """Of this wait, which began at `asked_at`; then when each stage of it was recorded, 0 = not yet."""
    reminded_at: int = sparse(0)
    escalated_at: int = sparse(0)
    expired_at: int = sparse(0)
    approved: bool = False
    approver: str = ""
    response: str = sparse("")
    """What its tool wants said as the reply (`agent.values.conversation.messages`)."""
    child: bool = sparse(False)
    """A sub-agent is at work on it: nobody else is waited for."""
    pieces: tuple[str, ...] = sparse(())
    """Of a result that is still being made outside."""
    sleep: Sleep | None = sparse(None)
    """Of a call that waits for a moment or an event since `asked_at`."""
    asked: ServerAsked | None = sparse(None)
    """What the MCP server of its tool wants to know of a person, and what it was answered."""
    received: ToolResultBlock | None = sparse(None)
    """What was handed in from outside, until a worker has looked at its length."""
    approved_analysis: CallAnalysis | None = None
    """What the approver had before them; None until the approver's own arguments have been looked at."""
    approvals: tuple[Approval, ...] = sparse(())
    """Of the call as it stands; it runs when there are as many as its tool takes."""
    approved_terms: str = sparse("")
    """`agent.reducer.approval_digest.terms` at the approval; empty for a tool that nobody knew then."""

    @property
    def edited(self) -> bool:
        return self.input != self.block.input

    @property
    def waits_for(self) -> Literal["person", "outside", "event"] | None:
        """Whose answer it waits for: a decision of a person, a result from outside, or nobody's. `event`: it sleeps,
        until the time comes or somebody tells of its event."""
        match self.state:
            case ToolCallState.ASKING:
                return "person"
            case ToolCallState.SUBMITTED if self.sleep is not None:
                return None if self.sleep.over else "event"
            case ToolCallState.SUBMITTED if self.received is None and not self.child:
                return "outside"
            case _:
                return None

    def shown(self) -> ToolCallBlock:
        """The block as a client sees it: with its state, the arguments that would run and the suggestions."""
        # An edit may hold a secret until a worker has looked at it.
        shown = self.block.input if self.analysis_stale else self.input
        return self.block.model_copy(
            update={"input": shown, "state": self.state, "suggested_rules": self.suggested_rules}
        )


def effect_of(call: OpenCall, tool: ToolDescriptor) -> Effect:
    """What running the call twice would do: a call proven to be read-only is safe whatever its tool may do."""
    return effect_by(call.analysis, tool)


def effect_by(analysis: CallAnalysis, tool: ToolDescriptor) -> Effect:
    """The same of a call by what was found about it."""
    return Effect.READ if analysis.read_only else tool.effect


_MAY_WAIT = (ToolCallState.ASKING, ToolCallState.SUBMITTED)


class ReplyContext(Living):
    """The reply that is under way."""

    reply_id: str
    request_id: str
    started_at: int = 0
    prepared: bool = False
    cur_iter: int = 0
    """Completed rounds: a model call and all of its results."""
    calls: dict[str, OpenCall] = Field(default_factory=dict)
    """The current turn's calls, in the model's order. Emptied when each call has its result."""
    answered: bool = False
    """The model's last message calls no tool."""
    rejected: bool = False
    """A person denied a call."""
    failed_models: list[str] = Field(default_factory=list)
    model_error: ErrorInfo | None = sparse(None)
    """Why a model last gave up."""
    overflow: Literal["", "refused", "answered"] = sparse("")
    """The provider found the context too long. `answered`: Longhaul compressed it, or failed to. Both happen once."""
    refused_by: tuple[str, ...] = sparse(())
    """Models that refused to answer this reply's subject."""
    broken_off: int = sparse(0)
    """How many of the model's newest messages in a row are incomplete."""
    wordless: int = sparse(0)
    """How often the model used all of its output tokens for thinking."""
    to_go_on: GoOn = sparse("")
    """What the model reads before it is called again."""
    structured_schema: dict[str, Any] | None = sparse(None)
    """Schema that the answer has to fit. None = text is an answer."""
    structured_output: dict[str, Any] | None = sparse(None)
    """The structured answer, once it is given. The reply ends when the turn's other calls have their results."""
    unstructured: int = sparse(0)
    """How often the model answered in text instead."""
    response: str = sparse("")
    """What a tool wants said as the reply: of the newest turn, the first in the order of its calls."""
    memorised: bool = sparse(False)
    """The reply was stored in long-term memory, or could not be stored."""
    usage: Usage = Field(default_factory=Usage)

    def waiting(self) -> list[OpenCall]:
        """The calls that a person or an outside system must answer, and those that sleep, in the model's order."""
        # A turn with a hundred sub-agents is looked through at each word of theirs: what is over, and what a sub-agent
        # is at work on, is passed over without a further question.
        return [
            call
            for call in self.calls.values()
            if call.state in _MAY_WAIT and (call.state is ToolCallState.ASKING or not call.child or call.sleep)
            if call.waits_for
        ]

    def is_passed_over(self, model: str) -> bool:
        """Whether this model is not to be asked now."""
        return model in self.failed_models or model in self.refused_by


class ToolContext(Living):
    cwd: str = ""
    """Working directory of the session. Empty until the workspace is bound."""
    activated_groups: tuple[str, ...] = ()
    mcp_connections: dict[str, str] = sparse({})
    """For each stateful MCP server, the connection of its newest result."""
    found: tuple[str, ...] = sparse(())
    """Tools that the model has looked up, the newest last."""


class AgentState(Living):
    """The session's whole state, as it is stored. JSON round trip is exact."""

    session_id: str = ""
    """Session in which the state was made. Empty: it belongs to no session yet."""
    user_id: str | None = None
    agent: str = "longhaul"
    behaviour: int = 1
    """Version of the rules in `longhaul/agent` that the current reply follows."""
    context: list[Msg] = Field(default_factory=list[Msg])
    """One message for each model call and each tool result. The messages of one reply share its id."""
    summary: str = ""
    permission_context: PermissionContext = Field(default_factory=PermissionContext)
    tool_context: ToolContext = Field(default_factory=ToolContext)
    plan_mode_context: PlanModeContext = NO_PLAN_MODE
    tasks_context: TasksContext = NO_TASKS
    reply_context: ReplyContext | None = None
    decisions: tuple[DecisionMade, ...] = sparse(())
    """The newest decisions of people, the oldest first."""
    shutdown_interrupted: bool = False
    watch: Watch = sparse(UNWATCHED)
    """Counts by which Longhaul notices that the agent goes in circles."""
    tainted: str = sparse("")
    """How untrusted text first came into the context. Empty: never."""

    @property
    def reply_id(self) -> str:
        """Id of the reply that is under way. Empty between replies."""
        return self.reply_context.reply_id if self.reply_context is not None else ""

    @property
    def cur_iter(self) -> int:
        """Rounds that the reply has completed."""
        return self.reply_context.cur_iter if self.reply_context is not None else 0

    @property
    def planning(self) -> bool:
        """Whether plan mode is on. An imported or edited state may say it in either place."""
        return self.plan_mode_context.active or self.permission_context.mode is PermissionMode.PLAN

    @property
    def mode(self) -> PermissionMode:
        """The permission mode, as people know it."""
        return PermissionMode.PLAN if self.planning else self.permission_context.mode

    def take_mode(self, mode: PermissionMode) -> None:
        """Turn plan mode on above the mode that there is, or take another mode, which ends it."""
        if mode is PermissionMode.PLAN:
            self.take_plan(self.plan_mode_context.model_copy(update={"active": True}))
            return
        self.permission_context = self.permission_context.model_copy(update={"mode": mode})
        self.take_plan(self.plan_mode_context.model_copy(update={"active": False}))

    def take_plan(self, plan: PlanModeContext) -> None:
        self.plan_mode_context = plan
        if self.permission_context.mode is PermissionMode.PLAN:
            self.permission_context = self.permission_context.model_copy(update={"mode": PermissionMode.DEFAULT})
