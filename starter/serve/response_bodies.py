"""Bodies of answers, where they are not what sessions themselves give."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.tasks import Task
from longhaul.agent.views.run_spans import Span
from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.starter.client.cards import SessionCard
from longhaul.workflows.contract import PendingCall


class Alive(BaseModel):
    """It does."""

    status: Literal["ok"] = "ok"


class WorkerRow(BaseModel):
    """A worker that has recently polled. A killed worker stays listed for a minute."""

    name: str
    """Process and host of the worker."""
    seen_at: str
    build: str
    """Build of the worker. Empty: workers are not versioned."""
    store: str
    """Type of the worker's state store. Empty: the worker does not say."""
    blobs: str
    """Type of the worker's blob store. Empty: the worker does not say."""


class VersionRow(BaseModel):
    """A build of the deployment's workers."""

    model_config = ConfigDict(from_attributes=True)

    build: str
    status: str
    """`current`: new sessions go to this build. Or `ramping`, `draining`, `drained`, `inactive`."""
    sessions: int
    """Open sessions whose last step this build made."""


class Workers(BaseModel):
    """The workers of the sessions here."""

    task_queue: str
    workers: tuple[WorkerRow, ...]
    deployment: str
    """Name of the deployment. Empty: workers are not versioned."""
    versions: tuple[VersionRow, ...]


class Taken(BaseModel):
    """A message was accepted. `message` is there if the reply has ended or waits for somebody."""

    reply_id: str
    status: str
    """`queued`, `working`, `waiting` or `finished`."""
    message: Msg | None = None


class Row(BaseModel):
    """One session, as the server's index knows it. `title` is the beginning of the request that started the session."""

    model_config = ConfigDict(from_attributes=True)

    session_id: str
    user_id: str | None
    agent: str
    status: str
    started_at: str
    waiting_since: str
    waiting_tools: tuple[str, ...]
    team: str
    risk: str
    deadline: str
    title: str
    tokens: int
    dollars: float

    @classmethod
    def of(cls, card: SessionCard) -> "Row":
        return cls.model_validate(card)


class LeadName(BaseModel):
    """The session that started a sub-agent."""

    agent: str
    session_id: str


class ListedRow(Row):
    """A session in a list, with its place in the tree of sub-agents."""

    lead: LeadName | None = None
    """For a sub-agent: its lead, if that matches the request too, also on another page."""
    asks_below: bool = False
    """A sub-agent of this session waits for somebody."""


class Rows(BaseModel):
    """Sessions that match the request, newest first."""

    sessions: tuple[ListedRow, ...]
    total: int
    """Number of matching sessions, those on other pages included."""
    note: str = ""
    """If no session is listed: whose sessions this token can't see."""


class StandingBody(BaseModel):
    """Counts of open sessions, sub-agents included. Null: the server's index can't tell."""

    working: int | None = None
    waiting: int | None = None
    """Sessions that wait for somebody. Sessions that only sleep are not counted."""
    asleep: int | None = None
    paused: int | None = None


class LastDayBody(BaseModel):
    """The sessions whose newest run started in the last 24 hours. `sessions` is null if the index can't tell."""

    sessions: int | None = None
    tokens: int = 0
    dollars: float = 0.0
    """Cost in US dollars; 0 if no budget in money makes workers know the prices."""
    failed: int | None = None
    """Sessions that ended as failed or timed out in that time."""


class Asked(BaseModel):
    """A waiting call, and its session."""

    session: Row
    call: PendingCall
    root: Row | None = None
    """For a sub-agent's call: the session at the root of its tree, if that is open. Answer the call in `session`."""


class Quarantined(BaseModel):
    """A session that does nothing until somebody resumes it, and why."""

    session: Row
    quarantine: str


class Resting(BaseModel):
    """A session that somebody has paused."""

    session: Row
    paused_since: str
    paused_by: str
    paused_why: str


class InboxBody(BaseModel):
    """All calls that wait for somebody, the longest waiting first, and sessions that somebody has to look at."""

    calls: tuple[Asked, ...]
    silent: tuple[Row, ...]
    """Sessions that did not say what they wait for. Their workers may be gone."""
    quarantined: tuple[Quarantined, ...]
    paused: tuple[Resting, ...]
    """Paused sessions. Their waiting calls are among the calls."""
    note: str = ""
    """If nothing is listed: whose sessions this token can't see."""


class Calls(BaseModel):
    """Waiting calls of this session."""

    calls: tuple[PendingCall, ...]


class Page(BaseModel):
    """Messages from number `start` on. `next` is the start of the next page, or null at the end."""

    start: int
    next: int | None
    messages: tuple[Msg, ...]


class Steps(BaseModel):
    """Events of a session from number `start` on, as messages, actions, observations and condensations."""

    start: int
    next: int | None
    """Start of the next page; null at the end."""
    entry: int | None = None
    """Entry of the next page, if the request named an entry. `next` counts from there."""
    events: tuple[TrajectoryEvent, ...]


class RunBody(BaseModel):
    """What took time in a session: first what has ended, in order, then what still runs."""

    spans: tuple[Span, ...]


class StateBody(BaseModel):
    """AgentState with its format version. `POST …/state` accepts it, and any session can start with it."""

    model_config = ConfigDict(extra="allow")

    version: int
    session_id: str


class Copied(BaseModel):
    """The new session."""

    session_id: str
    files: str
    """What happened to the files of the copied session."""


class Tools(BaseModel):
    """The session's tools, as of its newest prepared reply. Empty before the first reply."""

    tools: tuple[ToolDescriptor, ...]


class Tasks(BaseModel):
    """The task list that the model keeps."""

    tasks: tuple[Task, ...]


class RulesBody(BaseModel):
    """The rules that count in this session, and in all sessions of its user and agent."""

    rules: tuple[PermissionRule, ...]


class Decided(BaseModel):
    """The decision was accepted. The session continues as soon as a worker is there."""

    call_id: str
    decision: Literal["allow", "deny"]
    approvals: str
    """`1 of 2` if the call needs another person's approval too; else empty."""


class DecidedAll(BaseModel):
    """The decisions were accepted. The session continues as soon as a worker is there."""

    call_ids: tuple[str, ...]
    decision: Literal["allow", "deny"]
