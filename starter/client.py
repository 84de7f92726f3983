"""The Python client: `Longhaul` is the way in, `Session` (in `starter.session`) is one conversation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecution

from agent.settings import AgentSpec
from starter.agents import find_agent
from starter.asking import NoSession
from starter.connection import connect, let_go
from starter.session import Session
from starter.settings import Settings
from starter.wire import check_name
from workflows.contract import AGENT, SESSION, STATUS, USER, WAITING_SINCE, WORKFLOW, PendingCall, Status


@dataclass(frozen=True, slots=True)
class SessionCard:
    """One row of `Longhaul.sessions()`: what the server's index knows, without asking the session."""

    session_id: str
    user_id: str | None
    agent: str
    status: str
    """idle, working, waiting; or closed."""
    waiting_since: str
    started_at: str
    workflow_id: str


@dataclass(frozen=True, slots=True)
class Inbox:
    """What `Longhaul.inbox()` found."""

    calls: list[tuple[SessionCard, PendingCall]]
    silent: list[SessionCard]
    """Sessions that wait too, or may, but did not say for what."""


class Longhaul:
    """Sessions of durable agents on one Temporal namespace."""

    def __init__(self, client: Client, settings: Settings | None = None) -> None:
        self.client = client
        self.settings = settings or Settings()

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, address: str | None = None, namespace: str | None = None, settings: Settings | None = None
    ) -> AsyncIterator["Longhaul"]:
        """`async with Longhaul.connect() as app:`. Raises Unreachable with a sentence when no server answers."""
        settings = settings or Settings()
        client = await connect(address, namespace, settings=settings)
        try:
            yield cls(client, settings)
        finally:
            await let_go(client)

    def session(
        self, session_id: str = "default", *, user: str | None = None, agent: str | AgentSpec = "longhaul"
    ) -> Session:
        """A session by its names; it is started by its first message. Two handles with equal names are one session.

        `agent` is an AgentSpec, or a name: then `agents/NAME.toml` says how a new session is set up. A session that
        runs already keeps the settings that it was started with.
        """
        check_name("session", session_id)
        check_name("user", user or "")
        spec = agent if isinstance(agent, AgentSpec) else find_agent(agent)
        return Session(self.client, self.settings, session_id, user, spec)

    async def sessions(
        self, *, session_id: str | None = None, user: str | None = None, status: str | None = None
    ) -> list[SessionCard]:
        """Sessions that are open, newest first. Filters need the search attributes."""
        query = f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus = 'Running'"
        query += _narrowed(USER.name, user) + _narrowed(SESSION.name, session_id) + _narrowed(STATUS.name, status)
        cards = [await _card(row) async for row in self.client.list_workflows(query)]
        found = [card for card in cards if user in (None, card.user_id) and session_id in (None, card.session_id)]
        return sorted(found, key=lambda card: card.started_at, reverse=True)

    async def inbox(self, *, user: str | None = None, patience_seconds: float = 5.0) -> Inbox:
        """Every call that waits for somebody, the longest waiting first.

        Sessions that did not answer within the patience are named apart: their workers may be gone.
        """
        cards = await self.sessions(user=user, status="waiting" if self.settings.search_attributes else None)
        asked = {asyncio.create_task(self.attach(card).pending()): card for card in cards}
        done, silent = await asyncio.wait(asked, timeout=patience_seconds) if asked else (set(), set())
        for task in silent:
            task.cancel()
        answered = {task for task in done if task.exception() is None}
        closed = {task for task in done if isinstance(task.exception(), NoSession)}
        calls = [(asked[task], call) for task in answered for call in task.result()]
        return Inbox(
            calls=sorted(calls, key=lambda pair: pair[1].asked_at),
            silent=[card for task, card in asked.items() if task not in answered | closed],
        )

    async def statuses(self, cards: Sequence[SessionCard], *, patience_seconds: float = 5.0) -> dict[str, Status]:
        """By workflow id; those that did not answer within the patience, or have closed, are left out."""
        asked = {asyncio.create_task(self.attach(card).status()): card for card in cards}
        done, silent = await asyncio.wait(asked, timeout=patience_seconds) if asked else (set(), set())
        for task in silent:
            task.cancel()
        return {asked[task].workflow_id: task.result() for task in done if task.exception() is None}

    def attach(self, card: SessionCard) -> Session:
        """The session behind a row."""
        return Session(
            self.client,
            self.settings,
            card.session_id,
            card.user_id,
            AgentSpec(name=card.agent[:200] or "unknown"),
            card.workflow_id,
        )


async def _card(row: WorkflowExecution) -> SessionCard:
    memo = await _memo(row)
    attributes = row.typed_search_attributes
    since = attributes.get(WAITING_SINCE)
    return SessionCard(
        session_id=memo.get("session") or attributes.get(SESSION) or row.id,
        user_id=memo.get("user") if "user" in memo else attributes.get(USER),
        agent=memo.get("agent") or attributes.get(AGENT) or "",
        status=attributes.get(STATUS) or "unknown",
        waiting_since=since.isoformat() if since else "",
        started_at=row.start_time.isoformat(),
        workflow_id=row.id,
    )


async def _memo(row: WorkflowExecution) -> dict[str, str | None]:
    """The texts of the memo. Anybody may start a workflow of our type: its memo must not hide all the others."""
    try:
        memo = await row.memo()
    except Exception:  # noqa: BLE001  each encoding fails in its own way
        return {}
    return {name: value for name, value in memo.items() if value is None or isinstance(value, str)}


def _narrowed(attribute: str, wanted: str | None) -> str:
    """The condition for one attribute, where the server can apply it.

    It compares another text than the one given for a double quote, a backslash and control characters, so that nothing
    or something else would be found: such a name is looked for among all rows.
    """
    if wanted is None or not wanted.isprintable() or '"' in wanted or "\\" in wanted:
        return ""
    escaped = wanted.replace("'", "\\'")
    return f" AND {attribute} = '{escaped}'"
