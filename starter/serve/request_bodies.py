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
    """User whose session is meant. For tokens with the scope `admin`, and for a server without tokens."""

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
    """Documents of one knowledge base, or of all."""

    base: str | None = Field(default=None, max_length=100, description="Only documents of this base")


class Looking(Value):
    """What to search for in a knowledge base."""

    base: str = Field(default="", max_length=100, description="The base, as agents name it")
    query: str = Field(default="", max_length=8_000, description="What an agent would ask")
    limit: int = Field(default=5, ge=1, le=50, description="How many at most")


class Forgetting(Value):
    """Delete memories for good: those with these ids, or with `all` every memory of the user, or of one agent."""

    ids: Many[Annotated[str, Field(max_length=200)]] = sparse((), max_length=1_000)
    """Ids, as the list has them."""
    all: bool = False
    """Delete all, instead of `ids`."""
    agent: str | None = Field(default=None, max_length=200)
    """With `all`: only memories that this agent has stored."""

    @model_validator(mode="after")
    def _say_which(self) -> "Forgetting":
        if self.all == bool(self.ids) or (self.agent is not None and not self.all):
            raise ValueError('send the ids of some, or "all": true, with an agent or without')
        return self


class Discarding(Value):
    """Delete documents of a knowledge base for good: these, or with `all` the whole base."""

    base: str = Field(min_length=1, max_length=100)
    """Name of the base, as agents use it."""
    documents: Many[Annotated[str, Field(max_length=4_000)]] = sparse((), max_length=1_000)
    """Names of documents, as the list has them."""
    all: bool = False
    """Delete the whole base, instead of `documents`."""

    @model_validator(mode="after")
    def _say_which(self) -> "Discarding":
        if self.all == bool(self.documents):
            raise ValueError('send the names of documents, or "all": true')
        return self


class Nothing(Value):
    """No query, or no body."""


class Decision(Value):
    """A decision on one call that waits for a person. `rules`: true adds all suggested rules, a list adds those in the
    list."""

    call_id: Binding
    """Id of the call, as `pending` has it."""
    decision: Literal["allow", "deny"]
    """Whether it may run."""
    reason: str = Field(default="", max_length=20_000)
    """Reason for a denial; the model reads it."""
    input: dict[str, Any] | str | None = None
    """Arguments that replace the model's."""
    rules: bool | Rules = ()
    """Suggested rules to add for later calls."""
    digest: Binding | None = None
    """Digest of what the person saw, as `pending` has it. Needed to allow."""


class SeenCall(Value):
    """A call that a person has looked at."""

    call_id: Binding
    """Id of the call, as `pending` has it."""
    digest: Binding
    """Digest of what the person saw, as `pending` has it."""


class Decisions(Value):
    """The same decision on several calls that wait for a person. It counts for all of them, or for none."""

    calls: tuple[SeenCall, ...] = Field(min_length=1, max_length=100)
    """Calls that the person has looked at. A call that has a high risk, or needs several approvers or a signature, must
    be decided alone."""
    decision: Literal["allow", "deny"]
    """Whether they may run."""
    reason: str = Field(default="", max_length=20_000)
    """Reason for a denial; the model reads it."""


class Edits(Value):
    """New values for places of the state of a session that is idle or waits. All are set, or none."""

    changes: dict[str, Any] = Field(min_length=1, max_length=100)
    """New values by path, as in `context[3].content[0].text`."""
    why: str = Field(default="", max_length=20_000)
    """Reason, which is recorded."""


class Copy(Value):
    """Start another session of the same user and agent from this session's state. Nothing runs a second time."""

    session: Name = Field(min_length=1)
    """Name of the new session."""
    at: int | None = Field(default=None, ge=1, le=2**31)
    """Copy the state after this model call and its results. Default: now."""
    entry: int | None = Field(default=None, ge=1, le=2**31)
    """Instead of `at`: copy the state after the step of this entry, a `seq` of the history."""


class Results(Value):
    """Results of external tools. Each is handed in separately, in this order; the first refused result ends the
    request."""

    results: tuple[ExternalResultItem, ...] = Field(min_length=1, max_length=100)
    """One result for each call, or one delta of a result."""
