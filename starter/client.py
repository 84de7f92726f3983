"""The Python client: `Longhaul` is the way in, `Session` (in `starter.session`) is one conversation."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.service import RPCError

from agent.settings import AgentSpec
from starter.agents import checked, find_agent
from starter.cards import SessionCard, card_of, in_doubt, query
from starter.connection import connect, let_go
from starter.feed import Feed
from starter.hooks import hooks_for_all
from starter.inbox import Inbox, gather
from starter.naming import Naming
from starter.rules import RulesOfUser
from starter.session import Session
from starter.settings import Settings
from starter.wire import check_name
from workflows.contract import Status


class Longhaul:
    """Sessions of durable agents on one Temporal namespace."""

    def __init__(self, client: Client, settings: Settings | None = None) -> None:
        self.client = client
        self.settings = settings or Settings()
        self._naming = Naming(self.settings)
        self.hooks = hooks_for_all(self.settings.client_hooks)
        """Functions before and after what every session's handle does that is made from here: reply, observe, print."""

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
        runs already keeps the settings that it was started with. Raises BadAgent for one that can't be used.
        """
        check_name("session", session_id)
        check_name("user", user or "")
        spec = checked(agent) if isinstance(agent, AgentSpec) else find_agent(agent)
        session = Session(self.client, self.settings, session_id, user, spec)
        session.hooks.parent = self.hooks
        return session

    def feed(self, sessions: Iterable[Session], *, start: int | None = None, live: bool = True) -> Feed:
        """Their events in one list, from number `start` of each on, or those to come. Enter it with `async with`."""
        return Feed(sessions, start=start, live=live)

    def rules_of(self, user: str) -> RulesOfUser:
        """The rules that hold in all sessions of this user, kept where the workers' state store is."""
        check_name("user", user)
        return RulesOfUser(self.settings, user)

    async def sessions(
        self, *, session_id: str | None = None, user: str | None = None, status: str | None = None
    ) -> list[SessionCard]:
        """Sessions that are open, newest first. Filters need the search attributes."""
        cards = await self._cards(self._query(session_id=session_id, user=user, status=status))
        found = [card for card in cards if user in (None, card.user_id) and session_id in (None, card.session_id)]
        return sorted(found, key=lambda card: card.started_at, reverse=True)

    async def inbox(
        self,
        *,
        user: str | None = None,
        team: str | None = None,
        tool: str | None = None,
        overdue: bool = False,
        patience_seconds: float = 5.0,
    ) -> Inbox:
        """Every call that waits for somebody, the longest waiting first; and sessions that are held or paused.

        `overdue`: only what somebody was reminded of, what was handed up, and what has expired. Sessions that did not
        answer within the patience are named apart: their workers may be gone. `team` needs the search attributes.
        """
        if self.settings.search_attributes:
            cards = await self._cards(self._query(user=user, status="waiting", team=team, tool=tool))
            cards += await self._cards(self._query(user=user, status="paused", team=team, tool=tool))
            cards += await self._in_doubt(self._query(user=user, team=team, tool=tool))
            cards = list({card.workflow_id: card for card in cards}.values())
        else:
            cards = await self._cards(query())
        # Not everything can be asked of the server, and not of each server.
        cards = [card for card in cards if user in (None, card.user_id) and team in (None, card.team)]
        return await gather(cards, self.attach, tool=tool, overdue=overdue, patience_seconds=patience_seconds)

    async def statuses(self, cards: Sequence[SessionCard], *, patience_seconds: float = 5.0) -> dict[str, Status]:
        """By workflow id; those that did not answer within the patience, or have closed, are left out."""
        asked = {asyncio.create_task(self.attach(card).status()): card for card in cards}
        done, silent = await asyncio.wait(asked, timeout=patience_seconds) if asked else (set(), set())
        for task in silent:
            task.cancel()
        return {asked[task].workflow_id: task.result() for task in done if task.exception() is None}

    def _query(self, *, session_id: str | None = None, user: str | None = None, **wanted: str | None) -> str:
        """Names as the server knows them."""
        named = {"session_id": session_id, "user": user}
        indexed = {key: None if name is None else self._naming.indexed(name) for key, name in named.items()}
        return query(**indexed, **wanted)

    async def _in_doubt(self, wanted: str) -> list[SessionCard]:
        """None where the server does not know the attribute by which they are found."""
        try:
            return await self._cards(in_doubt(wanted))
        except RPCError:
            return []

    async def _cards(self, wanted: str) -> list[SessionCard]:
        return [await card_of(row) async for row in self.client.list_workflows(wanted)]

    def attach(self, card: SessionCard) -> Session:
        """The session behind a row."""
        spec = AgentSpec(name=card.agent[:200] or "unknown")
        session = Session(self.client, self.settings, card.session_id, card.user_id, spec, card.workflow_id)
        session.hooks.parent = self.hooks
        return session
