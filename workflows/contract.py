"""Tells those who look at a session of a model's provider that is away, and of what its workers lack.

The contract is what both ends must agree on: names, the start input, the converter, the search attributes.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from temporalio.common import Priority, SearchAttributeKey

from longhaul.activities.contract import CALL_MODEL as CALL_MODEL
from longhaul.activities.contract import CHECKPOINT as CHECKPOINT
from longhaul.activities.contract import COMPRESS as COMPRESS
from longhaul.activities.contract import REFUSED as REFUSED
from longhaul.activities.contract import REQUEST as REQUEST
from longhaul.activities.contract import TELL_MEMBER as TELL_MEMBER
from longhaul.activities.contract import EntriesPage as EntriesPage
from longhaul.activities.contract import MessagePage as MessagePage
from longhaul.activities.contract import SnapshotPage as SnapshotPage
from longhaul.activities.contract import SpecTexts as SpecTexts
from longhaul.activities.contract import TranscriptPage as TranscriptPage
from longhaul.activities.contract import WorkerEnvironment as WorkerEnvironment
from longhaul.agent.entries import RequestAccepted, Segment
from longhaul.agent.hub_membership import HubShown, HubState, Member
from longhaul.agent.incarnation.continued_state import Carried
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import AskAnswer, ChildReport
from longhaul.agent.operations.peer_operations import HubSays
from longhaul.agent.permission.preview import Preview
from longhaul.agent.plain.ids import fairness_key
from longhaul.agent.plain.values import OpenValue, Value, sparse
from longhaul.agent.values.budget import NOTHING_SPENT, ModelSpent
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg, ServerAsked
from longhaul.agent.values.conversation.tools import TemporalTarget
from longhaul.agent.values.permission import DecisionMade, PermissionRule
from longhaul.agent.values.prompt_cache import Missed, MissReason
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import Asker, BackgroundCommand, Child, Parent
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.events import unavailable_words
from longhaul.agent.views.session_views import BudgetStanding, PlanStanding
from longhaul.workflows.payload_converter import BLOBS_UNREACHABLE as BLOBS_UNREACHABLE
from longhaul.workflows.payload_converter import DATA_CONVERTER as DATA_CONVERTER
from longhaul.workflows.payload_converter import HISTORY_LOST as HISTORY_LOST
from longhaul.workflows.payload_converter import BlobGone as BlobGone
from longhaul.workflows.payload_converter import SessionConverter as SessionConverter
from longhaul.workflows.payload_converter import WithinCodec as WithinCodec
from longhaul.workflows.payload_converter import check_had as check_had
from longhaul.workflows.payload_converter import converter_with as converter_with
from longhaul.workflows.payload_converter import is_encrypted as is_encrypted
from longhaul.workflows.payload_converter import keys_in as keys_in
from longhaul.workflows.payload_converter import owner_of as owner_of
from longhaul.workflows.payload_converter import stored_in as stored_in


class Outage(Value):
    """A provider that is waited for; times are ISO 8601 in UTC."""

    why: str
    attempt: int
    """The newest one that has failed, as far as it is known."""
    next_try: str
    until: str
    """When the waiting is given up, and the reply ends as failed."""

    def told(self, when: Callable[[str], str] | None = None) -> str:
        """A sentence for people. `when` writes times in the reader's zone; without it they are in UTC."""
        shown = when or _second
        times = "1 time" if self.attempt == 1 else f"{self.attempt} times"
        tries = f"tried {times}, next at {shown(self.next_try)}, until {shown(self.until)}"
        return f"waits for the model's provider ({tries}): {self.why}"


def _second(moment: str) -> str:
    return f"{moment[:19].replace('T', ' ')} UTC"


def outage(journal: Journal) -> Outage | None:
    lacking = journal.incarnation.lacking
    if lacking is None or lacking.away is None:
        return None
    return Outage(why=lacking.why, **unavailable_words(lacking.away))


def lacking(journal: Journal) -> str:
    """What the workers that were asked lack for the next step. A provider that is away is another matter."""
    found = journal.incarnation.lacking
    return found.why if found is not None and found.away is None else ""


WORKFLOW = "AgentSession"
SCHEDULED = "ScheduledRequest"
"""The workflow of one scheduled run of a schedule."""
HUB = "AgentHub"
ENVIRONMENT = "WorkerEnvironment"
"""The workflow that asks a worker what it has around it."""
OPERATION = "NexusCall"
"""The workflow that calls a Nexus operation for a session."""
TASK_QUEUE = "longhaul"


class OperationCall(OpenValue):
    """What is called, and for how long its answer is awaited."""

    target: TemporalTarget
    given: Any
    seconds: float


