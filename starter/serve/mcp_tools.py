"""The tools of Longhaul as an MCP server. Each does what a request by HTTP does, and wants the same scope."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.datastructures import Headers

from longhaul.agent.letters.bodies import Interrupt
from longhaul.starter.serve import acts, reads
from longhaul.starter.serve import mcp_bodies as b
from longhaul.starter.serve.mcp_events import Telling
from longhaul.starter.serve.operation import REQUEST_SECONDS
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_bodies import (
    Decision,
    Listing,
    Message,
    Requesting,
    Sorting,
    Whose,
)
from longhaul.starter.serve.requests import Call, Served, session_of
from longhaul.starter.serve.tokens import Caller, Scope

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


async def begin(asking: ToolRequest) -> b.Sent:
    given: b.BeginSession = asking.given
    seed = given.request_id or secrets.token_hex(NAME_CHARS)
    # By the request's id, so that one which is sent again begins no second session.
    name = f"mcp-{hashlib.sha256(seed.encode()).hexdigest()[:NAME_CHARS]}"
    return await _sent(asking, name, Message(messages=given.text, request_id=given.request_id))


async def send(asking: ToolRequest) -> b.Sent:
    given: b.Ask = asking.given
    # Another one of that name may be meant: a slip must not begin a session.
    if not await session_of(asking.call(Whose(**asking.whose))).stored.is_known():
        raise Problem(
            "not-found", f"session: there is no session {given.session!r} of agent {given.agent!r}; list_sessions"
        )
    body = Message(messages=given.text, request_id=given.request_id, when=given.when)
    return await _sent(asking, given.session, body)


async def _sent(asking: ToolRequest, session: str, body: Message) -> b.Sent:
    call = asking.call(Requesting(**asking.whose, wait=asking.given.wait), body, session)
    _, taken = await acts.message(call)
    said = taken.message
    waiting = await session_of(call).pending() if taken.status == "waiting" else []
    return b.Sent(
        session=session,
        agent=asking.given.agent,
        reply_id=taken.reply_id,
        status=taken.status,
        text=(said.get_text_content() or "") if said is not None else "",
        finished_reason=(said.finished_reason or "") if said is not None else "",
        error=said.error if said is not None else None,
        calls=tuple(waiting),
    )


async def read(asking: ToolRequest) -> b.SessionText:
    given: b.ReadOn = asking.given
    call = asking.call(Whose(**asking.whose))
    async with aclosing(session_of(call).following(given.since + 1, live=False, shown=False)) as following:
        telling = Telling(following, given.since)
        await telling.recorded()
        if given.wait:
            await acts.within(given.wait, call, telling.rest())
    return b.SessionText(text=telling.text, next=telling.last, more=telling.more)


async def status(asking: ToolRequest) -> b.SessionStanding:
    call = asking.call(Whose(**asking.whose))
    return b.SessionStanding(status=await reads.status(call), calls=(await reads.pending(call)).calls)


async def sessions(asking: ToolRequest) -> BaseModel:
    return await reads.sessions(asking.call(asking.given))


async def inbox(asking: ToolRequest) -> BaseModel:
    return await reads.inbox(asking.call(asking.given))


async def decide(asking: ToolRequest) -> BaseModel:
    given: b.OnCall = asking.given
    body = Decision(
        call_id=given.call_id,
        decision=given.decision,
        reason=given.reason,
        input=given.input,
        rules=given.rules,
        digest=given.digest,
    )
    return await acts.decide(asking.call(Whose(**asking.whose), body))


async def interrupt(asking: ToolRequest) -> BaseModel:
    return await acts.interrupt(asking.call(Whose(**asking.whose), Interrupt()))


_ROWS = (
    OfferedTool(
        "start_session",
        "Begin a new session: an agent works on what is asked, and goes on whatever happens to this connection. "
        "Gives the session's name.",
        "answer",
        b.BeginSession,
        begin,
    ),
    OfferedTool("send", "Say something in a session, and have the agent reply.", "answer", b.Ask, send),
    OfferedTool("read", "Read what happened in a session since an event, as text.", "read", b.ReadOn, read, reads=True),
    OfferedTool(
        "status", "How a session stands, and the calls that wait in it.", "read", b.OfSession, status, reads=True
    ),
    OfferedTool("list_sessions", "List open sessions, newest first.", "read", Listing, sessions, reads=True),
    OfferedTool(
        "list_inbox", "List all that waits for somebody, the longest waiting first.", "read", Sorting, inbox, reads=True
    ),
    OfferedTool(
        "decide",
        "Allow or deny a call that waits for a person. Decide only what the person whom you work for has decided.",
        "approve",
        b.OnCall,
        decide,
        decides=True,
        fields={"input": "edit", "rules": "steer"},
    ),
    OfferedTool("interrupt", "End the reply that a session makes.", "answer", b.OfSession, interrupt),
)
TOOLS: Mapping[str, OfferedTool] = {row.name: row for row in _ROWS}


def seconds_for(given: BaseModel) -> float:
    """How long a call may take."""
    return REQUEST_SECONDS + getattr(given, "wait", 0.0)
