"""Clients that wait: they look at the server, ask the session only when there is something to hear, and hear it soon.

Requests are counted by the SDK's own metrics.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.cost import free_port, requests
from longhaul.activities.contract import CALL_MODEL
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.telemetry.switches import runtime_with
from tests.limits import SURE_SECONDS, usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = [pytest.mark.server, pytest.mark.alone]

MODEL_SECONDS = 8.0
SETTLED_SECONDS, WINDOW_SECONDS = 1.5, 3.5
"""All that comes at the beginning has come when nothing is asked for so long; and how long nothing is asked then."""
LATE_SECONDS = 2.0
"""At most, after the server had the model's answer: a tenth of the time waited, where there is no stream."""
SLOW = {"delay_ms": MODEL_SECONDS * 1000, "chunk_chars": 10_000}
WAYS = ("reply", "wait", "reply_stream", "recorded_stream", "follow", "feed")


@dataclass
class Counted:
    """A client whose requests are counted."""

    app: Longhaul
    port: int

    def requests(self) -> Counter[str]:
        return requests(self.port)

    @property
    def queries(self) -> int:
        return self.requests()["QueryWorkflow"]

    async def settled(self) -> None:
        before = -1
        while (asked := self.queries) != before:
            before = asked
            await asyncio.sleep(SETTLED_SECONDS)


@pytest.fixture(params=["stream", "no stream"])
def streaming(request: pytest.FixtureRequest, unserved: Stage) -> bool:
    """Whether the workers have a place for live streams."""
    if request.param == "no stream":
        unserved.settings.data_dir.mkdir(parents=True)
        (unserved.settings.data_dir / "streams").write_text("no folder")
    return bool(request.param == "stream")


@pytest.fixture
async def counted(unserved: Stage) -> AsyncIterator[Counted]:
    port = free_port()
    client = await connect(unserved.address, settings=unserved.settings, runtime=runtime_with(f"127.0.0.1:{port}"))
    yield Counted(Longhaul(client, unserved.settings), port)
    await let_go(client)


async def seen_through(app: Longhaul, session: Session, way: str) -> float:
    """Ask, wait in that way until the reply has ended; when that was heard."""
    match way:
        case "reply":
            assert (await session.reply("Go")).get_text_content() == "Done."
        case "wait":
            assert (await session.wait(await session.submit("Go"))).get_text_content() == "Done."
        case "reply_stream" | "recorded_stream":
            assert [event async for event in session.reply_stream("Go", live=way == "reply_stream")]
        case "follow":
            await session.submit("Go")
            assert await ends_of(session, 1) == 1
        case "feed":
            await session.submit("Go")
            await ended_in_feed(app, session)
    return time.time()


async def ended_in_feed(app: Longhaul, session: Session) -> None:
    async with app.feed([session], start=1) as feed:
        async for item in feed:
            if item.event.type == "REPLY_END":
                break


async def answers(stage: Stage, session: Session) -> list[float]:
    """When the server was told what the model had said."""
    events = (await stage.handle(session).fetch_history()).events
    asked = {
        event.event_id
        for event in events
        if event.activity_task_scheduled_event_attributes.activity_type.name == CALL_MODEL
    }
    done = [e for e in events if e.activity_task_completed_event_attributes.scheduled_event_id in asked]
    return [event.event_time.ToNanoseconds() / 1e9 for event in done]


@pytest.mark.proves("X18")
async def test_who_waits_for_a_model_asks_nobody_and_hears_the_end(
    unserved: Stage, counted: Counted, streaming: bool
) -> None:
    agent = unserved.agent({"text": "Done.", **SLOW})
    sessions = [counted.app.session(f"{unserved.name}-{way}", agent=agent) for way in WAYS]
    async with unserved.another_worker():
        waiting = [seen_through(counted.app, session, way) for session, way in zip(sessions, WAYS, strict=True)]
        heard = asyncio.gather(*waiting)
        await counted.settled()
        before = counted.requests()
        await asyncio.sleep(WINDOW_SECONDS)
        asked = counted.requests() - before
        ends = await heard
    made = [(await answers(unserved, session))[0] for session in sessions]
    late = {way: end - at for way, end, at in zip(WAYS, ends, made, strict=True)}

    assert asked["QueryWorkflow"] == 0, asked
    assert max(late.values()) < usual(LATE_SECONDS if streaming else MODEL_SECONDS / 10 + LATE_SECONDS), late


