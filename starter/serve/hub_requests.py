"""Requests about hubs, with their rows in the table of routes: each user's own, with sessions of that user; those of
others are not found.
"""

from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from longhaul.agent.hub_membership import LeaveHub
from longhaul.agent.operations.bodies import Messages, from_outside
from longhaul.agent.operations.peer_operations import MOST_WORDS
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.plain.values import Many, Value, sparse
from longhaul.agent.values.hubs import MOST_MEMBERS
from longhaul.starter.client.hubs import BadHub, Hub, NoHub, NotHeard
from longhaul.starter.client.session import Session
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_bodies import Name, Nothing, Whose
from longhaul.starter.serve.requests import (
    DEFAULT_AGENT,
    IDEMPOTENCY_KEY,
    Call,
    Operation,
    request_id_of,
    session_to_begin,
    user_meant,
)
from longhaul.workflows.contract import HubCard

Found = TypeVar("Found")


class MemberBody(Value):
    """One session in a hub."""

    session: Name = Field(min_length=1)
    """Its name; one that has no message yet begins with the hub."""
    agent: Name = DEFAULT_AGENT
    """The session's user."""
    name: str = ""
    """How it is called in the hub; without it, by the session's name."""


class Joining(Value):
    """Sessions of the hub's user."""

    members: Many[MemberBody] = Field(min_length=1, max_length=MOST_MEMBERS)
    """They hear what is said from now on. Who is in already stays."""


class NewHub(Joining):
    """Begin a hub, or add members to one that there is."""

    name: str
    """1 to 64 letters, digits, `.`, `_` and `-`; of a user's hubs each has another one."""
    announcement: Messages = sparse(())
    """A message to all members at the beginning: text, one message, or a list of messages."""
    request_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """Of the announcement: the same id is sent once."""
    quiet: bool = False
    """What members answer is not told to the others."""

    _checked = field_validator("announcement")(from_outside)


class Saying(Value):
    """Send all members a message, without asking any of them for a reply."""

    messages: Messages = Field(min_length=1, max_length=MOST_WORDS)
    """Text, one message, or a list of them."""
    request_id: str = Field(default="", max_length=MAX_ID_CHARS)
    """The same id is sent once."""

    _checked = field_validator("messages")(from_outside)


class HubSaid(BaseModel):
    """Where in the hub's order it stands."""

    number: int


class HubRowBody(BaseModel):
    """One hub that is open."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    user: str | None


class HubRows(BaseModel):
    """All of the user's that are open, by name."""

    hubs: tuple[HubRowBody, ...]


async def hubs(call: Call) -> HubRows:
    user = user_meant(call)
    rows = await call.app.hubs(user=user)
    return HubRows(hubs=tuple(HubRowBody.model_validate(row) for row in rows if row.user == user))


async def begin_hub(call: Call) -> tuple[int, HubCard]:
    body: NewHub = call.body
    user, request_id = user_meant(call), request_id_of(call, body.request_id)
    members = await _members(call, body)
    try:
        hub = call.app.hub(
            body.name,
            members,
            announcement=body.announcement or None,
            enable_auto_broadcast=not body.quiet,
            user=user,
        )
    except BadHub as error:
        raise Problem("invalid", str(error)) from error
    await _explained(hub.start(request_id=request_id))
    return 201, await _explained(hub.show())


async def hub(call: Call) -> HubCard:
    return await _explained(_own(call).show())


async def say_in_hub(call: Call) -> HubSaid:
    body: Saying = call.body
    said = _own(call).broadcast(body.messages, request_id=request_id_of(call, body.request_id))
    return HubSaid(number=await _explained(said))


async def join_hub(call: Call) -> HubCard:
    body: Joining = call.body
    own = _own(call)
    await _explained(own.show())  # no session is looked for in the name of a hub that is not there
    await _explained(own.add(await _members(call, body)))
    return await _explained(own.show())


async def leave_hub(call: Call) -> HubCard:
    body: LeaveHub = call.body
    own = _own(call)
    await _explained(own.delete(*body.members))
    return await _explained(own.show())


async def end_hub(call: Call) -> None:
    await _explained(_own(call).end())


async def _members(call: Call, body: Joining) -> dict[str, Session]:
    """By their names in the hub. Raises Problem for two of one name, and as a message to the session would."""
    found = dict[str, Session]()
    for one in body.members:
        name = one.name or one.session
        if name in found:
            raise Problem("invalid", f"members: two are called {name[:80]!r}; give them different names")
        named = replace(call, path={"agent": one.agent, "session": one.session})
        found[name] = await session_to_begin(named)
    return found


def _own(call: Call) -> Hub:
    """The hub that the path names. Raises Problem: of another user's the same as of none."""
    name = call.path["hub"]
    try:
        return call.app.hub(name, user=user_meant(call))
    except (BadHub, Problem) as error:
        if isinstance(error, Problem) and error.kind != "forbidden":
            raise
        raise Problem("not-found", f"there is no hub {name[:120]!r}, or it has ended") from None


async def _explained(asked: Awaitable[Found]) -> Found:
    try:
        return await asked
    except NoHub as error:
        raise Problem("not-found", str(error)) from error
    except BadHub as error:
        raise Problem("invalid", str(error)) from error
    except NotHeard as error:
        raise Problem("unavailable", str(error)) from error


HEARD_SECONDS = 130.0
"""Who begins a hub, or joins, waits until its members have heard it, or it is known which one does not."""
H = "/v1/hubs/{hub}"
KEY = (IDEMPOTENCY_KEY, "Names the message: sent again, it is delivered once")

HUBS: tuple[Operation, ...] = (
    Operation("GET", "/v1/hubs", "hubs", "Open hubs", hubs, "read", {200: HubRows}, Whose),
    Operation(
        "POST",
        "/v1/hubs",
        "beginHub",
        "Start a hub, whose sessions receive each other's replies",
        begin_hub,
        "answer",
        {201: HubCard},
        Whose,
        NewHub,
        (KEY,),
        HEARD_SECONDS,
    ),
    Operation("GET", H, "hub", "Its members, and the last messages", hub, "read", {200: HubCard}, Whose),
    Operation(
        "POST",
        f"{H}/say",
        "sayInHub",
        "Send all members a message",
        say_in_hub,
        "answer",
        {200: HubSaid},
        Whose,
        Saying,
        (KEY,),
    ),
    Operation(
        "POST",
        f"{H}/join",
        "joinHub",
        "Add sessions",
        join_hub,
        "answer",
        {200: HubCard},
        Whose,
        Joining,
        seconds=HEARD_SECONDS,
    ),
    Operation(
        "POST",
        f"{H}/leave",
        "leaveHub",
        "Remove members: they keep what was said before",
        leave_hub,
        "answer",
        {200: HubCard},
        Whose,
        LeaveHub,
    ),
    Operation(
        "POST",
        f"{H}/end",
        "endHub",
        "End it; the sessions of its members stay",
        end_hub,
        "answer",
        {204: None},
        Whose,
        Nothing,
    ),
)
