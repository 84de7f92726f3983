"""The Python client: `Longhaul` is the way in, `Session` (in `starter.client.session`) is one conversation."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.agent.plain.ids import check_name
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import Agent, checked, find_agent
from longhaul.starter.client.cards import (
    SessionCard,
    Users,
    asking,
    by_ids,
    card_and_waits,
    card_of,
    is_of,
    nobodys,
    outcome_unknown,
    query,
)
from longhaul.starter.client.feed import Feed
from longhaul.starter.client.hooks import hooks_for_all
from longhaul.starter.client.hubs import Hub, HubRow, Members, hub_rows
from longhaul.starter.client.inbox import Inbox, gather
from longhaul.starter.client.memories import KnowledgeOfWorkers, MemoriesOfUser
from longhaul.starter.client.schedules import Schedules
from longhaul.starter.client.session import Session, of_card
from longhaul.starter.client.session_counts import LastDay, SessionCounts, last_day, standing
from longhaul.starter.client.user_rules import RulesOfUser
from longhaul.starter.connection.connect import Naming, connect, joined, let_go, settle_before_exit
from longhaul.starter.connection.pollers import time_at
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import Status, Waits

ROOTS_AT_ONCE = 50
"""That one query names: an id may have 255 characters."""


class Longhaul:
    """The client for sessions of durable agents in one Temporal namespace."""

    def __init__(self, client: Client, settings: Settings | None = None) -> None:
        settle_before_exit()
        self.client = client
        self.settings = settings or Settings()
        self._naming = Naming(self.settings)
        self.schedules = Schedules(client, self.settings)
        """Schedules: requests that are sent at set times."""
        self.knowledge = KnowledgeOfWorkers(self.settings)
        """Knowledge bases: documents that agents may search."""
        self.hooks = hooks_for_all(self.settings.client_hooks)
        """Functions that run before and after `reply`, `observe` and `print` of every session handle that this client
        creates."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        address: str | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
        *,
        client: Client | None = None,
    ) -> AsyncIterator["Longhaul"]:
        """Connect: `async with Longhaul.connect() as app:`. Raises Unreachable, with a sentence, if no server answers.

        `client`: your own Temporal client, instead of an address. Longhaul uses its connection, interceptors, codec and
        failure converter. Name the same codec in LONGHAUL_CODEC for the workers.
        """
        settings = settings or Settings()
        if client is not None:
            async with joined(client, settings) as of_sessions:
                yield cls(of_sessions, settings)
            return
        own = await connect(address, namespace, settings=settings)
        try:
            yield cls(own, settings)
        finally:
            await let_go(own)

    def session(
        self,
        session_id: str = "default",
        *,
        user: str | None = None,
        agent: str | AgentSpec | Agent = "longhaul",
        priority: int | None = None,
    ) -> Session:
        """A handle for the session with these names. The session starts with its first message. Two handles with equal
        names are one session.

        `agent`: an AgentSpec, an Agent, or a name; for a name, `agents/NAME.toml` sets up a new session. A session that
        is open or stored keeps its settings and its state. `priority`: 1 to 5, instead of the agent's priority, for a
        session that this handle starts or opens again. Raises BadAgent if the agent can't be used.
        """
        check_name("session", session_id)
        check_name("user", user or "")
        state = agent.state if isinstance(agent, Agent) else None
        given = agent.spec if isinstance(agent, Agent) else agent
        spec = checked(given) if isinstance(given, AgentSpec) else find_agent(given)
        if priority is not None:
            spec = checked(spec.model_copy(update={"priority": priority}))
        session = Session(self.client, self.settings, session_id, user, spec)
        if state is not None:
            session.stored.begins_in(state)
        session.hooks.parent = self.hooks
        return session

    def hub(
        self,
        name: str,
        *members: Members,
        announcement: str | Msg | Sequence[Msg] | None = None,
        enable_auto_broadcast: bool = True,
        user: str | None = None,
    ) -> Hub:
        """A hub by its name: `async with app.hub("jury", ana, ben) as hub:`. The hub starts with the block and ends
        with it. For a hub that outlives this program, call `start` and `end` instead.

        All members are sessions of one user, and the hub belongs to that user. Without members, `user` names the user.
        Raises BadHub.
        """
        first = next((one if isinstance(one, Session) else next(iter(one.values()), None) for one in members), None)
        hub = Hub(self.client, self.settings, name, first.user if first is not None and user is None else user)
        return hub.with_members(members, announcement, auto_broadcast=enable_auto_broadcast)

    async def hubs(self, *, user: str | None = None) -> list[HubRow]:
        """Open hubs, sorted by name: those of `user`, or of all users for None. A hub that started a moment ago may be
        missing."""
        return [row for row in await hub_rows(self.client, self._naming) if user in (None, row.user)]

    def feed(self, sessions: Iterable[Session], *, start: int | None = None, live: bool = True) -> Feed:
        """The events of several sessions in one list: from event number `start` of each session on, or, without
        `start`, new events only. Enter it with `async with`."""
        return Feed(sessions, start=start, live=live)

    def rules_of(self, user: str) -> RulesOfUser:
        """The rules that count in all sessions of this user. The workers' state store keeps them."""
        check_name("user", user)
        return RulesOfUser(self.client, self.settings, user)

    def memories_of(self, user: str | None) -> MemoriesOfUser:
        """The memories that agents have stored about this user; with None, those of sessions without a user."""
        check_name("user", user or "")
        return MemoriesOfUser(self.settings, user)

    async def sessions(
        self,
        *,
        session_id: str | None = None,
        user: Users = None,
        status: str | None = None,
        closed: bool = False,
    ) -> list[SessionCard]:
        """Open sessions, newest first; of `user`, a name or several, if given. With `closed`, also closed sessions that
        the server still has. Filters need the search attributes."""
        named = query(session_id=self._indexed(session_id), user=self._users(user), status=status, closed=closed)
        cards = await self._cards(named)
        found = [card for card in cards if is_of(user, card.user_id) and session_id in (None, card.session_id)]
        newest = dict[str, SessionCard]()
        for card in sorted(found, key=lambda card: card.started_at, reverse=True):
            newest.setdefault(card.workflow_id, card)
        return list(newest.values())

    async def asking(self, *, user: Users = None) -> list[SessionCard]:
        """Open sessions, sub-agents included, with a call that waits for somebody or sleeps: one query of the server's
        index. Empty if the index can't tell."""
        if not self.settings.search_attributes:
            return []
        try:
            cards = await self._cards(asking(query(user=self._users(user))))
        except RPCError:
            return []
        return [card for card in cards if is_of(user, card.user_id)]

    async def count_open(self, *, without_user: bool = False) -> int | None:
        """Number of open sessions, sub-agents included; with `without_user`, only of those that have no user. None if
        the server's index can't tell."""
        if not self.settings.search_attributes:
            return None
        try:
            return (await self.client.count_workflows(nobodys() if without_user else query())).count
        except RPCError:
            return None

    async def standing(self, *, user: Users = None) -> SessionCounts | None:
        """Counts of open sessions by status: of one user, of several, or of all. None if the server's index can't
        tell."""
        return await standing(self.client, self._users(user)) if self.settings.search_attributes else None

    async def last_day(self, *, user: Users = None) -> LastDay | None:
        """What the sessions of the last 24 hours cost, and how many failed. None if the server's index can't tell."""
        return await last_day(self.client, self._users(user)) if self.settings.search_attributes else None

    async def inbox(
        self,
        *,
        user: Users = None,
        team: str | None = None,
        tool: str | None = None,
        overdue: bool = False,
        patience_seconds: float = 5.0,
    ) -> Inbox:
        """All calls that wait for somebody, the longest waiting first, and all quarantined or paused sessions.

        `overdue`: only calls for which somebody was reminded, that were escalated, or that have expired by the server's
        clock. Longhaul reads the server's index, so no worker is needed; the index may be a moment late. If a session
        has more waiting calls than fit into its row, Longhaul asks the session. Sessions that do not answer within
        `patience_seconds` are listed separately. `team` needs the search attributes.
        """
        if self.settings.search_attributes:
            find = partial(query, user=self._users(user), team=self._indexed(team), tool=self._indexed(tool))
            found = await asyncio.gather(
                self._rows(find(status="waiting")),
                self._rows(find(status="paused")),
                self._outcome_unknown(find()),
            )
            rows = {card.workflow_id: (card, waits) for some in found for card, waits in some}
        else:
            # Those that wait for nobody have nothing in their memo.
            rows = {card.workflow_id: (card, waits) for card, waits in await self._rows(query()) if waits is not None}
        # Not everything can be asked of the server, and not of each server.
        wanted = [row for row in rows.values() if is_of(user, row[0].user_id) and team in (None, row[0].team)]
        late = await time_at(self.client) if overdue else None
        told = await gather(wanted, self.attach, tool=tool, overdue_at=late, patience_seconds=patience_seconds)
        heads = {card.root_workflow_id for card, call in told.calls if call.path} - {""}
        return replace(told, roots=await self._roots(sorted(heads)))

    async def _roots(self, workflow_ids: Sequence[str]) -> dict[str, SessionCard]:
        found = dict[str, SessionCard]()
        for start in range(0, len(workflow_ids), ROOTS_AT_ONCE):
            if wanted := by_ids(workflow_ids[start : start + ROOTS_AT_ONCE]):
                found |= {card.workflow_id: card for card in await self._cards(wanted)}
        return found

    async def statuses(self, cards: Sequence[SessionCard], *, patience_seconds: float = 5.0) -> dict[str, Status]:
        """The status of each session, by workflow id. Sessions that have closed, or do not answer within
        `patience_seconds`, are left out."""
        asked = {asyncio.create_task(self.attach(card).status()): card for card in cards}
        done, silent = await asyncio.wait(asked, timeout=patience_seconds) if asked else (set(), set())
        for task in silent:
            task.cancel()
        return {asked[task].workflow_id: task.result() for task in done if task.exception() is None}

    def _indexed(self, name: str | None) -> str | None:
        """As the server knows it."""
        return None if name is None else self._naming.indexed(name)

    def _users(self, user: Users) -> Users:
        return self._indexed(user) if user is None or isinstance(user, str) else [*map(self._naming.indexed, user)]

    async def _outcome_unknown(self, wanted: str) -> list[tuple[SessionCard, Waits | None]]:
        """None where the server does not know the attribute by which they are found."""
        try:
            return await self._rows(outcome_unknown(wanted))
        except RPCError:
            return []

    async def _rows(self, wanted: str) -> list[tuple[SessionCard, Waits | None]]:
        return [await card_and_waits(row) async for row in self.client.list_workflows(wanted)]

    async def _cards(self, wanted: str) -> list[SessionCard]:
        return [await card_of(row) async for row in self.client.list_workflows(wanted)]

    def attach(self, card: SessionCard) -> Session:
        """The session that a row of `sessions` or `inbox` describes."""
        session = of_card(self.client, self.settings, card)
        session.hooks.parent = self.hooks
        return session
