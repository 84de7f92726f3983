"""What is made is seen while it is made: between recorded events, and replaced by them."""

import asyncio
import time
from contextlib import aclosing
from datetime import datetime
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.transcript import ReplyReducer
from longhaul.starter.client.reading.event_reader import UNAVAILABLE
from longhaul.starter.client.session import Session
from tests.limits import usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

SLOW = {"text": "Forty-two is the answer.", "thinking": "Let me see.", "chunk_chars": 3, "delay_ms": 15}

SLOWER = {**SLOW, "delay_ms": 120}


def reducer(events: list[AgentEvent]) -> Msg:
    folded = ReplyReducer()
    for event in events:
        folded.take(event)
    return folded.message()


def live_text(events: list[AgentEvent], kind: str = "TEXT_BLOCK_DELTA") -> str:
    return "".join(event.delta for event in events if event.live and event.type == kind)


async def everything(session: Session, start: int, ready: asyncio.Barrier | None = None) -> list[AgentEvent]:
    """Recorded and live, from the event before `start`, after which the others are waited for, to the next end."""
    events: list[AgentEvent] = []
    async with aclosing(session.follow(start - 1)) as told:
        async for event in told:
            if event.seq == start - 1 and ready is not None:
                await ready.wait()
            elif event.seq != start - 1:
                events.append(event)
            if event.type == "REPLY_END" and event.seq >= start:
                return events
    raise AssertionError


async def test_text_and_thinking_come_in_pieces_before_they_are_recorded(stage: Stage) -> None:
    session = stage.session(SLOW)
    events = [event async for event in session.reply_stream("How many?")]

    assert live_text(events) == "Forty-two is the answer."
    assert live_text(events, "THINKING_BLOCK_DELTA") == "Let me see."
    assert len([event for event in events if event.live and event.delta]) > 5
    kinds = [event.type for event in events if event.live and not event.delta]
    assert kinds == [
        "MODEL_CALL_START",
        "THINKING_BLOCK_START",
        "THINKING_BLOCK_END",
        "TEXT_BLOCK_START",
        "TEXT_BLOCK_END",
    ]
    recorded = [event for event in events if event.seq]
    assert [event.seq for event in recorded] == list(range(1, len(recorded) + 1))
    first_said = next(at for at, event in enumerate(events) if event.seq and event.type == "MODEL_CALL_START")
    assert not any(event.live for event in events[first_said:])
    assert {event.reply_id for event in events} == {recorded[0].reply_id}
    assert reducer(events) == await session.wait(recorded[0].reply_id)


async def test_calls_and_the_output_of_tools_come_in_pieces(stage: Stage) -> None:
    command = "for i in 1 2 3; do echo line $i; sleep 0.1; done; printf end"
    line = {
        "tool_calls": [{"id": "b", "name": "Bash", "input": {"command": command}}],
        "chunk_chars": 4,
        "delay_ms": 20,
    }
    session = stage.session(
        line, calls("chatty"), {"text": "Done."}, tools=("Bash", "chatty"), permission={"mode": "bypass"}
    )

    events = [event async for event in session.reply_stream("Count")]

    assert command in live_text(events, "TOOL_CALL_DELTA")
    output = [event for event in events if event.live and event.type == "TOOL_RESULT_TEXT_DELTA"]
    told = {
        call_id: "".join(event.delta for event in output if event.tool_call_id == call_id)
        for call_id in dict.fromkeys(event.tool_call_id for event in output)
    }
    assert list(told.values()) == ["line 1\nline 2\nline 3\nend", "1 of 2\n2 of 2\n"]
    assert len([event for event in output if event.tool_call_id == "b"]) >= 3
    started = next(at for at, event in enumerate(events) if event.type == "TOOL_RESULT_START")
    ended = next(at for at, event in enumerate(events) if event.type == "TOOL_RESULT_END")
    assert started < events.index(output[0]) < ended
    assert reducer(events) == await session.wait(events[0].reply_id)


async def test_ten_readers_see_all_that_is_made_and_one_that_comes_after_the_end_the_same_record(stage: Stage) -> None:
    session = stage.session({"text": "Warm."}, SLOWER)
    await session.reply("Get ready")
    start = (await session.events(2**31)).last + 1
    ready = asyncio.Barrier(11)
    others = [stage.app.session(session.id, agent=session.spec) for _ in range(10)]
    readers = [asyncio.create_task(everything(other, start, ready)) for other in others]
    await ready.wait()

    reply_id = await session.submit("How many?")
    seen = await asyncio.gather(*readers)
    late = await everything(session, start)

    whole = await session.wait(reply_id)
    recorded = [event for event in late if event.seq]
    for events in (*seen, late):
        assert [event for event in events if event.seq] == recorded
        assert reducer(events) == whole
    assert [live_text(events) for events in (*seen, late)] == ["Forty-two is the answer."] * 10 + [""]


@pytest.mark.proves("A2")
async def test_a_reader_that_comes_back_goes_on_without_loss_or_repeat(stage: Stage) -> None:
    session = stage.session(calls("fetch", chars=3), SLOW)
    reply_id = await session.submit("Read")
    folded, seqs = ReplyReducer(reply_id), []
    while not folded.ended:
        async with aclosing(session.follow(folded.seq + 1)) as told:
            read = 0
            async for event in told:
                folded.take(event)
                read += bool(event.seq)
                seqs += [event.seq] if event.seq else []
                if event.type == "REPLY_END" or read == 2:
                    break

    assert seqs == list(range(1, len(seqs) + 1))
    assert folded.message() == await session.wait(reply_id)


async def test_who_can_not_read_the_stream_is_told_once_and_gets_all_that_is_recorded(
    stage: Stage, tmp_path: Path
) -> None:
    session = stage.session({"text": "Warm."}, SLOWER)
    await session.reply("Get ready")
    (stage.settings.data_dir / "streams").rename(tmp_path / "elsewhere")

    events = [event async for event in session.reply_stream("And now?")]

    assert [event.name for event in events if not event.seq] == [UNAVAILABLE]
    assert reducer([event for event in events if event.seq]) == await session.wait(events[-1].reply_id)


async def test_who_comes_after_an_interrupt_is_told_nothing_of_what_it_cut_off(stage: Stage) -> None:
    session = stage.session(SLOWER, SLOWER)
    cut_off = await session.submit("How many?")
    async with aclosing(session.follow()) as told:
        async for event in told:
            if event.live and event.delta == " is":
                break
    await session.interrupt()
    await session.wait(cut_off)
    start = (await session.events(2**31)).last + 1

    events = [event async for event in stage.app.session(session.id, agent=session.spec).reply_stream("Once more")]

    assert next(event.type for event in events if event.live) == "MODEL_CALL_START"
    assert live_text(events) == "Forty-two is the answer."
    assert "CUSTOM" not in [event.type for event in events]
    assert min(event.seq for event in events if event.seq) >= start


@pytest.mark.alone
async def test_the_end_of_a_reply_is_heard_of_at_once(stage: Stage) -> None:
    line = {"text": "x" * 60, "chunk_chars": 1, "delay_ms": 50}
    session = stage.session({"text": "Warm."}, line)
    await session.reply("Get ready")

    message = await session.reply("Slowly")
    heard = time.time()

    ended = message.finished_at
    assert heard - _seconds(ended) < usual(0.25), "after three seconds of waiting, growing pauses alone are 0.3 s long"


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()
