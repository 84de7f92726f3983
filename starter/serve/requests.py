"""One request as its handler gets it: who asks, what for, and the session that is meant; and one row of the table of
routes, from which the server answers and the OpenAPI document is made.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.types import ASGIApp

from longhaul.agent.plain.ids import MAX_ID_CHARS, check_name
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.agent_files import BadAgent, agent_names, named_agent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.session import Session
from longhaul.starter.folder_trust import BadSettingsFile, Untrusted
from longhaul.starter.serve.problems import Problem, wrong
from longhaul.starter.serve.request_bodies import Nothing, Starting, Whose
from longhaul.starter.serve.tokens import Caller, Scope, Tokens

IDEMPOTENCY_KEY = "Idempotency-Key"

DEFAULT_AGENT = "longhaul"


@dataclass(slots=True)
class Served:
    """What all requests share."""

    app: Longhaul
    tokens: Tokens | None
    """None: there is no login; only this machine is served, and whoever sits at it may do everything."""
    local: Caller
    """Who asks while it is open."""
    hosts: frozenset[str]
    """Names that this server goes by."""
    origins: tuple[str, ...] = ()
    """Of web pages that may ask."""
    root_path: str = ""
    published: tuple[str, ...] = ()
    """Agents that other agents may know of, by the Agent2Agent protocol."""
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is about to end."""
    readers: Counter[str] = field(default_factory=Counter[str])
    """Open event streams by who reads."""

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches it is let in, now: it ends with the first token, whoever makes it."""
        return self.tokens is None or self.tokens.are_awaited()


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was let in, its parts read and checked."""

    served: Served
    caller: Caller
    path: Mapping[str, str]
    query: Any
    """Of the operation's query model."""
    body: Any
    """Of the operation's body model."""
    headers: Headers

    @property
    def app(self) -> Longhaul:
        return self.served.app

    @property
    def by(self) -> str:
        return self.caller.name


def path_values(raw: Mapping[str, str]) -> dict[str, str]:
    """Path parameters as they were meant: a name may hold a slash, sent as %2F. Raises Problem."""
    found = {}
    for name, text in raw.items():
        try:
            found[name] = unquote(text, errors="strict")
            check_name(name, found[name])
        except ValueError as error:  # UnicodeDecodeError is one
            raise wrong(name, text, f"is no name ({error})") from None
    return found


def user_meant(call: Call) -> str | None:
    """Whose sessions: one's own, those of a user of the token, or for `admin` anybody's. Raises Problem."""
    whose: Whose = call.query
    if whose.user is not None and whose.anonymous:
        raise wrong("anonymous", "true", "a session has a user or is anonymous; send one of the two")
    wanted = None if whose.anonymous else whose.user if whose.user is not None else call.caller.user
    if wanted not in (call.caller.user, *call.caller.users) and "admin" not in call.caller.scopes:
        raise Problem("forbidden", "user: sessions of others need a token with the scope 'admin'; leave `user` out")
    return wanted


def unseen_by(call: Call) -> str:
    """What the caller's token does not let them see, whether there is any; empty for whoever sees all."""
    if "admin" in call.caller.scopes:
        return ""
    named = " and ".join(map(repr, sorted(call.caller.users)))
    return (
        f"this token sees the sessions of user {named} only; sessions of others, and those without a user, need the "
        "scope 'admin'"
    )


def session_of(call: Call) -> Session:
    """The session that the path names. Another user's is not found, whether there is one or not. Raises NoSession."""
    name, agent = call.path["session"], call.path["agent"]
    try:
        user = user_meant(call)
    except Problem as problem:
        if problem.kind != "forbidden":
            raise
        raise NoSession(f"there is no open session {name!r} of agent {agent!r}") from None
    # For reading, a file that is broken by now, or not trusted any more, matters nothing.
    try:
        known = _spec(agent)
    except (BadAgent, BadSettingsFile, Untrusted):
        known = None
    return call.app.session(name, user=user, agent=known or AgentSpec(name=agent))


