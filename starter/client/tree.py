"""A session with all sub-agents below it: what waits anywhere in it is found, and answered, from the root."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longhaul.agent.operations.bodies import ExternalExecutionResultEvent, UserConfirmResultEvent
from longhaul.agent.values.budget import Raise
from longhaul.agent.values.subagents import Child
from longhaul.starter.client.cards import SessionCard, by_ids, card_and_waits, open_below
from longhaul.starter.client.reading.queries import NoSession
from longhaul.starter.client.wire import Refused, raised
from longhaul.workflows.contract import PendingCall, Status, SubAgentPlace

if TYPE_CHECKING:
    from temporalio.client import WorkflowExecution

    from longhaul.starter.client.session import Session

AnswerEvent = UserConfirmResultEvent | ExternalExecutionResultEvent
IDLE, WORKING = "idle", "working"
AT_ONCE = 20
"""Sessions of one tree that are asked at one time."""


@dataclass(frozen=True, slots=True)
class WaitingBelow:
    """A call that waits for somebody, and its session. Decide on `call` with the methods of `session`."""

    session: "Session"
    call: PendingCall
    above: tuple[tuple["Session", str], ...] = ()
    """The sessions above, from the root down, each with the call that gave the task. Empty for the root's own calls."""

    @property
    def listed(self) -> PendingCall:
        """The call as a session above lists it, with the place where it waits."""
        if not self.above:
            return self.call
        at = SubAgentPlace(
            session_id=self.session.id, agent=self.session.spec.name, workflow_id=self.session.workflow_id
        )
        return self.call.model_copy(update={"at": at})


@dataclass(frozen=True, slots=True)
class OpenBelow:
    """An open sub-agent, as the server's index describes it."""

    session: "Session"
    card: SessionCard
    asks: tuple[PendingCall, ...]
    """The calls that wait for somebody, as far as they fit into the index. Calls that only sleep are left out."""
    is_lead: bool
    """Whether it has open sub-agents of its own."""


