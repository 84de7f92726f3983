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
    """A worker that has asked for work lately; one that was killed stays for a minute."""

    name: str
    """Its process and host."""
    seen_at: str
    build: str
    """Empty where workers are not versioned."""
    store: str
    """The kind of store in which it keeps sessions; empty for a worker that does not say."""
    blobs: str
    """The same of large values."""


class VersionRow(BaseModel):
    """A build of the deployment's workers."""

    model_config = ConfigDict(from_attributes=True)

    build: str
    status: str
    """current: sessions go to it; ramping, draining, drained, inactive."""
    sessions: int
    """Open ones whose last step it made."""


class Workers(BaseModel):
    """Who works for the sessions here."""

    task_queue: str
    workers: tuple[WorkerRow, ...]
    deployment: str
    """Empty where workers are not versioned."""
    versions: tuple[VersionRow, ...]


class Taken(BaseModel):
    """A message that was taken; `message` is there when the reply has ended, or waits for somebody."""

    reply_id: str
    status: str
    """queued, working, waiting or finished."""
    message: Msg | None = None


class Row(BaseModel):
    """One session, as the index knows it: `title` is how the request begins that it was started with."""

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


class Rows(BaseModel):
    """Sessions that were asked for, newest first."""

    sessions: tuple[Row, ...]
    total: int
    """With those that stand on other pages."""
    note: str = ""
    """Where there are none: whose sessions this token does not see."""


class StandingBody(BaseModel):
    """Counts of open sessions, sub-agents among them; null where the server's index does not tell."""

    working: int | None = None
    waiting: int | None = None
    """For somebody: a session that only sleeps is not among them."""
    asleep: int | None = None
    paused: int | None = None


class LastDayBody(BaseModel):
    """The sessions whose newest run began in the last 24 hours; `sessions` is null where the index does not tell."""

    sessions: int | None = None
    tokens: int = 0
    dollars: float = 0.0
    """0 where no budget of money makes workers know the prices."""
    failed: int | None = None
    """Sessions that ended as failed or timed out in that time."""


class Asked(BaseModel):
    """A call that waits, and where."""

    session: Row
    call: PendingCall
    root: Row | None = None
    """Of a sub-agent's call: the session at the head of its tree, while that is open. It is answered in `session`."""


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
    """Everything that waits for somebody, the longest waiting first."""

    calls: tuple[Asked, ...]
    silent: tuple[Row, ...]
    """Sessions that did not say what they wait for: their workers may be gone."""
    quarantined: tuple[Quarantined, ...]
    paused: tuple[Resting, ...]
    """Calls that wait in them are among the calls."""
    note: str = ""
    """Where there is nothing: whose sessions this token does not see."""


class Calls(BaseModel):
    """Calls of this session that wait."""

    calls: tuple[PendingCall, ...]


class Page(BaseModel):
    """Messages from number `start` on; `next` is where the following page begins, or null at the end."""

    start: int
    next: int | None
    messages: tuple[Msg, ...]


class Steps(BaseModel):
    """Events of a session from number `start` on, as messages, actions, observations and condensations."""

    start: int
    next: int | None
    """Where the following page begins; null at the end."""
    entry: int | None = None
    """Of the following page, where the request has named one: `next` counts from there."""
    events: tuple[TrajectoryEvent, ...]


class RunBody(BaseModel):
    """What took time in a session: what has ended in that order, then what lasts."""

    spans: tuple[Span, ...]


class StateBody(BaseModel):
    """AgentState with the version of its form: what `POST …/state` takes, and any session can begin with."""

    model_config = ConfigDict(extra="allow")

    version: int
    session_id: str


class Copied(BaseModel):
    """The new session."""

    session_id: str
    files: str
    """What became of the files of the first one."""


class Tools(BaseModel):
    """The tools of this session, as they were when its newest reply was prepared; none before its first."""

    tools: tuple[ToolDescriptor, ...]


class Tasks(BaseModel):
    """The list that the model keeps."""

    tasks: tuple[Task, ...]


class RulesBody(BaseModel):
    """What holds in this session, and in all sessions of its user and agent."""

    rules: tuple[PermissionRule, ...]


class Decided(BaseModel):
    """Taken; the session goes on as soon as a worker is there."""

    call_id: str
    decision: Literal["allow", "deny"]
    approvals: str
    """`1 of 2` for an approval that another person's has to follow; else empty."""


class DecidedAll(BaseModel):
    """Taken; the session goes on as soon as a worker is there."""

    call_ids: tuple[str, ...]
    decision: Literal["allow", "deny"]