SEARCH_ATTRIBUTES: Mapping[str, str] = {
    "LonghaulStatus": "Keyword",
    "LonghaulAgent": "Keyword",
    "LonghaulUser": "Keyword",
    "LonghaulSession": "Keyword",
    "LonghaulWaitingSince": "Datetime",
    "LonghaulWaitingTools": "KeywordList",
    "LonghaulRisk": "Keyword",
    "LonghaulTeam": "Keyword",
    "LonghaulDeadline": "Datetime",
    "LonghaulTokens": "Int",
    "LonghaulCost": "Double",
}
"""Name to type; the worker checks them, and registers them where it may, before it polls.

A namespace on SQL holds 10 of Keyword and 3 of the other types: there is room for more of ours, but not for many.
"""

STATUS = SearchAttributeKey.for_keyword("LonghaulStatus")
"""idle, working, waiting (for a person or an outside system), or paused."""
AGENT = SearchAttributeKey.for_keyword("LonghaulAgent")
USER = SearchAttributeKey.for_keyword("LonghaulUser")
SESSION = SearchAttributeKey.for_keyword("LonghaulSession")
WAITING_SINCE = SearchAttributeKey.for_datetime("LonghaulWaitingSince")
TOOLS = SearchAttributeKey.for_keyword_list("LonghaulWaitingTools")
RISK = SearchAttributeKey.for_keyword("LonghaulRisk")
"""The highest of the calls that wait: low, medium, unknown or high; empty where nothing analyses calls."""
TEAM = SearchAttributeKey.for_keyword("LonghaulTeam")
DEADLINE = SearchAttributeKey.for_datetime("LonghaulDeadline")
"""The earliest time at which a call that waits expires."""

TOKENS = SearchAttributeKey.for_int("LonghaulTokens")
"""What its models have read and written, as of the last time that the session began, waited or came to rest."""
COST = SearchAttributeKey.for_float("LonghaulCost")
"""The same in dollars, where the workers know what that costs."""

TITLE = "title"
"""Key of a session's memo: how the request begins that it was started with."""
WAITS = "waits"
"""Key of a session's memo: `Waits` as JSON, while somebody is waited for."""

TASK_TIMEOUT = timedelta(seconds=10)
"""Workflow task timeout: how long the server waits for a worker that died in the middle of deciding. A worker that
lives has to replay a session's whole history in it, next to a few others, on a slow machine too."""

AHEAD = "the session moved on while it was asked; ask again"
"""What a query fails with that came upon events of no task yet. Its session is well."""

RESET = "longhaul.reset"
"""The signal by which a session hears of its own worker that somebody has reset it. Of anybody else it is an unknown
one."""

PAGE_BYTES = 200_000
"""Query answers stay under it: above 256 KB each page would leave a blob behind."""


WRONG_ARITY = b"longhaul/wrong-arity"
"""Encoding of the payload that stands for a start input which is not one; its data says how many came."""


def priority_of(spec: AgentSpec, user: str | None, indexed: Callable[[str], str]) -> Priority:
    """How a session shares the workers with others. Its activities and sub-agents inherit it from the server.

    `indexed` names the user as the search attribute does, for everybody who sees the workflow sees the key.
    """
    key = fairness_key(spec.fairness_key or (indexed(user) if user is not None else "") or spec.team)
    return Priority(priority_key=spec.priority, fairness_key=key or None)


class SessionStart(OpenValue):
    """Input of a session's first run, and of each run after a continue-as-new (then with `carried`)."""

    session_id: str
    user_id: str | None = sparse(None)
    spec: AgentSpec | None = sparse(None)
    search_attributes: bool = sparse(True)
    carried: Carried | None = sparse(None)
    """What the run before left."""
    parent: Parent | None = sparse(None)
    request: RequestAccepted | None = sparse(None)
    """Of a sub-agent: who started it, and its task."""
    asker: Asker | None = sparse(None)
    """The workflow of an application that waits for the end of `request`."""


class HubStart(OpenValue):
    """Input of a hub's first run, and of each run after a continue-as-new."""

    hub: HubState


class ToMember(OpenValue):
    """A hub's operation, and where it goes."""

    member: Member
    operation: HubSays


class HubMember(OpenValue):
    """A member as it is shown."""

    name: str
    session_id: str
    agent: str
    heard: int
    """Everything up to this number has been told to it."""
    leaving: bool = sparse(False)


class HubCard(OpenValue):
    """A hub as it is shown."""

    name: str
    user_id: str | None = sparse(None)
    auto_broadcast: bool = True
    members: tuple[HubMember, ...] = ()
    number: int = 0
    """Of the newest that happened in it."""
    waiting: int = 0
    """Words that some member has not heard yet."""
    newest: tuple[HubShown, ...] = ()
    """The newest words, the oldest first."""
    notes: tuple[str, ...] = ()
    """Who was put out, and why."""


