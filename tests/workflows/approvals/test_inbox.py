"""Everything that waits, over all sessions: found by the server's index, told by the sessions."""

from typing import Any
from uuid import uuid4

import pytest

from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

TELL_ANA = calls("send", to="Ana")
SEND_TEAPOT = calls("courier", parcel="teapot")


async def ids(stage: Stage, **wanted: Any) -> list[str]:
    found = await stage.app.inbox(**wanted)
    assert found.silent == []
    return [card.session_id for card, _ in found.calls]


async def card(stage: Stage, session: Session) -> SessionCard:
    """The session's row in the index."""
    (found,) = await stage.app.sessions(session_id=session.id)
    return found


@pytest.mark.proves("X4")
async def test_the_inbox_is_searched_by_team_tool_and_lateness(stage: Stage) -> None:
    team = f"payments-{uuid4().hex[:6]}"
    late = {"permission": {"deadline": {"remind_after": 0.1, "expire_after": "2h"}}}
    first = stage.session(TELL_ANA, {"text": "Delivered."}, id=f"{stage.name}-1", team=team, user="ana", **late)
    second = stage.session(SEND_TEAPOT, id=f"{stage.name}-2", team=team)
    other = stage.session(TELL_ANA, id=f"{stage.name}-3", team=f"not-{team}", user="ana")
    waiting = await first.reply("Tell Ana")
    await second.reply("Send the teapot")
    await other.reply("Tell Ana")

    async def listed() -> bool:
        return await ids(stage, team=team) == [first.id, second.id] and bool((await first.pending())[0].reminded_at)

    await until(listed)
    assert await ids(stage, team=team, tool="courier") == [second.id]
    assert await ids(stage, team=team, user="ana") == [first.id]
    assert await ids(stage, team=team, overdue=True) == [first.id]
    (call,) = await first.pending()
    row = await card(stage, first)
    assert (row.team, row.waiting_tools, row.deadline[:19]) == (team, ("send",), call.expires_at[:19])

    await first.confirm(call, allow=True)
    await first.wait(waiting.id)

    async def gone() -> bool:
        return (await card(stage, first)).status == "idle"

    await until(gone)
    row = await card(stage, first)
    assert (row.team, row.waiting_tools, row.deadline, row.waiting_since) == (team, (), "", "")
    assert await ids(stage, team=team) == [second.id]


async def test_what_waits_in_the_index_costs_one_event_each_time(stage: Stage) -> None:
    session = stage.session(
        TELL_ANA, {"text": "Delivered."}, permission={"deadline": {"expire_after": "2h"}}, team="tea"
    )
    waiting = await session.reply("Tell Ana")
    await session.confirm("call_0_0", allow=True)
    await session.wait(waiting.id)
    await session.reply("And again?")
    await session.status()

    history = await stage.handle(session).fetch_history()

    kinds = [event.WhichOneof("attributes") for event in history.events]
    shown = kinds.count("upsert_workflow_search_attributes_event_attributes")
    assert shown == 5, "waiting, working, idle, working, idle"
