"""The tools of Longhaul as an MCP server: each does what a request by HTTP does, and wants the same scope.

Arguments and answers are described here where they are not as by HTTP; events are told as text for whoever reads no
events.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model
from starlette.datastructures import Headers

from longhaul.agent.entries import When
from longhaul.agent.operations.all_operations import OPERATION_ROWS, OperationRow
from longhaul.agent.operations.bodies import Binding, Submit
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.event_reader import AsksBelow, Following, LooksBelow
from longhaul.starter.serve import acts, reads
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_bodies import (
    LONGEST_WAIT_SECONDS,
    Decision,
    Listing,
    Name,
    Requesting,
    Sorting,
    Whose,
)
from longhaul.starter.serve.requests import DEFAULT_AGENT, REQUEST_SECONDS, Call, Served, session_of
from longhaul.starter.serve.tokens import Caller, Scope
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import PendingCall, Status

Wait = Field(default=0, ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for the result")
RequestId = Field(
    default="", max_length=MAX_ID_CHARS, description="Names the request: sent again, it gives the same reply"
)


class OfSession(Whose):
    session: Name = Field(min_length=1, description="Its name")
    agent: Name = Field(default=DEFAULT_AGENT, description="The session's user")


class BeginSession(Whose):
    text: str = Field(min_length=1, description="What to ask")
    agent: Name = Field(default=DEFAULT_AGENT, description="Name of the agent")
    wait: float = Wait
    request_id: str = Field(
        default="",
        max_length=MAX_ID_CHARS,
        description="A random text, to ask again if no answer came: the same text gives the same session",
    )


class Ask(OfSession):
    text: str = Field(min_length=1, description="What to say")
    when: When = Field(
        default="queue",
        description="While another reply is running: wait for its end (queue), show it to the model at its next step "
        "(now), or end that reply (interrupt)",
    )
    wait: float = Wait
    request_id: str = RequestId


class ReadOn(OfSession):
    since: int = Field(default=0, ge=0, le=2**31, description="Number of the last event that you read; 0: none")
    wait: float = Field(
        default=0,
        ge=0,
        le=LONGEST_WAIT_SECONDS,
        description="Seconds to wait until the reply has ended, or waits for somebody",
    )


class OnCall(OfSession):
    call_id: Binding = Field(description="As the inbox names it")
    decision: Literal["allow", "deny"]
    digest: Binding | None = Field(default=None, description="The digest shown with the call; needed to allow it")
    reason: str = Field(default="", max_length=20_000, description="Reason of a denial; the agent's model reads it")
    input: dict[str, Any] | None = Field(default=None, description="Other arguments than the model's")
    rules: bool = Field(default=False, description="Accept the suggested rules too, for later calls")


class Sent(BaseModel):
    """A message that was taken, and what came of it so far."""

    session: str
    agent: str
    reply_id: str
    status: str
    """queued, working, waiting or finished."""
    text: str = ""
    """What the agent has said, when the reply has ended or waits for somebody."""
    finished_reason: str = ""
    error: ErrorInfo | None = None
    calls: tuple[PendingCall, ...] = ()
    """What it waits for."""


class SessionText(BaseModel):
    """What happened in a session, as text."""

    text: str
    next: int
    """`since` of the next question: the number of the last event that is told here."""
    more: bool
    """There is more already."""


class SessionStanding(BaseModel):
    """One session at a glance, and its calls that wait."""

    status: Status
    calls: tuple[PendingCall, ...]


MOST_CHARS = 50_000
"""A text ends with the event that goes beyond it."""
SHOWN_CHARS = 2_000
"""Of one call's arguments, and of one piece of a result."""


