"""Bodies of requests, where they are not what sessions themselves take."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from longhaul.agent.operations.bodies import Binding, ExternalResultItem, Rules
from longhaul.agent.plain.ids import check_name
from longhaul.agent.plain.values import Many, Value, sparse
from longhaul.agent.views.trajectory import Kind

LONGEST_WAIT_SECONDS = 60
MOST_MESSAGES = 500
MOST_SESSIONS = 1_000


def _can_be(name: str) -> str:
    check_name("it", name)
    return name


Name = Annotated[str, AfterValidator(_can_be)]
"""Of a user, an agent or a session."""


class Whose(Value):
    """Whose session is meant; for tokens with the scope `admin`, and where there are no tokens."""

    user: Name | None = Field(
        default=None, description="Another user's session: one of the token's users, or with the scope `admin` anybody"
    )
    anonymous: bool = Field(default=False, description="A session without a user; needs the scope `admin`")


class Starting(Whose):
    workspace: str | None = Field(
        default=None,
        max_length=4_000,
        description="Absolute path of a folder that the workers see: a new session works there, and not in "
        "that of its agent's file; needs the scope `admin`",
    )
    priority: int | None = Field(
        default=None,
        ge=1,
        le=5,
        description="Of a new session, in place of that of its agent's file: where work waits for workers, 1 goes "
        "first, 5 last; needs the scope `admin`",
    )


class Requesting(Starting):
    wait: float = Field(
        default=0, ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for the reply; 0 answers at once"
    )


class Paging(Whose):
    start: int = Field(default=0, ge=0, le=2**31, alias="from", description="Number of the first message")
    limit: int = Field(default=100, ge=1, le=MOST_MESSAGES, description="How many at most")


class StepPaging(Paging):
    start: int = Field(default=0, ge=0, le=2**31, alias="from", description="Number of steps to skip")
    entry: int | None = Field(default=None, ge=1, le=2**31, description="Start at this entry, by `seq`")
    kind: Kind | None = Field(default=None, description="Only steps of this kind")


class FromEntry(Whose):
    entry: int = Field(default=1, ge=1, le=2**31, description="Begin at this entry, by `seq`")


class Reading(Whose):
    start: int = Field(
        default=1, ge=1, le=2**31, alias="from", description="Number of the first event; Last-Event-ID goes before it"
    )
    deltas: bool = Field(default=False, description="Also deltas while they are written, as events without id")
    until: str | None = Field(
        default=None, description="A reply id: the stream ends when that reply has ended, or with what it waits for"
    )


class Listing(Whose):
    status: Literal["idle", "working", "waiting", "paused", "closed"] | None = Field(
        default=None, description="Sessions with this status; without it, all open sessions"
    )
    session: str | None = Field(default=None, description="Sessions of this name")
    agent: str | None = Field(default=None, description="Sessions of this agent")
    text: str = Field(
        default="", max_length=200, description="Part of the name, agent, user or waiting tools; case does not count"
    )
    sort: Literal["newest", "oldest", "waiting", "cost"] = Field(
        default="newest", description="Order: started last or first, waiting longest, highest cost"
    )
    start: int = Field(default=0, ge=0, le=2**31, alias="from", description="Number of the first to skip")
    limit: int | None = Field(default=None, ge=1, le=MOST_SESSIONS, description="How many at most; else all")


class Sorting(Whose):
    team: str | None = Field(default=None, description="Of agents with this `team`")
    tool: str | None = Field(default=None, description="Calls of this tool")
    overdue: bool = Field(default=False, description="Reminded of, escalated or expired")
    text: str = Field(
        default="", max_length=200, description="Part of the tool, its arguments, the session, agent or user"
    )
    sort: Literal["oldest", "newest", "risk", "deadline"] = Field(
        default="oldest", description="What comes first: waits longest or shortest, the highest risk, the next deadline"
    )


class Remembering(Whose):
    agent: str | None = Field(default=None, max_length=200, description="Only what this agent has written")
    query: str = Field(default="", max_length=8_000, description="What to search for; without it, the newest")
    limit: int = Field(default=50, ge=1, le=1_000, description="How many at most")


class Shelf(Value):
    """Documents, of one base or of all."""

    base: str | None = Field(default=None, max_length=100, description="Only documents of this base")


class Looking(Value):
    """What is looked for in a base."""

    base: str = Field(default="", max_length=100, description="The base, as agents name it")
    query: str = Field(default="", max_length=8_000, description="What an agent would ask")
    limit: int = Field(default=5, ge=1, le=50, description="How many at most")


class Forgetting(Value):
    """Delete memories for good: those of these ids, or with `all` every one of the user's, or of that agent's."""

    ids: Many[Annotated[str, Field(max_length=200)]] = sparse((), max_length=1_000)
    """As the list has them."""
    all: bool = False
    """In place of ids."""
    agent: str | None = Field(default=None, max_length=200)
    """With `all`: only what this one has written down."""

    @model_validator(mode="after")
    def _say_which(self) -> "Forgetting":
        if self.all == bool(self.ids) or (self.agent is not None and not self.all):
            raise ValueError('send the ids of some, or "all": true, with an agent or without')
        return self


class Discarding(Value):
    """Take documents out of a base for good: these, or with `all` the whole base."""

    base: str = Field(min_length=1, max_length=100)
    """As agents name it."""
    documents: Many[Annotated[str, Field(max_length=4_000)]] = sparse((), max_length=1_000)
    """As the list has them."""
    all: bool = False
    """In place of documents."""

    @model_validator(mode="after")
    def _say_which(self) -> "Discarding":
        if self.all == bool(self.documents):
            raise ValueError('send the names of documents, or "all": true')
        return self


class Nothing(Value):
    """No query, or no body."""


class Decision(Value):
    """On one call that waits for a person. `rules`: true takes all that were suggested, a list takes those of them."""

    call_id: Binding
    """As `pending` names it."""
    decision: Literal["allow", "deny"]
    """Whether it may run."""
    reason: str = Field(default="", max_length=20_000)
    """Of a denial; the model reads it."""
    input: dict[str, Any] | str | None = None
    """Other arguments than the model's."""
    rules: bool | Rules = ()
    """Suggested ones, to take along for later calls."""
    digest: Binding | None = None
    """Of what was looked at, as `pending` shows it. To allow, it is needed."""


