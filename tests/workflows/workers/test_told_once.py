"""Whoever prints the deltas of a reply as the seed's page does has its text once, however it came."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.transcript import ReplyReducer
from longhaul.starter.client.reading.live_stream import RESTARTED, WITHDRAWN
from longhaul.starter.client.session import Session
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

SLOW = {"text": "Forty-two is the answer.", "thinking": "Let me see.", "chunk_chars": 3, "delay_ms": 30}
CALLED = {**calls("fetch", page=7, chars=30), "chunk_chars": 4, "delay_ms": 20}


def printed(events: list[AgentEvent]) -> str:
    """As the seed's page does it."""
    return "".join(event.delta for event in events if hasattr(event, "delta"))


def folded(events: list[AgentEvent]) -> ReplyReducer:
    reducer = ReplyReducer()
    for event in events:
        reducer.take(event)
    return reducer


async def whole(session: Session, events: list[AgentEvent]) -> str:
    """What is recorded of all that has a delta, in its order."""
    page = await session.events(1)
    return "".join(event.delta for event in page.events if event.reply_id == events[0].reply_id)


@pytest.mark.proves("A2")
@pytest.mark.parametrize("live", [True, False])
async def test_thinking_text_calls_and_results_are_printed_once(stage: Stage, live: bool) -> None:
    session = stage.session({**SLOW, **CALLED, "text": "I look.", "delay_ms": 30}, SLOW)

    events = [event async for event in session.reply_stream("How many?", live=live)]

    assert printed(events) == await whole(session, events)
    assert printed(events).count("Forty-two is the answer.") == printed(events).count("<<page 7>>") == 1
    assert any(event.live and event.delta for event in events) == live
    recorded = [event.seq for event in events if event.seq]
    assert recorded == list(range(1, len(recorded) + 1))
    assert folded(events).message() == await session.wait(events[0].reply_id)


async def test_what_the_stream_has_lost_comes_from_the_record(stage: Stage, tmp_path: Path) -> None:
    session = stage.session({"text": "Warm."}, {**SLOW, "delay_ms": 100})
    await session.reply("Get ready")
    events: list[AgentEvent] = []

    async with aclosing(session.reply_stream("How many?")) as told:
        async for event in told:
            events.append(event)
            if event.live and event.delta == "For":
                (stage.settings.data_dir / "streams").rename(tmp_path / "elsewhere")

    assert printed(events) == await whole(session, events) == "Let me see.Forty-two is the answer."
    assert folded(events).message() == await session.wait(events[0].reply_id)


async def test_what_a_tool_tells_while_it_runs_and_does_not_answer_is_withdrawn(stage: Stage) -> None:
    session = stage.session(calls("chatty"), {"text": "Done."}, tools=["chatty"], permission={"mode": "bypass"})

    events = [event async for event in session.reply_stream("Go")]

    at = next(number for number, event in enumerate(events) if event.name == WITHDRAWN)
    assert "1 of 2" in printed(events[:at])
    assert "of 2" not in printed(events[at:])
    assert folded(events).message() == await session.wait(events[0].reply_id)


async def test_of_an_attempt_that_is_made_again_it_is_said_that_it_does_not_count(unserved: Stage) -> None:
    session = unserved.session({**SLOW, "delay_ms": 150})
    events: list[AgentEvent] = []

    async def read() -> None:
        async for event in session.reply_stream("How many?"):
            events.append(event)  # noqa: PERF401  they are looked at while they come

    reading = asyncio.create_task(read())
    async with unserved.worker_process():
        async with asyncio.timeout(SURE_SECONDS):
            while "For" not in printed(events):  # noqa: ASYNC110  it is being said
                await asyncio.sleep(0.02)
    async with unserved.another_worker():
        await reading
        recorded = await whole(session, events)

    assert [event.name for event in events if event.type == "CUSTOM" and event.live] == [RESTARTED]
    at = next(number for number, event in enumerate(events) if event.name == RESTARTED)
    assert printed(events[at:]) == recorded == "Let me see.Forty-two is the answer."
