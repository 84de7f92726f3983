"""Lists are read from the server's index: no session is asked, and no worker has to be there."""

import asyncio
import time
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from benchmarks.cost import free_port, requests
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.telemetry.switches import runtime_with
from longhaul.workflows.contract import (
    COST,
    STATUS,
    TEAM,
    TITLE,
    TOKENS,
    WAITS,
    WORKFLOW,
    PendingCall,
    SessionStart,
    Waits,
)
from tests.limits import usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

ROWS = 1_000
MOST_SECONDS = 0.3
DIGEST = "5" * 64
MEMO = {"user": "ana", "agent": "lamp", TITLE: "Write to Ana " * 9}
PRICED = (51_300, 4.2, "Write")


async def told(app: Longhaul, stage: Stage) -> dict[str, Any]:
    """What the inbox has of this stage's team, by the sessions' names."""
    found = await app.inbox(team=stage.name, patience_seconds=0.5)
    rows: dict[str, Any] = {card.session_id: call for card, call in found.calls}
    rows |= {card.session_id: status for card, status in (*found.quarantined, *found.paused)}
    rows |= dict.fromkeys((card.session_id for card in found.silent), "silent")
    return rows


async def is_told(app: Longhaul, stage: Stage, *sessions: Session) -> None:
    """Until the index, which is a moment late, has these sessions and no others."""

    async def there() -> bool:
        return set(await told(app, stage)) == {session.id for session in sessions}

    await until(there)


async def test_all_kinds_of_waiting_are_told_without_a_worker_and_without_a_question(unserved: Stage) -> None:
    port = free_port()
    client = await connect(unserved.address, settings=unserved.settings, runtime=runtime_with(f"127.0.0.1:{port}"))
    app = Longhaul(client, unserved.settings)
    asks = unserved.session(calls("send", to="Ana"), id=f"{unserved.name}-asks", user="ana", team=unserved.name)
    outside = unserved.session(calls("courier", parcel="teapot"), id=f"{unserved.name}-outside", team=unserved.name)
    paused = unserved.session({"text": "Noted."}, id=f"{unserved.name}-paused", team=unserved.name)
    done = unserved.session({"text": "Done."}, id=f"{unserved.name}-done", team=unserved.name)
    async with unserved.another_worker():
        for session in (asks, outside, paused, done):
            await session.reply("Go")
        await paused.pause(why="the mill is closed", by="ana")
        (call,) = await asks.pending()
        await is_told(app, unserved, asks, outside, paused)

    rows = await told(app, unserved)

    assert requests(port)["QueryWorkflow"] == 0
    assert rows[asks.id] == call
    assert (rows[outside.id].tool, rows[outside.id].waits_for) == ("courier", "outside")
    assert (rows[paused.id].paused_why, rows[paused.id].paused_by) == ("the mill is closed", "ana")
    await let_go(client)


async def test_a_row_goes_when_nobody_is_waited_for_any_more(stage: Stage) -> None:
    session = stage.session(calls("send", to="Ana"), {"text": "Sent."}, team=stage.name)
    reply = await session.reply("Go")
    await is_told(stage.app, stage, session)
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    await session.wait(reply.id)

    await is_told(stage.app, stage)
    history = await stage.handle(session).fetch_history()
    kinds = [event.WhichOneof("attributes") for event in history.events]
    assert kinds.count("workflow_properties_modified_event_attributes") == 2


@pytest.mark.parametrize("line", [calls("send", to="Ana", text="x" * 9_000), {"tool_calls": [
    {"name": "send", "input": {"to": str(number)}} for number in range(20)
]}])  # fmt: skip
async def test_a_session_is_asked_when_its_row_has_no_room_for_all(unserved: Stage, line: dict[str, Any]) -> None:
    session = unserved.session(line, team=unserved.name)
    async with unserved.another_worker():
        await session.reply("Go")
        waiting = await session.pending()

        async def all_told() -> bool:
            found = await unserved.app.inbox(team=unserved.name)
            return [call for card, call in found.calls if card.session_id == session.id] == waiting

        await until(all_told)

    assert await told(unserved.app, unserved) == {session.id: "silent"}


async def started(client: Client, stage: Stage, number: int, team: str) -> None:
    """A session that waits, as its row shows it; no worker looks at its queue."""
    call = PendingCall(
        reply_id=f"r-{number}",
        call_id=f"call_{number}",
        tool="send",
        input='{"to": "Ana", "text": "' + "tea " * 50 + '"}',
        waits_for="person",
        reason="sending is asked about",
        asked_at="2026-01-02T12:00:00+00:00",
        digest=DIGEST,
    )
    pairs: list[Any] = [(STATUS, "waiting"), (TEAM, team), (TOKENS, 51_300), (COST, 4.2)]
    attributes: list[Any] = [SearchAttributePair(key, value) for key, value in pairs]
    name = f"{stage.name}-{number}"
    await client.start_workflow(
        WORKFLOW,
        SessionStart(session_id=name),
        id=f"longhaul/{name}",
        task_queue=stage.settings.task_queue,
        memo={**MEMO, "session": name, WAITS: Waits(calls=(call,)).model_dump_json()},
        search_attributes=TypedSearchAttributes(attributes),
    )


@pytest.mark.proves("X4")
@pytest.mark.alone
async def test_a_thousand_rows_are_listed_in_a_moment(unserved: Stage) -> None:
    team = f"{unserved.name}-team"
    for first in range(0, ROWS, 50):
        await asyncio.gather(*(started(unserved.client, unserved, number, team) for number in range(first, first + 50)))
    app = unserved.app

    async def all_there() -> bool:
        return len((await app.inbox(team=team)).calls) == ROWS

    await until(all_there)
    took: dict[str, list[float]] = {"bare": [], "inbox": [], "sessions": []}
    for _ in range(5):
        began = time.monotonic()
        assert [row async for row in unserved.client.list_workflows(f"LonghaulTeam = '{team}'")]
        took["bare"].append(time.monotonic() - began)
        began = time.monotonic()
        found = await app.inbox(team=team)
        took["inbox"].append(time.monotonic() - began)
        began = time.monotonic()
        listed = await app.sessions(status="waiting")
        took["sessions"].append(time.monotonic() - began)
        assert (len(found.calls), found.silent) == (ROWS, [])
        assert len([card for card in listed if (card.tokens, card.dollars, card.title[:5]) == PRICED]) >= ROWS

    most = max(usual(MOST_SECONDS), 3 * min(took["bare"]))  # a server that is busy with other things
    assert min(took["inbox"]) <= most, took
    assert min(took["sessions"]) <= most, took
