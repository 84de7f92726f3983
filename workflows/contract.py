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
    """A model provider that is unavailable and that the session waits for. Times are ISO 8601 in UTC."""

    why: str
    attempt: int
    """Number of the newest attempt that has failed, as far as it is known."""
    next_try: str
    until: str
    """When Longhaul stops waiting, and the reply ends as failed."""

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
    """A member as the hub's `show` lists it."""

    name: str
    session_id: str
    agent: str
    heard: int
    """Number of the newest message that the member has received."""
    leaving: bool = sparse(False)


class HubCard(OpenValue):
    """A hub as `show` describes it."""

    name: str
    user_id: str | None = sparse(None)
    auto_broadcast: bool = True
    members: tuple[HubMember, ...] = ()
    number: int = 0
    """Number of the newest message in the hub."""
    waiting: int = 0
    """Messages that some member has not received yet."""
    newest: tuple[HubShown, ...] = ()
    """The newest messages, the oldest first."""
    notes: tuple[str, ...] = ()
    """Members that were put out, and why."""


class SubAgentPlace(OpenValue):
    """Where a sub-agent's session is."""

    session_id: str
    agent: str
    workflow_id: str


class PendingCall(OpenValue):
    """A call that waits for somebody."""

    reply_id: str
    call_id: str
    tool: str
    input: str
    """The arguments as JSON, as they would run."""
    waits_for: str
    """`person`: waits for an approval. `outside`: waits for the result of an external tool. `resolution`: the outcome
    is unknown, and somebody has to resolve it. `event`: sleeps until `wakes_at`, or until somebody sends its `event`.
    `budget`: no call; the reply needs more than the session may spend."""
    reason: str = sparse("")
    risk: str = sparse("")
    """Risk that an analyzer found: low, medium, high or unknown. Empty: no analyzer looked."""
    notice: str = sparse("")
    """What to look at besides the arguments, such as the diff of an edit."""
    suggested_rules: tuple[PermissionRule, ...] = sparse(())
    asked_at: str = sparse("")
    remind_at: str = sparse("")
    escalate_at: str = sparse("")
    escalate_to: str = sparse("")
    expires_at: str = sparse("")
    on_expiry: str = sparse("")
    """What happens when the call expires: `deny` or `park`."""
    reminded_at: str = sparse("")
    escalated_at: str = sparse("")
    expired_at: str = sparse("")
    """When the call expired. It was parked, so it still waits."""
    wakes_at: str = sparse("")
    event: str = sparse("")
    digest: str = sparse("")
    """Digest of what is shown here. Send it with a decision; the decision is void if anything has changed."""
    approvers: int = sparse(1)
    """How many different people must approve the call."""
    approved_by: tuple[str, ...] = sparse(())
    """People who have approved. The call still waits for the others."""
    signed: bool = sparse(False)
    """The call needs a signed decision."""
    preview: Preview | None = sparse(None)
    """What to show to the person who decides. None: its tool is no longer known, or the call ran and its outcome is
    unknown."""
    asked: ServerAsked | None = sparse(None)
    """Questions of the call's MCP server, with the schema of each answer. `reason` has them in words."""
    path: str = sparse("")
    """Whose call it is, for a call of a sub-agent: `root › researcher › Bash`."""
    at: SubAgentPlace | None = sparse(None)
    """Session in which the call waits, if a session above lists it. None: the listing session itself."""


class Waits(OpenValue):
    """What a session waits for, for lists that do not ask the session."""

    calls: tuple[PendingCall, ...] = sparse(())
    """The first waiting calls, as many as fit."""
    left_out: int = sparse(0)
    """Number of further waiting calls."""
    quarantine: str = sparse("")
    paused_since: str = sparse("")
    paused_by: str = sparse("")
    paused_why: str = sparse("")
    """These four fields are as in `Status`."""
    host_unavailable: str = sparse("")
    """Why nothing moves: the host of the session's workspace is unavailable."""


class WaitingRequest(OpenValue):
    """A request that has not started."""

    request_id: str
    reply_id: str
    when: str = "queue"
    """As the request was sent: `queue`, `now` or `interrupt`."""
    joins: bool = sparse(False)
    """The message joins the current reply at its next step boundary."""
    text: str = sparse("")
    """The beginning of the request, on one line. Empty: the request continues without a new message."""


