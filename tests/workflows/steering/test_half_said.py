"""A model that is interrupted while it speaks: what clients have read stays, marked, and the next turn is legal."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from longhaul.activities.attempt.model_attempts import BYTES_PER_TOKEN
from longhaul.agent.values.conversation.messages import HintBlock, Msg, TextBlock, ThinkingBlock, problem
from longhaul.starter.client.session import Session
from tests.activities.models.rules import assert_taken_by_all
from tests.activities.models.wire import (
    BEGINNINGS,
    Answer,
    Wire,
    chat_chunk,
    chat_says,
    chunks,
    claude_message,
    claude_says,
    events,
    response_says,
)
from tests.e2e.processes import worker
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import until

pytestmark = pytest.mark.server

CLAUDE, RESPONSES, CHAT = BEGINNINGS
SAYS = {CLAUDE: claude_says("Fine."), RESPONSES: response_says("Fine."), CHAT: chat_says("Fine.")}

_STARTED = {"type": "message_start", "message": claude_message(input_tokens=11, output_tokens=1)}
_ITEM = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c-half",
    "name": "fetch",
    "arguments": "",
    "status": "in_progress",
}
_ARGUMENTS = {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1"}
_FUNCTION = {"name": "fetch", "arguments": '{"pa'}


def _block(index: int, kind: dict[str, Any], delta: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (
        {"type": "content_block_start", "index": index, "content_block": kind},
        {"type": "content_block_delta", "index": index, "delta": delta},
    )


IN_THINKING = {
    CLAUDE: events(
        _STARTED,
        *_block(
            0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "Hm, "}
        ),
    ),
    CHAT: chunks(chat_chunk({"reasoning_content": "Hm, "}), done=False),
}
IN_A_CALL = {
    CLAUDE: events(
        _STARTED,
        *_block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "never ends"}),
        {"type": "content_block_stop", "index": 0},
        *_block(
            1,
            {"type": "tool_use", "id": "c-half", "name": "fetch", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"pa'},
        ),
    ),
    CHAT: chunks(
        chat_chunk({"content": "never ends"}),
        chat_chunk({"tool_calls": [{"index": 0, "id": "c-half", "type": "function", "function": _FUNCTION}]}),
        done=False,
    ),
    RESPONSES: BEGINNINGS[RESPONSES]
    + events(
        {"type": "response.output_item.added", "output_index": 1, "item": _ITEM, "sequence_number": 4},
        {**_ARGUMENTS, "delta": '{"pa', "sequence_number": 5},
    ),
}


def speaking(stage: Stage, model: str, wire: Wire, **spec: Any) -> Session:
    base_url = wire.url if model == CLAUDE else f"{wire.url}/v1"
    return stage.session(model=model, tools=["fetch"], model_config={"base_url": base_url}, **spec)


async def heard(session: Session, kind: str) -> None:
    """Return when a client has read a piece of this kind."""
    async with aclosing(session.follow()) as told:
        async for event in told:
            if event.type == kind:
                return


async def interrupted(session: Session, wire: Wire, beginning: bytes, kind: str) -> tuple[Msg, list[Msg]]:
    """The reply whose model is interrupted there, and the transcript."""
    wire.answers = [Answer(beginning, whole=False, then_wait=True)]
    reply = await session.submit("Look at page 4")
    await heard(session, kind)
    await session.interrupt()
    async with asyncio.timeout(SURE_SECONDS):
        done = await session.wait(reply)
        await wire.hung_up.wait()
    return done, [message async for message in session.transcript()]


def hints(transcript: list[Msg]) -> list[str]:
    return [str(block.hint) for message in transcript for block in message.content if isinstance(block, HintBlock)]


async def next_request(session: Session, wire: Wire, model: str) -> str:
    """What the provider is sent on the next turn, which works."""
    wire.answers = [Answer(SAYS[model])]
    done = await session.reply("Go on")
    assert (done.error, done.get_text_content()) == (None, "Fine.")
    return json.dumps(wire.bodies[-1])


@pytest.mark.proves("C3")
@pytest.mark.parametrize("model", list(BEGINNINGS))
async def test_text_that_was_read_is_recorded_and_the_model_hears_that_it_was_cut_off(
    stage: Stage, wire: Wire, model: str
) -> None:
    session = speaking(stage, model, wire)

    done, transcript = await interrupted(session, wire, BEGINNINGS[model], "TEXT_BLOCK_DELTA")

    assert (done.finished_reason, done.get_text_content()) == ("interrupted", "never ends")
    assert hints(transcript) == [
        "Your answer was interrupted here, before it was finished: nothing more of it was said."
    ]
    sent = await next_request(session, wire, model)
    assert "never ends" in sent
    assert "Your answer was interrupted here" in sent
    assert sent.index("never ends") < sent.index("interrupted here") < sent.index("Go on")
    told = (await session.events()).events
    assert [event.value for event in told if event.name == "cut_short"] == [{"started_calls": []}]
    assert_taken_by_all([message async for message in session.transcript()])


@pytest.mark.proves("C3")
@pytest.mark.parametrize("model", list(BEGINNINGS))
async def test_what_it_took_is_counted_as_estimated_and_once(stage: Stage, wire: Wire, model: str) -> None:
    """The provider bills what it has read and written, and has reported none of it."""
    session = speaking(stage, model, wire)

    done, _ = await interrupted(session, wire, BEGINNINGS[model], "TEXT_BLOCK_DELTA")

    status = await session.status()
    assert done.usage is not None
    assert 0 < done.usage.input_tokens <= status.context_tokens
    assert (done.usage.output_tokens, done.usage.estimated) == (len("never ends") // BYTES_PER_TOKEN, True)
    assert (status.input_tokens, status.output_tokens) == (done.usage.input_tokens, done.usage.output_tokens)
    assert status.tokens_estimated
    assert [(one.calls, one.usage) for one in status.by_model.values()] == [(1, done.usage)]
    assert (status.model_calls, status.lost.calls) == (1, 0)
    ends = [event for event in (await session.events()).events if event.type == "MODEL_CALL_END"]
    assert [(end.input_tokens, end.output_tokens, end.estimated) for end in ends] == [
        (done.usage.input_tokens, done.usage.output_tokens, True)
    ]
    assert await session.wait(done.id) == done


@pytest.mark.parametrize("model", IN_THINKING)
async def test_thinking_without_its_signature_stays_here(stage: Stage, wire: Wire, model: str) -> None:
    session = speaking(stage, model, wire)

    done, transcript = await interrupted(session, wire, IN_THINKING[model], "THINKING_BLOCK_DELTA")

    assert [block for block in done.content if isinstance(block, ThinkingBlock)] == [ThinkingBlock(thinking="Hm, ")]
    sent = await next_request(session, wire, model)
    assert "Hm, " not in sent
    assert "Your answer was interrupted here" in sent
    assert problem(transcript) == ""


@pytest.mark.parametrize("model", IN_A_CALL)
async def test_half_a_call_is_dropped_and_the_model_hears_of_it(stage: Stage, wire: Wire, model: str) -> None:
    session = speaking(stage, model, wire)

    done, transcript = await interrupted(session, wire, IN_A_CALL[model], "TOOL_CALL_DELTA")

    assert [type(block) for block in done.content] == [TextBlock]
    assert hints(transcript)[0].endswith("You were writing calls ('fetch'): they were dropped, and none of them ran.")
    sent = await next_request(session, wire, model)
    assert "c-half" not in sent
    assert problem([message async for message in session.transcript()]) == ""


async def test_before_the_first_word_there_is_nothing_to_record(stage: Stage, wire: Wire) -> None:
    wire.answers = [Answer(b"", whole=False, then_wait=True)]
    session = speaking(stage, CHAT, wire)
    reply = await session.submit("Look at page 4")

    async def was_asked() -> bool:
        return bool(wire.bodies)

    await until(was_asked)
    await session.interrupt()
    done = await session.wait(reply)

    transcript = [message async for message in session.transcript()]
    assert (done.content, len(transcript), hints(transcript)) == ((), 1, [])
    assert "interrupted here" not in await next_request(session, wire, CHAT)


async def test_what_an_interrupt_says_is_answered_behind_the_half_answer(stage: Stage, wire: Wire) -> None:
    wire.answers = [Answer(BEGINNINGS[CHAT], whole=False, then_wait=True), Answer(SAYS[CHAT])]
    session = speaking(stage, CHAT, wire)
    await session.submit("Look at page 4")
    await heard(session, "TEXT_BLOCK_DELTA")

    await session.interrupt("What did you see?")

    async def is_answered() -> bool:
        return len(wire.bodies) == 2 and (await session.status()).status == "idle"

    await until(is_answered)
    assert [message async for message in session.transcript()][-1].get_text_content() == "Fine."
    sent = json.dumps(wire.bodies[-1])
    assert sent.index("never ends") < sent.index("interrupted here") < sent.index("What did you see?")


async def test_a_worker_that_is_killed_while_its_model_speaks_leaves_nothing(unserved: Stage, wire: Wire) -> None:
    stage = unserved
    wire.answers = [Answer(BEGINNINGS[CHAT], whole=False, then_wait=True), Answer(SAYS[CHAT])]
    session = stage.session(
        model=CHAT, tools=["fetch"], model_config={"base_url": f"{wire.url}/v1", "api_key_env": "none"}
    )
    further = {"LONGHAUL_MODEL_KEYS": f"none={wire.url}/v1"}
    settings = replace(stage.worker_settings, further=further)
    async with worker(settings) as first:
        reply = await session.submit("Look at page 4")
        await heard(session, "TEXT_BLOCK_DELTA")
        await first.kill()
    async with worker(settings):
        done = await session.wait(reply)
        transcript = [message async for message in session.transcript()]

    assert (done.error, done.get_text_content()) == (None, "Fine.")
    assert "never ends" not in "".join(message.get_text_content() for message in transcript)