class Telling:
    """Takes events of one reader, and has their text."""

    def __init__(self, following: Following, since: int, asks_below: AsksBelow) -> None:
        self._following = following
        self._asks_below = asks_below
        self._parts: list[str] = []
        self._size = 0
        self._has_ended = False
        self._waiting = set[str]()
        self.last = since
        """Number of the last event that is told."""
        self.more = False
        """There was no room for all that there is."""

    @property
    def text(self) -> str:
        return "".join(self._parts).strip("\n")

    async def recorded(self) -> None:
        """Take what there is by now."""
        while not (self.more or self._following.is_fresh):
            self._take(await self._following.next())

    async def rest(self) -> None:
        """Take what comes, until the reply has ended or waits for somebody."""
        below = LooksBelow(self._asks_below)
        while not (self.more or self._has_ended or self._waiting):
            if events := await self._following.next():
                below.stirred()
                self._take(events)
            elif asked := await below.look():
                calls = ", ".join(f"{call.call_id} {call.path}" for call in asked)
                self._parts.append(harmless(f"\n[sub-agents wait for an answer: {calls}]\n"))
                return

    def _take(self, events: list[AgentEvent]) -> None:
        for event in events:
            if self._size > MOST_CHARS:
                self.more = True
                return
            said = harmless(event_text(event))
            self._parts.append(said)
            self._size += len(said)
            self.last = max(self.last, event.seq)
            match event.type:
                case "REPLY_START" | "REPLY_END":
                    self._has_ended = event.type == "REPLY_END"
                    self._waiting.clear()
                case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
                    self._waiting.update(call.id for call in event.tool_calls)
                case "USER_CONFIRM_RESULT":
                    self._waiting.difference_update(one["call_id"] for one in event.value["decisions"])
                case "TOOL_RESULT_END":
                    self._waiting.discard(event.tool_call_id)
                case _:
                    pass


def event_text(event: AgentEvent) -> str:
    """One event; empty for what only programs need."""
    match event.type:
        case "TEXT_BLOCK_DELTA" | "TEXT_BLOCK_END":
            return event.delta or "\n"
        case "TOOL_CALL_START":
            return f"\n[{event.tool_call_id}: {event.tool_call_name} "
        case "TOOL_CALL_DELTA" | "TOOL_RESULT_TEXT_DELTA":
            return _brief(event.delta)
        case "TOOL_CALL_END":
            return "]\n"
        case "TOOL_RESULT_END":
            return f"\n[{event.tool_call_id}: {event.state.value if event.state is not None else 'done'}]\n"
        case "REQUIRE_USER_CONFIRM" | "REQUIRE_EXTERNAL_EXECUTION":
            who = "a person" if event.type == "REQUIRE_USER_CONFIRM" else "an external result"
            who = "an answer to an MCP server" if event.value and "asked_by" in event.value else who
            return f"\n[waits for {who}: {', '.join(f'{call.id} {call.name}' for call in event.tool_calls)}]\n"
        case "REPLY_END":
            why = f": {event.error.message}" if event.error is not None else ""
            return f"\n[reply ended, {event.finished_reason}{why}]\n"
        case _:
            return ""


def _brief(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text) - SHOWN_CHARS} more characters)"


