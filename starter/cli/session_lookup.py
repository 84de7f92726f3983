"""From what a person types to a connected client and the one session that is meant."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio.service import RPCError

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.client.cards import CLOSED, SessionCard
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.reach.polling import workers
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line, visible

PATIENCE_SECONDS = 3.0
"""Silence after which we look whether any worker is there."""

INDEX_SECONDS = 1.0
"""A session that began just now may not stand in the server's index yet."""


@dataclass(frozen=True, slots=True)
class Name:
    """A session as the user names it."""

    session_id: str
    user: str | None = None
    agent: str | None = None


def flags_of(session: Session) -> list[str]:
    """What a pasted command needs to mean this session and no other of its name."""
    user = [] if session.user is None else ["--user", session.user]
    return [*user, "--agent", session.spec.name]


@asynccontextmanager
async def connected(tell: Callable[[str], None] | None = None) -> AsyncIterator[Longhaul]:
    """The client; says so when nothing can answer for want of a worker: to `tell`, or on stderr."""
    settings = Settings()
    async with Longhaul.connect(settings=settings) as app:
        watch = asyncio.create_task(_mention_missing_worker(app, tell or _on_stderr))
        try:
            yield app
        finally:
            watch.cancel()


@asynccontextmanager
async def opened(name: Name) -> AsyncIterator[Session]:
    """The open session of that name, and a client as long as it is needed. Raises Misuse as `find_session`."""
    async with connected() as app:
        yield await find_session(app, name)


async def find_session(app: Longhaul, name: Name) -> Session:
    """The open session of that name. Raises Misuse when there is none, or more than one."""
    session = await find_if_open(app, name)
    if session is None:
        raise Misuse(f"there is no open session {visible(name.session_id)!r}{_narrowed(name)}; see `longhaul sessions`")
    return session


async def find_any(app: Longhaul, name: Name) -> Session:
    """The same; when none is open, the one that was of this user and agent. Raises Misuse when several are open."""
    return await find_if_open(app, name) or _named(app, name)


def _named(app: Longhaul, name: Name) -> Session:
    return app.session(name.session_id, user=name.user, agent=AgentSpec(name=name.agent or "longhaul"))


async def find_known(app: Longhaul, name: Name) -> Session:
    """The same, or the only closed one of that name; Misuse too for one that was never begun, or that the server has
    forgotten."""
    session = await find_if_open(app, name) or await _find_closed(app, name)
    if not await session.has_begun():
        raise Misuse(
            f"the server knows no session {visible(name.session_id)!r}{_narrowed(name)}, open or closed; see `longhaul "
            "sessions`. `longhaul state export` reads what is stored of one that the server has forgotten"
        )
    return session


async def _find_closed(app: Longhaul, name: Name) -> Session:
    """Of several the one of this user and agent; nobody's, if no user is named. One that closed just now may not
    stand in the index yet: user and agent may still name it."""
    found = await _candidates(app, name, closed=True)
    if len(found) == 1:
        return app.attach(found[0])
    usual = _named(app, name)
    if found and usual.workflow_id not in [card.workflow_id for card in found]:
        raise Misuse(_ambiguous(name, found))
    return usual


async def find_if_open(app: Longhaul, name: Name) -> Session | None:
    """The same; None when there is none."""
    found = await _candidates(app, name)
    waited = 0.0
    while not found and waited < INDEX_SECONDS:
        await asyncio.sleep(0.1)
        waited += 0.1
        found = await _candidates(app, name)
    if len(found) > 1:
        raise Misuse(_ambiguous(name, found))
    return app.attach(found[0]) if found else None


async def find_of_all(app: Longhaul, name: Name, *, closed: bool) -> Session | None:
    """The only open session of that name; with `closed`, where none is open, the one that has closed last. Raises
    Misuse when several are open."""
    found = await _candidates(app, name, closed=closed)
    still_open = [card for card in found if card.status != CLOSED]
    if len(still_open) > 1:
        raise Misuse(_ambiguous(name, still_open))
    return app.attach((still_open or found)[0]) if found else None


async def _candidates(app: Longhaul, name: Name, *, closed: bool = False) -> list[SessionCard]:
    indexed = name.session_id if app.settings.search_attributes else None
    user = name.user if app.settings.search_attributes else None
    return [
        card
        for card in await app.sessions(session_id=indexed, user=user, closed=closed)
        if card.session_id == name.session_id and name.agent in (None, card.agent) and name.user in (None, card.user_id)
    ]


def _narrowed(name: Name) -> str:
    return "".join(f" with {flag} {value!r}" for flag, value in (("user", name.user), ("agent", name.agent)) if value)


def _ambiguous(name: Name, found: list[SessionCard]) -> str:
    choices = "; ".join(
        one_line(
            " ".join(
                [*(["--user", shlex.quote(card.user_id)] if card.user_id else []), "--agent", shlex.quote(card.agent)]
            )
        )
        for card in found
    )
    return f"{len(found)} sessions are called {name.session_id!r}; add one of: {choices}"


def _on_stderr(sentence: str) -> None:
    print(f"longhaul: {sentence}", file=sys.stderr)


async def _mention_missing_worker(app: Longhaul, tell: Callable[[str], None]) -> None:
    await asyncio.sleep(PATIENCE_SECONDS)
    queue = app.settings.task_queue
    try:
        found = await workers(app.client, queue)
    except RPCError:
        return
    if not found:
        tell(f"no worker polls the task queue {queue!r}; waiting for one (start it with `longhaul worker`)")
