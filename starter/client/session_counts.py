"""Counts of sessions that run, wait, sleep or rest, and the cost of those of the last day: by the server's index, so
that no session is asked and no page of rows is read for a number.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.starter.client.cards import SLEEPS, Users, query
from longhaul.workflows.contract import COST, TOKENS, TOOLS, WORKFLOW

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """Counts of open sessions, sub-agents included."""

    working: int
    waiting: int
    """Sessions that wait for somebody. Sessions that only sleep are not counted."""
    asleep: int
    paused: int


@dataclass(frozen=True, slots=True)
class LastDay:
    """The sessions whose newest run began in the last 24 hours."""

    sessions: int
    tokens: int
    dollars: float
    """Cost in US dollars; 0 if no budget in money makes workers know the prices."""
    failed: int
    """Workflows that ended as failed or timed out in that time."""


async def standing(client: Client, user: Users) -> SessionCounts | None:
    """`user`: as the index has the name; None counts everybody's. None where the server does not know the attributes,
    or could not tell this name from another: then a count would be of somebody else's sessions."""
    if user is not None and query(user=user) == query():
        return None
    sleeping = f"{query(user=user, status='waiting')} AND {TOOLS.name} IN ('{SLEEPS[0]}', '{SLEEPS[1]}')"
    try:
        working, waiting, paused, asleep = await asyncio.gather(
            client.count_workflows(query(user=user, status="working")),
            client.count_workflows(query(user=user, status="waiting")),
            client.count_workflows(query(user=user, status="paused")),
            _that_only_sleep(client, sleeping),
        )
    except RPCError:
        return None
    return SessionCounts(working.count, max(waiting.count - asleep, 0), asleep, paused.count)


async def _that_only_sleep(client: Client, sleeping: str) -> int:
    """A session may sleep in one call and ask for an answer in another, and no query tells these apart."""
    found = 0
    async for row in client.list_workflows(sleeping):
        found += not {*(row.typed_search_attributes.get(TOOLS) or ())} - {*SLEEPS}
    return found


async def last_day(client: Client, user: Users) -> LastDay | None:
    """As `standing`; a session that closed counts as long as the server has not forgotten it."""
    if user is not None and query(user=user) == query():
        return None
    since = (datetime.now(UTC) - DAY).isoformat(timespec="seconds")
    started = f"{query(user=user, closed=True)} AND StartTime > '{since}'"
    narrowed = query(user=user).partition("'Running'")[2]
    over = f"WorkflowType = '{WORKFLOW}' AND ExecutionStatus IN ('Failed', 'TimedOut') AND CloseTime > '{since}'"
    sessions, tokens, dollars = 0, 0, 0.0
    try:
        failed = await client.count_workflows(over + narrowed)
        async for row in client.list_workflows(started):
            attributes = row.typed_search_attributes
            sessions += 1
            tokens += attributes.get(TOKENS) or 0
            dollars += attributes.get(COST) or 0.0
    except RPCError:
        return None
    return LastDay(sessions, tokens, dollars, failed.count)
