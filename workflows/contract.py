"""What both ends must agree on: names, the start input, the converter, the search attributes."""

from collections.abc import Mapping
from datetime import timedelta

from temporalio.common import SearchAttributeKey

from activities.contract import EntriesPage as EntriesPage
from activities.contract import MessagePage as MessagePage
from activities.contract import SnapshotPage as SnapshotPage
from activities.contract import TranscriptPage as TranscriptPage
from agent.carried import Carried
from agent.decided import DecisionMade
from agent.entries import AnyEntry, Segment
from agent.event import AgentEvent
from agent.messages import ErrorInfo, Msg
from agent.permission.rules import PermissionRule
from agent.preview import Preview
from agent.settings import AgentSpec
from agent.values import Guest, sparse
from workflows.converter import DATA_CONVERTER as DATA_CONVERTER
from workflows.converter import converter_with as converter_with
from workflows.converter import stored_in as stored_in

WORKFLOW = "AgentSession"
TASK_QUEUE = "longhaul"

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

TASK_TIMEOUT = timedelta(seconds=5)
"""Workflow task timeout: how long the server waits for a worker that died in the middle of deciding."""

REFUSED = "Refused"
"""Error type of an update that changed nothing; the message says why, and the first detail, if any, of which kind."""

PAGE_BYTES = 200_000
"""Query answers stay under it: above 256 KB each page would leave a blob behind."""


FORMAT = 2


class SessionStart(Guest):
    """Input of a session's first run, and of each run after a roll-over (then with `entries`)."""

    session_id: str
    user_id: str | None = sparse(None)
    spec: AgentSpec | None = sparse(None)
    search_attributes: bool = sparse(True)
    format: int = sparse(1)
    """As `entries.SessionOpened.format`; clients of this release start sessions of FORMAT."""
    carried: Carried | None = sparse(None)
    """What the run before left, from format 2 on."""
    entries: tuple[AnyEntry, ...] = sparse(())
    """Carried over; the first is SessionOpened."""


class PendingCall(Guest):
    """A call that waits for somebody."""

    reply_id: str
    call_id: str
    tool: str
    input: str
    """JSON arguments as they would run."""
    waits_for: str
    """`person`, `outside`, or `settlement`: it was started, and somebody has to say whether it happened."""
    reason: str = sparse("")
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
    digest: str = sparse("")
    """Names what is shown here; sent back with a decision, it makes the decision void when anything has changed."""
    approvers: int = sparse(1)
    """Different people who have to approve it."""
    approved_by: tuple[str, ...] = sparse(())
    """Who has; it still waits for the others."""
    signed: bool = sparse(False)
    """Only a signed decision counts."""
    preview: Preview | None = sparse(None)
    """What to show to whoever decides. None: of an earlier release's session whose tool is not known any more."""


class WaitingRequest(Guest):
    """A request that has not begun."""

    request_id: str
    reply_id: str
    when: str = "queue"
    """As it was asked for: `queue`, `now` or `interrupt`."""
    joins: bool = sparse(False)
    """It is told to the model in the reply that is being made, at the next step boundary."""


class Status(Guest):
    """One session at a glance."""

    session_id: str
    user_id: str | None
    agent: str
    model: str
    status: str
    """idle, working, waiting, paused."""
    reply_id: str = ""
    queued: int = 0
    requests: tuple[WaitingRequest, ...] = sparse(())
    """The first that wait, in their order."""
    pending: int = 0
    doubts: int = 0
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
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused: int = 0
    last_refusals: tuple[dict[str, str], ...] = ()
    decisions: tuple[DecisionMade, ...] = ()
    """The newest ones, oldest first."""
    filled: float = 0.0
    """Share of what a session can carry; at 1 it takes no more messages."""
    mode: str = ""
    tasks_done: int = sparse(0)
    tasks_total: int = sparse(0)
    current_task: str = sparse("")
    workspace_root: str = ""
    cwd: str = ""
    behaviour: int = 1
    last_error: ErrorInfo | None = None
    seq: int = 0
    """The newest entry that changed something: what `replace_state` expects."""
    saved_seq: int = 0
    """The state as of this entry stands in the state store."""
    generation: int = 1
    """Lives of the session: it closes when it is idle for long, and opens again."""
    hold: str = ""
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
    checkpoint_error: str = ""
    notify_error: str = ""
    """Why nobody could be told of a call that waits; it is tried again."""
    segments: tuple[Segment, ...] = ()
    """Where its older entries stand in the blob store."""


class ReplyResult(Guest):
    """How one reply stands."""

    status: str
    """queued, working, waiting, finished, or unknown."""
    message: Msg | None = None
    complete: bool = True
    """False: `message` holds the last blocks only; the transcript has the rest."""
    start: int = sparse(0)
    """Numbers of its messages, the request's first: from, up to. Given when it is not complete."""
    end: int = sparse(0)


class Closed(Guest):
    """What a session answers that has closed of itself: the store holds all of it up to this entry."""

    seq: int
    generation: int


class EventPage(Guest):
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