class SeenCall(Value):
    """A call that somebody has looked at."""

    call_id: Binding
    """As `pending` names it."""
    digest: Binding
    """Of what was looked at, as `pending` shows it."""


class Decisions(Value):
    """The same decision on several calls that wait for a person: on all of them, or on none."""

    calls: tuple[SeenCall, ...] = Field(min_length=1, max_length=100)
    """Those that were looked at. What has a high risk, needs several approvers or a signature is decided by itself."""
    decision: Literal["allow", "deny"]
    """Whether they may run."""
    reason: str = Field(default="", max_length=20_000)
    """Of a denial; the model reads it."""


class Edits(Value):
    """Values for places of the state of a session that is idle or waits: all of them, or none."""

    changes: dict[str, Any] = Field(min_length=1, max_length=100)
    """By path, as in `context[3].content[0].text`."""
    why: str = Field(default="", max_length=20_000)
    """For the record."""


class Copy(Value):
    """Begin another session of the same user and agent from this one's state. Nothing is done a second time."""

    session: Name = Field(min_length=1)
    """Its name."""
    at: int | None = Field(default=None, ge=1, le=2**31)
    """After this model call and its results; default: now."""
    entry: int | None = Field(default=None, ge=1, le=2**31)
    """In place of `at`: after the step that this entry belongs to, by the `seq` of the history."""


class Results(Value):
    """Of external tools. Each is handed in by itself, in this order; the first that is refused ends it."""

    results: tuple[ExternalResultItem, ...] = Field(min_length=1, max_length=100)
    """One a call, or a piece of one."""