class Status(OpenValue):
    """One session at a glance."""

    session_id: str
    user_id: str | None
    agent: str
    custom_agent: str = sparse("")
    """Name of the custom agent that makes the replies. Empty: a model makes them."""
    model: str
    status: str
    """`idle`, `working`, `waiting` or `paused`."""
    priority: int | None = sparse(None)
    """Order in which its waiting tasks go to a worker: priority 1 first, 5 last. None: nobody has set one, so 3."""
    reply_id: str = ""
    queued: int = 0
    requests: tuple[WaitingRequest, ...] = sparse(())
    """The first waiting requests, in order."""
    pending: int = 0
    unknown_outcomes: int = 0
    """Number of calls of unknown outcome."""
    messages: int = 0
    context_tokens: int = 0
    """Tokens of the next model call's whole input: counted, then corrected by what the provider reported."""
    context_length: int = 0
    """Size of the model's window in tokens. 0: not known yet."""
    compressions: int = 0
    compression_tries: int = 0
    """Attempts to compress the context, failed ones included."""
    compressing: bool = False
    """Somebody asked for a shorter context, and the compression has not happened yet."""
    compression_error: str = ""
    """Why the last compression failed. Empty: it worked."""
    adjusted: dict[str, tuple[str, ...]] = sparse({})
    """What the models' APIs could not express of the requests: the newest sentences by model name, each once."""
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    by_model: dict[str, ModelSpent] = sparse({})
    """What each model used, by the name under which the model answers."""
    cache_missed: dict[MissReason, Missed] = sparse({})
    """What the providers' prompt caches should have served but did not, by reason."""
    lost: ModelSpent = sparse(NOTHING_SPENT)
    """What the provider may have billed for attempts that broke off or were lost with their worker. Estimated, and not
    part of the counts above."""
    tokens_estimated: bool = sparse(False)
    """The provider did not report all tokens; workers counted the rest."""
    budget: BudgetStanding | None = sparse(None)
    """What the session may spend, has spent and has left. None: no budget."""
    refused: int = 0
    last_refusals: tuple[dict[str, str], ...] = ()
    decisions: tuple[DecisionMade, ...] = ()
    """The newest decisions, the oldest first."""
    mode: str = ""
    tasks_done: int = sparse(0)
    tasks_total: int = sparse(0)
    current_task: str = sparse("")
    plan: PlanStanding | None = sparse(None)
    """The plan that the agent follows. Its subtasks are the tasks above."""
    plans_over: tuple[PlanStanding, ...] = sparse(())
    """The newest plans that are over, the newest last."""
    workspace_root: str = ""
    left_out: tuple[str, ...] = sparse(())
    """A sentence for each of the workspace's skills and instruction files that the newest reply leaves out, or reads
    differently from how it is written."""
    cwd: str = ""
    behaviour: int = 1
    """Version of the rules that the current reply follows."""
    last_error: ErrorInfo | None = None
    seq: int = 0
    """Number of the newest entry that changed something. `replace_state` expects it."""
    saved_seq: int = 0
    """The state store has the state as of this entry."""
    incarnation: int = 1
    """Number of the session's incarnation. A session closes when it is idle for long, and opens again."""
    quarantine: str = ""
    """Why the session is quarantined: it does nothing until somebody resumes it. Empty: it is not."""
    paused_since: str = sparse("")
    """ISO time since which the session is paused. Empty: it is not."""
    paused_by: str = sparse("")
    paused_why: str = sparse("")
    stepping: bool = sparse(False)
    """A paused session takes one step, or is about to."""
    note: str = ""
    shutdown_interrupted: bool = sparse(False)
    """A worker shut down during a step, and no other worker has continued yet."""
    left_by: str = sparse("")
    """Name of that worker."""
    lacking: str = sparse("")
    """What the next step waits for: no worker that was asked has this tool, folder or middleware."""
    host_unavailable: str = sparse("")
    """The unavailable host of the session's workspace. The session waits for it without limit."""
    outage: Outage | None = sparse(None)
    """The model's provider is unavailable, and the reply waits for it."""
    checkpoint_error: str = ""
    notify_error: str = ""
    """Why nobody could be notified of a waiting call. Longhaul tries again."""
    segments: tuple[Segment, ...] = ()
    """Where the blob store has the session's older entries."""
    path: str = sparse("")
    """Place of a sub-agent in its tree: `root › researcher`."""
    askers: tuple[Asker, ...] = sparse(())
    """Workflows that wait for the end of a request here, and the newest that could not be told."""
    children: tuple[Child, ...] = sparse(())
    """Sub-agents that the session started, the oldest first: all that work, and the newest that have ended."""
    commands: tuple[BackgroundCommand, ...] = sparse(())
    """Background commands, the oldest first: all that run, and the newest that have ended."""


class PendingHere(OpenValue):
    """What waits in one session, and which of its sub-agents may have more."""

    status: str
    """As `Status.status`."""
    calls: tuple[PendingCall, ...]
    children: tuple[Child, ...] = ()
    delegates: bool = sparse(False)
    """As `ReplyResult.delegates`."""


class ReplyResult(OpenValue):
    """The state of one reply."""

    status: str
    """`queued`, `working`, `waiting`, `finished` or `unknown`."""
    message: Msg | None = None
    complete: bool = True
    """False: `message` has only the last blocks; the transcript has the rest."""
    start: int = sparse(0)
    """Numbers of the reply's messages in the transcript: from `start`, the request, up to `end`. Given if the reply is
    not complete."""
    end: int = sparse(0)
    delegates: bool = sparse(False)
    """The reply under way goes on only when sub-agents end. `message` has what there is so far."""
    lacking: str = sparse("")
    """What the asked workers lack for the next step of a reply under way, as `Status.lacking`."""


class Closed(OpenValue):
    """What a session answers that has closed of itself: the store holds all of it up to this entry."""

    seq: int
    incarnation: int
    report: ChildReport | None = sparse(None)
    """Of a sub-agent that closes with the end of its task."""
    answer: AskAnswer | None = sparse(None)
    """Of a session that closes with the end of a request by a workflow."""


class EventPage(OpenValue):
    """Recorded events from one sequence number on, as many as fit."""

    events: tuple[AgentEvent, ...]
    last: int
    """Sequence number of the newest event."""
    first: int = sparse(1)
    """Sequence number of the oldest event that the session still holds. Earlier events come from its segments."""
    reply_id: str = sparse("")
    """Id of the reply that is under way."""
    since: int = sparse(0)
    """When that reply started, in milliseconds since 1970. Everything made for it was asked for later."""
    model_calls: int = sparse(0)
    """Model calls of that reply so far."""
    open_calls: tuple[str, ...] = sparse(())
    """Ids of tool calls without a result."""
