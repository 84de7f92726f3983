"""What requests hold and answers give, where it is not what sessions themselves take and give."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent.bodies import ExternalResultItem, Observe, Submit
from agent.messages import Msg
from agent.permission.rules import PermissionRule
from agent.upkeep_bodies import Rules
from agent.values import Value
from starter.cards import SessionCard
from workflows.contract import PendingCall

LONGEST_WAIT_SECONDS = 60
MOST_MESSAGES = 500


class Whose(Value):
    """Whose session is meant; for tokens with the scope `admin`, and where there are no tokens."""

    user: str | None = Field(default=None, description="Another user's session; wants the scope `admin`")
    anonymous: bool = Field(default=False, description="One that belongs to nobody; wants the scope `admin`")


class Waiting(Whose):
    wait: float = Field(
        default=0, ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for the reply; 0 answers at once"
    )


class Paging(Whose):
    start: int = Field(default=0, ge=0, le=2**31, alias="from", description="Number of the first message")
    limit: int = Field(default=100, ge=1, le=MOST_MESSAGES)


class Reading(Whose):
    start: int = Field(
        default=1, ge=1, le=2**31, alias="from", description="Number of the first event; Last-Event-ID goes before it"
    )
    deltas: bool = Field(default=False, description="Also what is being made, piece by piece, in events without id")
    until: str | None = Field(default=None, description="A reply id: the stream ends after that reply's REPLY_END")


class Listing(Whose):
    status: Literal["idle", "working", "waiting"] | None = None
    session: str | None = None


class Sorting(Whose):
    team: str | None = None
    tool: str | None = None
    overdue: bool = False


class Nothing(Value):
    """No query, or no body."""


def _as_sent(schema: dict[str, Any]) -> None:
    """Text alone, or one message, will do too."""
    several = schema["properties"]["messages"]
    one = several["items"]
    schema["properties"]["messages"] = {"anyOf": [{"type": "string"}, one, several], "title": "Messages"}


class Message(Submit):
    """Ask for a reply. Without messages the agent goes on from where it stands."""

    model_config = ConfigDict(json_schema_extra=_as_sent)


class Observation(Observe):
    """Add to the context without asking for a reply."""

    model_config = ConfigDict(json_schema_extra=_as_sent)


class Decision(Value):
    """On one call that waits for a person. `rules`: true takes all that were suggested, a list takes those of them."""

    call_id: str
    decision: Literal["allow", "deny"]
    reason: str = Field(default="", max_length=20_000)
    input: dict[str, Any] | str | None = None
    """Other arguments than the model's."""
    rules: bool | Rules = ()
    digest: str | None = None
    """Of what was looked at, as `pending` shows it. To allow, it is needed."""


class Results(Value):
    """Of external tools. Each is handed in by itself, in this order; the first that is refused ends it."""

    results: tuple[ExternalResultItem, ...] = Field(min_length=1, max_length=100)


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class Taken(BaseModel):
    """A message that was taken; `message` is there when the reply has ended, or waits for somebody."""

    reply_id: str
    status: str
    """queued, working, waiting or finished."""
    message: Msg | None = None


class Row(BaseModel):
    """One session, as the index knows it."""

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

    @classmethod
    def of(cls, card: SessionCard) -> "Row":
        return cls.model_validate(card)


class Rows(BaseModel):
    sessions: tuple[Row, ...]


class Asked(BaseModel):
    """A call that waits, and where."""

    session: Row
    call: PendingCall


class Held(BaseModel):
    """A session that does nothing until somebody resumes it, and why."""

    session: Row
    hold: str


class InboxBody(BaseModel):
    calls: tuple[Asked, ...]
    silent: tuple[Row, ...]
    """Sessions that did not say what they wait for: their workers may be gone."""
    held: tuple[Held, ...]


class Calls(BaseModel):
    calls: tuple[PendingCall, ...]


class Page(BaseModel):
    """Messages from number `start` on; `next` is where the following page begins, or null at the end."""

    start: int
    next: int | None
    messages: tuple[Msg, ...]


class RulesBody(BaseModel):
    rules: tuple[PermissionRule, ...]


class Added(BaseModel):
    added: tuple[str, ...]
    """Ids of the new rules."""


class Decided(BaseModel):
    call_id: str
    decision: Literal["allow", "deny"]
    approvals: str
    """`1 of 2` for an approval that another person's has to follow; else empty."""


class Interrupted(BaseModel):
    interrupted: str
    """Id of the reply that was ended."""


class Paused(BaseModel):
    was_paused: bool
    """True: it was paused already."""


class Stepping(BaseModel):
    was_stepping: bool
    """True: it takes a step already, and no further one."""


class Compacted(BaseModel):
    compacted: bool
    """False: the context is below its threshold and stays as it is."""