class SubAgentPlace(OpenValue):
    """The session of a sub-agent."""

    session_id: str
    agent: str
    workflow_id: str


class PendingCall(OpenValue):
    """A call that waits for somebody."""

    reply_id: str
    call_id: str
    tool: str
    input: str
    """JSON arguments as they would run."""
    waits_for: str
    """`person`, `outside`; `settlement`: it was started, and somebody has to say whether it happened; `wake-up`: it
    sleeps until `wakes_at`, if nobody tells of its `event` before. `budget`: it is no call, but that the reply needs
    more than the session may spend."""
    reason: str = sparse("")
    risk: str = sparse("")
    """How dangerous an analyzer found it: low, medium, high or unknown; empty where none has looked."""
    notice: str = sparse("")
    """What to look at beside the arguments: the diff of an edit."""
    suggested_rules: tuple[PermissionRule, ...] = sparse(())
    asked_at: str = sparse("")
    remind_at: str = sparse("")
    escalate_at: str = sparse("")
    escalate_to: str = sparse("")
    expires_at: str = sparse("")
    on_expiry: str = sparse("")
    """`deny` or `park`, where it expires."""
    reminded_at: str = sparse("")
    escalated_at: str = sparse("")
    expired_at: str = sparse("")
    """It waits all the same: such a call is parked."""
    wakes_at: str = sparse("")
    event: str = sparse("")
    digest: str = sparse("")
    """Names what is shown here; sent back with a decision, it makes the decision void when anything has changed."""
    approvers: int = sparse(1)
    """Different people who have to approve it."""
    approved_by: tuple[str, ...] = sparse(())
    """Who has; it still waits for the others."""
    signed: bool = sparse(False)
    """Only a signed decision counts."""
    preview: Preview | None = sparse(None)
    """What to show to the person who decides. None: its tool is not known any more, or the call has run and is of
    unknown outcome."""
    asked: ServerAsked | None = sparse(None)
    """Of a call whose MCP server asks: the questions, with the schema of each answer; `reason` has them in words."""
    path: str = sparse("")
    """`root › researcher › Bash`, of a call of a sub-agent: whose it is."""
    at: SubAgentPlace | None = sparse(None)
    """Where it waits, of a call that a session above its own lists; None: it is the session's own."""


class Waits(OpenValue):
    """What a session waits for, as lists read it that ask nobody."""

    calls: tuple[PendingCall, ...] = sparse(())
    """The first ones, as far as there is room."""
    left_out: int = sparse(0)
    """Further calls that wait."""
    quarantine: str = sparse("")
    paused_since: str = sparse("")
    paused_by: str = sparse("")
    paused_why: str = sparse("")
    """These as in `Status`."""
    host_unavailable: str = sparse("")
    """Why nothing goes on: the host of its workspace is away."""


class WaitingRequest(OpenValue):
    """A request that has not started."""

    request_id: str
    reply_id: str
    when: str = "queue"
    """As it was asked for: `queue`, `now` or `interrupt`."""
    joins: bool = sparse(False)
    """The message joins the reply under way, at the next step boundary."""
    text: str = sparse("")
    """How it begins, on one line. Empty: it goes on from where things stand."""