class SessionTree:
    """A session with its sub-agents. Get it from `Session.tree`. Methods raise the errors of `Session.status`. A
    sub-agent that closes meanwhile raises no error, because it waits for nobody."""

    def __init__(
        self,
        root: "Session",
        opened: Callable[["Session", Child], "Session"],
        attached: Callable[[SessionCard], "Session"],
        index: "Callable[[str], AsyncIterator[WorkflowExecution]]",
    ) -> None:
        self._root = root
        self._opened = opened
        self._attached = attached
        self._index = index
        self._room = asyncio.Semaphore(AT_ONCE)
        self._head_id = ""
        """Once the index has told it."""

    async def pending(self) -> list[WaitingBelow]:
        """All calls that wait in the session and in its open sub-agents, as `Session.own_pending` lists them. The
        session's own calls come first, then those of sub-agents in the order in which these were started. A decision
        counts only for the call as it is shown here. A sub-agent whose task has ended stays open while something is
        needed from somebody, such as resolving a call of unknown outcome."""
        return await self._below(self._root, (), [])

    async def asking(self) -> tuple[list[OpenBelow], bool]:
        """The sub-agents that wait for somebody, and whether nothing below moves until they are answered. Longhaul
        reads this from the server's index."""
        # One that is idle has ended its task, and one that works on goes on without what is asked of it.
        below = [each for each in await self.open_below() if each.card.status != IDLE]
        found = [each for each in below if each.asks and each.card.status != WORKING]
        return found, bool(found) and all(each in found or each.is_lead for each in below)

    async def standing_still(self) -> list[PendingCall]:
        """What sub-agents wait for, if neither they nor the session move until it is answered; else an empty list.
        Longhaul asks the sessions only if the server's index says that sub-agents wait."""
        if not (await self.asking())[1]:
            return []
        moving: list[Session] = []
        found = await self._below(self._root, (), moving)
        return [] if moving else [each.listed for each in found if each.above and _is_asked(each.call)]

    async def open_below(self) -> list[OpenBelow]:
        """All open sub-agents below the session, from the server's index. The index may be a moment late."""
        own, head = self._root.workflow_id, await self._head()
        if not (wanted := open_below(head)):
            return []
        tree = [row async for row in self._index(wanted) if row.id != own]
        # At the head those count too whose lead has closed.
        rows = tree if own == head else _below(tree, own)
        leads = {row.parent_id for row in rows}
        found = list[OpenBelow]()
        for row in rows:
            card, waits = await card_and_waits(row)
            calls = waits.calls if waits is not None else ()
            asks = tuple(call for call in calls if _is_asked(call))
            found.append(OpenBelow(self._attached(card), card, asks, row.id in leads))
        return found

    async def _head(self) -> str:
        """The id at the head of the tree that it stands in: its own, or that of the session above all."""
        if not self._head_id and (own := by_ids([self._root.workflow_id])):
            self._head_id = next(iter([row.root_id or row.id async for row in self._index(own)]), "")
        return self._head_id or self._root.workflow_id

    async def raise_budget(
        self, waiting: WaitingBelow | PendingCall, more: Raise | Mapping[str, float], *, by: str = ""
    ) -> None:
        """Raise the limits of the whole tree by these amounts, as in `{"calls": 4}`, down to the session that waits for
        budget. A limit that only a lower session has is raised there. Raises Refused if a limit is not set."""
        more = raised(more)
        if isinstance(waiting, PendingCall):
            waiting = await self._found(waiting)
        way = [*waiting.above, (waiting.session, "")]
        budgets = [(await session.status()).budget for session, _ in way]
        given, above = dict[str, float](more.given()), set[str]()
        for (session, call_id), budget in zip(way, budgets, strict=True):
            limits = set(budget.limits) if budget is not None else set[str]()
            here = limits if call_id else set(given)
            if own := {name: given[name] for name in given if name in here and name not in above}:
                await session.change_budget(own, by=by)
            above |= limits
            if call_id and (handed := {name: given[name] for name in given if name in above}):
                await session.change_budget(handed, child=call_id, by=by)

    async def parts_of(self, event: AnswerEvent) -> "tuple[list[tuple[Session, AnswerEvent]], str]":
        """The event in parts, each with the session where its calls wait, and the id of the root's reply that goes on
        with them. No part, if none of its calls waits in a sub-agent. Raises Refused for a reply id of another
        reply."""
        found, given = await self.pending(), _answers_in(event)
        named = [_named(call_id, event.reply_id, found) for call_id, _ in given]
        if not all(named) or not any(each.above for one in named for each in one):
            return [], ""
        status = await self._root.status()
        parts: dict[tuple[str, str], tuple[Session, list[Any]]] = {}
        goes_on = ""
        for (call_id, answer), (one, *others) in zip(given, named, strict=True):
            if others:
                both = sorted((one, *others), key=lambda each: each.session.id)
                places = ", ".join(each.session.id for each in both)
                ids = ", ".join(repr(each.call.reply_id) for each in both)
                raise Refused(f"reply_id: call {call_id!r} waits in {places}; send the reply_id of one call: {ids}")
            goes_on = _reply_above(one, status)
            if event.reply_id not in (goes_on, one.call.reply_id):
                below = f", or {one.call.reply_id!r} of the sub-agent's session {one.session.id!r}" if one.above else ""
                told = f"reply_id: {event.reply_id!r} is not the reply of call {call_id!r}; send {goes_on!r}{below}"
                raise Refused(told)
            parts.setdefault((one.session.id, one.call.reply_id), (one.session, []))[1].append(answer)
        told_there = [(there, _part(event, reply_id, own)) for (_, reply_id), (there, own) in parts.items()]
        return told_there, goes_on

    async def _found(self, call: PendingCall) -> WaitingBelow:
        """Raises Refused for one that does not wait any more."""
        for each in await self.pending():
            if each.call.call_id == call.call_id and each.listed.at == call.at:
                return each
        raise Refused(f"waiting: {call.path or call.call_id!r} no longer waits; ask `pending` again")

    async def _below(
        self, session: "Session", above: tuple[tuple["Session", str], ...], moving: "list[Session]"
    ) -> list[WaitingBelow]:
        """`moving`: sessions are added that go on without an answer."""
        try:
            async with self._room:
                here = await session.pending_here()
        except NoSession:
            if not above:
                raise
            return []
        found = [WaitingBelow(session, call, above) for call in here.calls]
        started = [child for child in here.children if child.workflow_id]
        asks = here.status != WORKING and any(map(_is_asked, here.calls))
        if not here.delegates and not asks and here.status != IDLE:
            moving.append(session)
        deeper = await asyncio.gather(*(self._of_child(session, child, above, moving) for child in started))
        return [*found, *(each for part in deeper for each in part)]

    async def _of_child(
        self, session: "Session", child: Child, above: tuple[tuple["Session", str], ...], moving: "list[Session]"
    ) -> list[WaitingBelow]:
        opened = self._opened(session, child)
        if child.outcome:
            async with self._room:  # a closed one would be replayed to answer, so the server is asked first
                if await opened.end():
                    return []
        return await self._below(opened, (*above, (session, child.call_id)), moving)


def _answers_in(event: AnswerEvent) -> list[tuple[str, Any]]:
    """By the id of the call that each is about."""
    if isinstance(event, UserConfirmResultEvent):
        return [(one.tool_call.id, one) for one in event.confirm_results]
    return [(one.id, one) for one in event.execution_results]


def _named(call_id: str, reply_id: str, waiting: list[WaitingBelow]) -> list[WaitingBelow]:
    """The calls of that id: of that reply, or of any where that reply has none."""
    found = [each for each in waiting if each.call.call_id == call_id]
    return [each for each in found if each.call.reply_id == reply_id] or found


def _part(event: AnswerEvent, reply_id: str, answers: list[Any]) -> AnswerEvent:
    field = "confirm_results" if isinstance(event, UserConfirmResultEvent) else "execution_results"
    return event.model_copy(update={"reply_id": reply_id, field: tuple(answers)})


def _reply_above(waiting: WaitingBelow, root: Status) -> str:
    """Id of the root's reply that gave the task; that reply has ended where the task goes on in the background."""
    if not waiting.above:
        return waiting.call.reply_id
    task = waiting.above[0][1]
    return next((child.reply_id for child in root.children if child.call_id == task), "") or root.reply_id


def _is_asked(call: PendingCall) -> bool:
    """It does not just sleep."""
    return not call.wakes_at and not call.event


def _below(rows: "list[WorkflowExecution]", top: str) -> "list[WorkflowExecution]":
    """Those of a tree that stand below one of them, those above first."""
    found: list[WorkflowExecution] = []
    reached = {top}
    while more := [row for row in rows if row.parent_id in reached and row.id not in reached]:
        found += more
        reached |= {row.id for row in more}
    return found