async def session_to_begin(call: Call, query: Starting | None = None) -> Session:
    """The same for what a session may begin with: then it is set up by its agent's file, with the folder and the
    priority that the query names.

    Raises Problem, BadAgent and Untrusted.
    """
    session, agent = session_of(call), call.path["agent"]
    workspace, priority = (query.workspace, query.priority) if query is not None else (None, None)
    await _check_beginning(call, session, workspace, priority)
    spec = _spec(agent) or (AgentSpec(name=agent) if agent == DEFAULT_AGENT else None)
    if spec is None:
        if await session.stored.is_known():
            return session
        raise Problem("not-found", f"agent: there is no agent {agent!r}; there are: {', '.join(known_agents())}")
    model = spec.model or call.app.settings.model
    if not (model or spec.custom_agent) and not await session.stored.is_known():
        raise Problem("refused", _no_model(agent))
    if workspace is not None:
        # It stays the kind of place that its agent names.
        given = {**(spec.workspace.model_dump() if spec.workspace is not None else {}), "root": workspace}
        try:
            spec = spec.model_copy(update={"workspace": Workspace.model_validate(given)})
        except ValidationError:
            raise wrong("workspace", workspace, "send the absolute path of a folder that the workers see") from None
    agent_given = spec.model_copy(update={"model": model})
    return call.app.session(session.id, user=session.user, agent=agent_given, priority=priority)


async def _check_beginning(call: Call, session: Session, root: str | None, priority: int | None) -> None:
    """A session that there is keeps its own. Raises Problem."""
    if root is None and priority is None:
        return
    if "admin" not in call.caller.scopes:
        what = "workspace: naming a folder of the workers" if root is not None else "priority: naming one"
        raise Problem("forbidden", f"{what} needs a token with the scope 'admin'")
    if not await session.stored.is_known():
        return
    kept = await session.settings()
    place = kept.workspace
    if root is not None and (place is None or place.root != root):
        there = repr(place.root) if place is not None else "a folder of its own"
        why = f"workspace: session {session.id!r} works in {there}; leave it out, or take another session"
        raise Problem("refused", why)
    if priority not in (None, kept.priority):
        own = f"priority {kept.priority}" if kept.priority else "no priority of its own"
        why = f"priority: session {session.id!r} began with {own}; leave it out, or take another session"
        raise Problem("refused", why)


def spec_to_begin(call: Call, agent: str) -> AgentSpec:
    """By the agent's file, with a model. Raises Problem, BadAgent and Untrusted."""
    spec = _spec(agent) or (AgentSpec(name=agent) if agent == DEFAULT_AGENT else None)
    if spec is None:
        raise Problem("not-found", f"agent: there is no agent {agent!r}; there are: {', '.join(known_agents())}")
    model = spec.model or call.app.settings.model
    if not (model or spec.custom_agent):
        raise Problem("refused", _no_model(agent))
    return spec.model_copy(update={"model": model})


def _no_model(agent: str) -> str:
    return f"agent: {agent!r} names no model; set `model` in its file, or LONGHAUL_MODEL for the server"


def _spec(agent: str) -> AgentSpec | None:
    """By its file in the folder of agents. A name is never a path: nobody has other files read."""
    return named_agent(agent) if agent in known_agents() else None


def known_agents() -> list[str]:
    """Of which a session may be started here."""
    return sorted({DEFAULT_AGENT, *agent_names()})


def request_id_of(call: Call, sent: str) -> str | None:
    """By the header, or as `sent` in the body; both may say the same. Raises Problem."""
    key = call.headers.get(IDEMPOTENCY_KEY)
    if key is None:
        return sent or None
    if not key or len(key) > MAX_ID_CHARS:
        raise wrong(IDEMPOTENCY_KEY, key, f"send 1 to {MAX_ID_CHARS} characters")
    if sent not in ("", key):
        raise wrong("request_id", sent, f"it differs from {IDEMPOTENCY_KEY}; send one of the two")
    return key


REQUEST_SECONDS = 30.0
"""A session without a worker would let its caller wait for ever."""

Answer = BaseModel | tuple[int, BaseModel] | ASGIApp | None
Handler = Callable[[Call], Awaitable[Any]]
"""Gives a model (200), a status with a model, nothing (204), or an answer of its own kind."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method of one path does."""

    method: Literal["GET", "POST"]
    path: str
    name: str
    summary: str
    handler: Handler
    scope: Scope | None
    """None: for anybody."""
    answers: Mapping[int, type[BaseModel] | str | None] = field(default_factory=dict)
    """Model by status; a media type for what is no JSON; None for no content."""
    query: type[BaseModel] = Nothing
    body: type[BaseModel] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """Request headers that it reads, and what for."""
    seconds: float = REQUEST_SECONDS
    also: Scope | None = None
    """A second scope that it wants."""
    fields: Mapping[str, Scope] = field(default_factory=dict[str, Scope])
    """Fields of the body that want a further scope, where something stands in them."""