async def test_who_waits_for_what_waits_for_a_person_asks_nobody(
    unserved: Stage, counted: Counted, streaming: bool
) -> None:
    del streaming
    agent = unserved.agent(calls("send", to="Ana"), {"text": "Sent."}, {"text": "And this."})
    session = counted.app.session(f"{unserved.name}-parked", agent=agent)
    async with unserved.another_worker():
        await session.reply("Write to Ana")
        behind = asyncio.create_task(session.wait(await session.submit("And then?")))
        watching = asyncio.create_task(ends_of(session, 2))
        await asyncio.sleep(2 * SETTLED_SECONDS)  # it is looked at once more when what was asked is written down
        await counted.settled()
        before = counted.queries
        await asyncio.sleep(WINDOW_SECONDS)
        asked = counted.queries - before

        (call,) = await session.pending()
        await session.confirm(call, allow=True)
        said = (await asyncio.wait_for(behind, SURE_SECONDS)).get_text_content()
        ends = await asyncio.wait_for(watching, SURE_SECONDS)

    assert asked == 0
    assert said == "And this."
    assert ends == 2


async def ends_of(session: Session, count: int) -> int:
    """Follow it until so many replies have ended."""
    seen = 0
    async with aclosing(session.follow()) as events:
        async for event in events:
            seen += event.type == "REPLY_END"
            if seen == count:
                break
    return seen


async def test_while_no_worker_is_there_nobody_is_asked_and_then_all_is_heard(
    unserved: Stage, counted: Counted
) -> None:
    agent = unserved.agent({"text": "Done."}, {"text": "Done."})
    session = counted.app.session(f"{unserved.name}-left", agent=agent)
    async with unserved.another_worker():
        await session.reply("Go")
        watching = asyncio.create_task(ends_of(session, 2))
        await counted.settled()
    before = counted.queries
    await unserved.handle(session).signal("submit", {"request_id": "r-two", "messages": []})
    await asyncio.sleep(WINDOW_SECONDS)
    asked = counted.queries - before
    async with unserved.another_worker():
        assert await asyncio.wait_for(watching, SURE_SECONDS) == 2

    assert asked == 0


async def test_an_end_behind_which_the_next_reply_begins_is_heard_at_once(unserved: Stage, counted: Counted) -> None:
    quick = {"delay_ms": 2_000, "chunk_chars": 10_000}
    agent = unserved.agent({"text": "Ready."}, {"text": "One.", **quick}, {"text": "Two.", **SLOW})
    session = counted.app.session(f"{unserved.name}-queued", agent=agent)
    async with unserved.another_worker():
        await session.reply("Are you there?")
        before = counted.queries
        first = await session.submit("One")
        await session.submit("Two")
        said, heard = (await session.wait(first)).get_text_content(), time.time()
        asked = counted.queries - before

    assert said == "One."
    assert heard - (await answers(unserved, session))[1] < usual(LATE_SECONDS)
    assert asked <= 3  # when it was started, the stream's address, and when it had ended


async def test_many_who_wait_in_one_queue_ask_once_or_twice_each(unserved: Stage, counted: Counted) -> None:
    count = 20
    lines: list[dict[str, Any]] = [{"text": f"Number {number}.", "delay_ms": 200} for number in range(count)]
    session = counted.app.session(f"{unserved.name}-crowd", agent=unserved.agent(*lines))
    async with unserved.another_worker():
        replies = await asyncio.gather(*[session.reply(str(number)) for number in range(count)])
        asked = counted.queries

    assert len({reply.id for reply in replies}) == count
    assert asked <= 5 * count, asked  # on a busy machine some are put twice