NAME_CHARS = 12


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call that was let in."""

    served: Served
    caller: Caller
    given: Any
    """Of the tool's arguments."""

    def call(self, query: BaseModel, body: BaseModel | None = None, session: str | None = None) -> Call:
        """The request by HTTP that would be the same."""
        given = {"agent": getattr(self.given, "agent", ""), "session": session or getattr(self.given, "session", "")}
        names = {name: value or "" for name, value in given.items()}
        return Call(self.served, self.caller, names, query, body, Headers())

    @property
    def whose(self) -> dict[str, Any]:
        return {"user": self.given.user, "anonymous": self.given.anonymous}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One row."""

    name: str
    does: str
    scope: Scope
    arguments: type[BaseModel]
    handler: Callable[[ToolRequest], Awaitable[BaseModel]]
    reads: bool = False
    """It changes nothing."""
    decides: bool = False
    """What it does may let something run."""
    fields: Mapping[str, Scope] = field(default_factory=dict[str, Scope])
    """Arguments that want a further scope."""


async def begin(asking: ToolRequest) -> Sent:
    given: BeginSession = asking.given
    seed = given.request_id or secrets.token_hex(NAME_CHARS)
    # By the request's id, so that one which is sent again begins no second session.
    name = f"mcp-{hashlib.sha256(seed.encode()).hexdigest()[:NAME_CHARS]}"
    return await _sent(asking, name, Submit(messages=given.text, request_id=given.request_id))


async def send(asking: ToolRequest) -> Sent:
    given: Ask = asking.given
    # Another one of that name may be meant: a slip must not begin a session.
    if not await session_of(asking.call(Whose(**asking.whose))).stored.is_known():
        raise Problem(
            "not-found", f"session: there is no session {given.session!r} of agent {given.agent!r}; list_sessions"
        )
    body = Submit(messages=given.text, request_id=given.request_id, when=given.when)
    return await _sent(asking, given.session, body)


async def _sent(asking: ToolRequest, session: str, body: Submit) -> Sent:
    call = asking.call(Requesting(**asking.whose, wait=asking.given.wait), body, session)
    _, taken = await acts.message(call)
    said = taken.message
    waiting = await session_of(call).pending() if taken.status == "waiting" else []
    return Sent(
        session=session,
        agent=asking.given.agent,
        reply_id=taken.reply_id,
        status=taken.status,
        text=(said.get_text_content() or "") if said is not None else "",
        finished_reason=(said.finished_reason or "") if said is not None else "",
        error=said.error if said is not None else None,
        calls=tuple(waiting),
    )


async def read(asking: ToolRequest) -> SessionText:
    given: ReadOn = asking.given
    call = asking.call(Whose(**asking.whose))
    async with aclosing(session_of(call).following(given.since + 1, live=False, shown=False)) as following:
        telling = Telling(following, given.since, session_of(call).tree.standing_still)
        await telling.recorded()
        if given.wait:
            await acts.within(given.wait, call, telling.rest())
    return SessionText(text=telling.text, next=telling.last, more=telling.more)


async def status(asking: ToolRequest) -> SessionStanding:
    call = asking.call(Whose(**asking.whose))
    session = session_of(call)
    return SessionStanding(status=await session.status(), calls=tuple(await session.pending()))


async def sessions(asking: ToolRequest) -> BaseModel:
    return await reads.sessions(asking.call(asking.given))


async def inbox(asking: ToolRequest) -> BaseModel:
    return await reads.inbox(asking.call(asking.given))


async def decide(asking: ToolRequest) -> BaseModel:
    given: OnCall = asking.given
    body = Decision(
        call_id=given.call_id,
        decision=given.decision,
        reason=given.reason,
        input=given.input,
        rules=given.rules,
        digest=given.digest,
    )
    return await acts.decide(asking.call(Whose(**asking.whose), body))


class TakenByTool(BaseModel):
    """The session has taken it."""

    session: str


def _of_operation(row: OperationRow[Any], names: Sequence[str]) -> OfferedTool:
    """As the operation's row says; `names`: fields of its body."""
    fields: dict[str, Any] = {
        name: (row.body.model_fields[name].annotation, row.body.model_fields[name]) for name in names
    }
    send = acts.by_operation(row)

    async def act(asking: ToolRequest) -> BaseModel:
        sent = asking.given.model_fields_set.intersection(names)
        body = row.body.model_validate({name: getattr(asking.given, name) for name in sent})
        answer: BaseModel | None = await send(asking.call(Whose(**asking.whose), body))
        return answer or TakenByTool(session=asking.given.session)

    arguments = create_model(f"{row.body.__name__}ByTool", __base__=OfSession, **fields)
    return OfferedTool(row.name, f"{row.help}.", row.scope, arguments, act)


_ROWS = (
    OfferedTool(
        "start_session",
        "Start a new session: an agent works on the request, and continues whatever happens to this connection. "
        "Gives the session's name.",
        "answer",
        BeginSession,
        begin,
    ),
    OfferedTool("send", "Send a request to a session, and get a reply.", "answer", Ask, send),
    OfferedTool("read", "Read what happened in a session since an event, as text.", "read", ReadOn, read, reads=True),
    OfferedTool("status", "The status of a session, and its waiting calls.", "read", OfSession, status, reads=True),
    OfferedTool("list_sessions", "List open sessions, newest first.", "read", Listing, sessions, reads=True),
    OfferedTool(
        "list_inbox",
        "List everything that waits for somebody, the longest waiting first.",
        "read",
        Sorting,
        inbox,
        reads=True,
    ),
    OfferedTool(
        "decide",
        "Allow or deny a call that waits for a person. Decide only what the person you work for has decided.",
        "approve",
        OnCall,
        decide,
        decides=True,
        fields={"input": "edit", "rules": "steer"},
    ),
    *(_of_operation(row, row.tool_fields) for row in OPERATION_ROWS if row.tool_fields is not None),
)
TOOLS: Mapping[str, OfferedTool] = {row.name: row for row in _ROWS}


def seconds_for(given: BaseModel) -> float:
    """How long a call may take."""
    return REQUEST_SECONDS + getattr(given, "wait", 0.0)
