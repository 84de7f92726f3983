"""From what a person types to a connected client and the one session that is meant: that of a lead, or of one of its
sub-agents.
"""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio.service import RPCError

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter import render
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.client.cards import CLOSED, SessionCard
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import WaitingBelow
from longhaul.starter.connection.pollers import workers
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import PendingCall

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
    return render.flags_for(session.user, session.spec.name)


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
    """The same, or the only closed one of that name; Misuse too for one that was never started, or that the server has
    forgotten."""
    session = await find_if_open(app, name) or await _find_closed(app, name)
    if not await session.has_started():
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


FOUND_FROM_ROOT = ("person", "outside", "resolution", "budget")
"""What commands at a lead's name answer below it."""


def is_found_from_root(call: PendingCall, tree: Iterable[PendingCall]) -> bool:
    """Whether the root's name says which call of its tree is meant, with the call's id; or, of one that waits for more
    budget, with the name of its session."""
    if call.waits_for == "budget":
        return True
    same = [each for each in tree if (each.call_id, each.waits_for) == (call.call_id, call.waits_for)]
    return call.waits_for in FOUND_FROM_ROOT and len(same) == 1


def below(session_id: str, call: PendingCall, tree: Iterable[PendingCall]) -> list[str]:
    """The flags by which `longhaul budget` at the root's name finds it, where several wait."""
    if call.waits_for != "budget" or sum(each.waits_for == "budget" for each in tree) == 1:
        return []
    return ["--at", session_id]


async def out_of_budget(root: Session, at: str) -> WaitingBelow | None:
    """Where in its tree more budget is waited for: in the session of that name, or, without one, in the root itself or
    in the only one below it. None where the root alone can be meant. Raises Misuse for a name that does not wait."""
    found = [each for each in await root.tree.pending() if each.call.waits_for == "budget"]
    if at:
        named = [each for each in found if each.session.id == at]
        if not named:
            waiting = ", ".join(each.session.id for each in found) or "none"
            raise Misuse(f"--at: no session {at!r} below {root.id!r} waits for more budget; those that do: {waiting}")
        return named[0]
    return found[0] if len(found) == 1 and found[0].above else None


async def waiting_in(root: Session, call_ids: Sequence[str], waits_for: str) -> list[WaitingBelow]:
    """What waits so: the named calls, or all; sub-agents are asked where the session itself does not have them. Raises
    Misuse for an id that waits in several sessions."""
    own = [WaitingBelow(root, call) for call in await root.own_pending() if call.waits_for == waits_for]
    if call_ids:
        own = [each for each in own if each.call.call_id in call_ids]
    if own and len(own) >= len(call_ids):
        return own
    found = [each for each in await root.tree.pending() if each.call.waits_for == waits_for]
    chosen = [each for each in found if not call_ids or each.call.call_id in call_ids]
    for call_id in call_ids:
        places = [each.session.id for each in chosen if each.call.call_id == call_id]
        if len(places) > 1:
            raise Misuse(f"{call_id!r} waits in several sessions: {', '.join(places)}; name one of them")
    return chosen


async def place_of(root: Session, call_id: str, waits_for: str) -> Session:
    """The session in which the call waits; the root itself where none has it: it says why not."""
    waiting = await waiting_in(root, [call_id], waits_for)
    return waiting[0].session if waiting else root


def by_session(
    root: Session, waiting: Sequence[WaitingBelow], call_ids: Sequence[str]
) -> Iterator[tuple[Session, dict[str, PendingCall | None]]]:
    """Each session with the calls to be answered in it; None: it does not wait anywhere, and the root says so."""
    missing = [call_id for call_id in call_ids if call_id not in {each.call.call_id for each in waiting}]
    places = {each.session.workflow_id: each.session for each in waiting}
    if missing:
        places = {root.workflow_id: root, **places}
    for workflow_id, session in places.items():
        calls: dict[str, PendingCall | None] = {
            each.call.call_id: each.call for each in waiting if each.session.workflow_id == workflow_id
        }
        if session is root or workflow_id == root.workflow_id:
            calls.update(dict.fromkeys(missing))
        yield session, calls