class Status(OpenValue):
    """One session at a glance."""

    session_id: str
    user_id: str | None
    agent: str
    custom_agent: str = sparse("")
    """The code of the operator's that makes its replies, by its name; empty: a model does."""
    model: str
    status: str
    """idle, working, waiting, paused."""
    reply_id: str = ""
    queued: int = 0
    requests: tuple[WaitingRequest, ...] = sparse(())
    """The first that wait, in their order."""
    pending: int = 0
    unknown_outcomes: int = 0
    """Calls of which nobody has said yet whether they happened."""
    messages: int = 0
    context_tokens: int = 0
    """Of the next model call's whole input, as counted and corrected by what the provider reported."""
    context_length: int = 0
    """Tokens that the model's window holds; 0 = not known yet."""
    compressions: int = 0
    compression_tries: int = 0
    """Those that failed are among them."""
    compressing: bool = False
    """Somebody has asked for a shorter context, and it is still to come."""
    compression_error: str = ""
    """Why the last compression failed; empty after one that worked."""
    adjusted: dict[str, tuple[str, ...]] = sparse({})
    """What of the requests the models' APIs could not express: by the model's name the newest sentences, each once."""
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    by_model: dict[str, ModelSpent] = sparse({})
    """By the names that the models answer under."""
    cache_missed: dict[MissReason, Missed] = sparse({})
    """What providers' prompt caches should have served and did not, by why."""
    lost: ModelSpent = sparse(NOTHING_SPENT)
    """What attempts that were lost with their worker, or broke off, may have been billed: estimated, and in none of
    the counts above."""
    tokens_estimated: bool = sparse(False)
    """Not all of them were reported: some are the workers' own count."""
    budget: BudgetStanding | None = sparse(None)
    """What it may spend, has spent and has left; None without a budget."""
    refused: int = 0
    last_refusals: tuple[dict[str, str], ...] = ()
    decisions: tuple[DecisionMade, ...] = ()
    """The newest ones, oldest first."""
    mode: str = ""
    tasks_done: int = sparse(0)
    tasks_total: int = sparse(0)
    current_task: str = sparse("")
    plan: PlanStanding | None = sparse(None)
    """The one that the agent follows; its subtasks are those tasks."""
    plans_over: tuple[PlanStanding, ...] = sparse(())
    """The newest, the newest last."""
    workspace_root: str = ""
    left_out: tuple[str, ...] = sparse(())
    """A sentence for each skill, and file of instructions, of the workspace that its newest reply does without, or that
    is read otherwise than it is written."""
    cwd: str = ""
    behaviour: int = 1
    """Version of the rules that its current reply goes by."""
    last_error: ErrorInfo | None = None
    seq: int = 0
    """The newest entry that changed something: what `replace_state` expects."""
    saved_seq: int = 0
    """The state as of this entry stands in the state store."""
    incarnation: int = 1
    """Incarnations of the session: it closes when it is idle for long, and opens again."""
    quarantine: str = ""
    """Why it does nothing until somebody resumes it."""
    paused_since: str = sparse("")
    """ISO time; empty for a session that is not paused."""
    paused_by: str = sparse("")
    paused_why: str = sparse("")
    stepping: bool = sparse(False)
    """A paused session is to take one step, or takes it now."""
    note: str = ""
    shutdown_interrupted: bool = sparse(False)
    """A worker was shut down in the midst of it, and no other has gone on with it yet."""
    left_by: str = sparse("")
    """That worker."""
    lacking: str = sparse("")
    """What the next step waits for: no worker that was asked has that tool, folder or middleware."""
    host_unavailable: str = sparse("")
    """The same of a workspace that lies on one host, which is away; it is waited for without end."""
    outage: Outage | None = sparse(None)
    """The model's provider is away, and the reply waits for it."""
    checkpoint_error: str = ""
    notify_error: str = ""
    """Why nobody could be told of a call that waits; it is tried again."""
    segments: tuple[Segment, ...] = ()
    """Where its older entries stand in the blob store."""
    path: str = sparse("")
    """`root › researcher`, of a sub-agent."""
    askers: tuple[Asker, ...] = sparse(())
    """Workflows of applications that wait for the end of a request here, and the newest that could not be told."""
    children: tuple[Child, ...] = sparse(())
    """Sub-agents that it has started, the oldest first: those at work, and the newest that have ended."""
    commands: tuple[BackgroundCommand, ...] = sparse(())
    """In the background, the oldest first: those that run, and the newest that have ended."""


class PendingHere(OpenValue):
    """What waits in one session, and which sub-agents may have more."""

    status: str
    """As `Status.status`."""
    calls: tuple[PendingCall, ...]
    children: tuple[Child, ...] = ()


class ReplyResult(OpenValue):
    """How one reply stands."""

    status: str
    """queued, working, waiting, finished, or unknown."""
    message: Msg | None = None
    complete: bool = True
    """False: `message` holds the last blocks only; the transcript has the rest."""
    start: int = sparse(0)
    """Numbers of its messages, the request's first: from, up to. Given when it is not complete."""
    end: int = sparse(0)
    delegates: bool = sparse(False)
    """Of one that is being made: sub-agents are at work. `message` is what there is of it."""
    lacking: str = sparse("")
    """Of one that is being made: what the workers lack that were asked for its next step, as `Status.lacking`."""


class Closed(OpenValue):
    """What a session answers that has closed of itself: the store holds all of it up to this entry."""

    seq: int
    incarnation: int
    report: ChildReport | None = sparse(None)
    """Of a sub-agent that closes with the end of its task."""
    answer: AskAnswer | None = sparse(None)
    """Of a session that closes with the end of a request by a workflow."""


class EventPage(OpenValue):
    """Durable events from one sequence number on, as many as fit."""

    events: tuple[AgentEvent, ...]
    last: int
    """Sequence number of the newest event that there is."""
    first: int = sparse(1)
    """Of the oldest one that the session still holds; earlier ones follow from the entries in its segments."""
    reply_id: str = sparse("")
    """Of the reply that is being made at this moment."""
    since: int = sparse(0)
    """When that reply began, in milliseconds since 1970; all that is made for it was asked for later."""
    model_calls: int = sparse(0)
    """Answered so far."""
    open_calls: tuple[str, ...] = sparse(())
    """Ids of the tool calls that have no result yet."""
