"""Providers that fail on the way: the run waits as long as it is told to, completes, and counts what it used once."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from tests.activities.models.wire import (
    Answer,
    Wire,
    chat_says,
    claude_calls,
    claude_says,
    gpt_calls,
)
from tests.limits import usual
from tests.servers.aimock import Aimock
from tests.workflows.conftest import Stage
from tests.workflows.operations import results, until

pytestmark = pytest.mark.server

CLAUDE, GPT = "anthropic:claude-haiku-4-5", "openai-chat:gpt-4o"
SAYS = {CLAUDE: claude_says("Fair wind."), GPT: chat_says("Fair wind.")}


def speaking(stage: Stage, model: str, url: str, **config: Any) -> Session:
    """A session whose model is at that address."""
    base_url = url if model == CLAUDE else f"{url}/v1"
    return stage.session(model=model, tools=["fetch"], model_config={"base_url": base_url, **config})


def refusing(status: int, **headers: str) -> Answer:
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}
    return Answer(json.dumps(body).encode(), status, {"content-type": "application/json", **headers})


@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_a_rate_limit_is_waited_for_as_long_as_the_provider_says(stage: Stage, wire: Wire, model: str) -> None:
    wire.answers = [refusing(429, **{"retry-after": "2"}), Answer(SAYS[model])]

    began = time.monotonic()
    done = await speaking(stage, model, wire.url).reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    assert 2 <= time.monotonic() - began < usual(60)
    assert len(wire.bodies) == 2


@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_a_run_outlasts_a_provider_that_fails_in_every_way(stage: Stage, wire: Wire, model: str) -> None:
    """Down, cut off in the middle of a word, talking malformed input, and then well again."""
    half = SAYS[model][: len(SAYS[model]) // 2]
    wire.answers = [
        refusing(500),
        Answer(half, whole=False),
        Answer(b"data: {{{\n\n"),
        refusing(503),
        Answer(SAYS[model]),
    ]
    session = speaking(stage, model, wire.url)

    done = await session.reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    assert len(wire.bodies) == 5
    assert (await session.status()).model_calls == 1


async def test_what_was_used_is_counted_once(stage: Stage, wire: Wire) -> None:
    wire.answers = [refusing(500), Answer(SAYS[CLAUDE])]
    session = speaking(stage, CLAUDE, wire.url)

    done = await session.reply("How is the wind?")

    status = await session.status()
    assert done.usage is not None
    assert (done.usage.input_tokens, done.usage.output_tokens) == (11, 7)
    assert (status.input_tokens, status.output_tokens) == (11, 7)


@pytest.mark.proves("A6")
async def test_another_model_takes_over_when_the_first_one_fails_for_good(stage: Stage, wire: Wire) -> None:
    wire.answers = [refusing(401)]
    fallback = stage.script({"text": "I stand in."})
    session = speaking(stage, GPT, wire.url, fallback_model=fallback)

    done = await session.reply("How is the wind?")

    assert (done.error, done.get_text_content()) == (None, "I stand in.")
    told = (await session.events()).events
    assert [event.model_name for event in told if event.name == "model_failed"] == [GPT]


async def test_a_reply_without_any_model_left_ends_with_the_reason_and_the_session_goes_on(
    stage: Stage, wire: Wire
) -> None:
    wire.answers = [refusing(401), Answer(SAYS[GPT])]
    session = speaking(stage, GPT, wire.url)

    failed = await session.reply("How is the wind?")
    done = await session.reply("And now?")

    assert failed.error is not None
    assert (failed.finished_reason, failed.error.type) == ("error", "authentication")
    assert "sk-proj" not in failed.model_dump_json()
    assert (done.error, done.get_text_content()) == (None, "Fair wind.")


async def test_a_waiting_retry_can_be_interrupted(stage: Stage, wire: Wire) -> None:
    wire.answers = [refusing(503, **{"retry-after": "600"}), Answer(SAYS[GPT])]
    session = speaking(stage, GPT, wire.url)
    reply = await session.submit("How is the wind?")
    await until(lambda: asked(wire, 1))

    await session.interrupt()
    stopped = await session.wait(reply)

    assert stopped.finished_reason == "interrupted"
    assert (await session.reply("And now?")).get_text_content() == "Fair wind."


async def asked(wire: Wire, count: int) -> bool:
    return len(wire.bodies) >= count


@pytest.mark.parametrize(("model", "turn"), [(CLAUDE, claude_calls), (GPT, gpt_calls)], ids=["claude", "gpt"])
async def test_broken_arguments_are_told_to_the_model_which_tries_again(
    stage: Stage, wire: Wire, model: str, turn: Callable[[str, str], bytes]
) -> None:
    turns = [turn("c-broken", '{"page": 8, "ch'), turn("c-good", '{"page": 8, "chars": 10}'), SAYS[model]]
    wire.answers = [Answer(body) for body in turns]

    done = await speaking(stage, model, wire.url).reply("Read page 8")

    assert (done.error, done.get_text_content()) == (None, "Fair wind.")
    (broken, why), good = results(done)
    assert (broken, good) == (ToolResultState.ERROR, (ToolResultState.SUCCESS, "<<page 8>>"))
    assert "not valid JSON" in why
    assert "not valid JSON" in json.dumps(wire.bodies[1])


@pytest.mark.aimock
@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_a_run_through_tools_completes_although_a_call_fails(stage: Stage, aimock: Aimock, model: str) -> None:
    read = {"id": "c-8", "name": "fetch", "arguments": '{"page": 8, "chars": 10}'}
    aimock.answer(
        {"match": {"toolCallId": "c-8"}, "response": {"content": "Read."}},
        {"match": {"userMessage": "page"}, "response": {"toolCalls": [read]}},
    )
    aimock.fail_next(500, message="Broken", type="server_error")

    done = await speaking(stage, model, aimock.url).reply("Read page 8")

    assert (done.error, done.get_text_content()) == (None, "Read.")
    assert results(done) == [(ToolResultState.SUCCESS, "<<page 8>>")]
    assert len(aimock.journal()) == 3


async def test_what_a_provider_does_not_report_is_estimated_and_says_so(stage: Stage, wire: Wire) -> None:
    wire.answers = [Answer(chat_says("Fair wind.")), Answer(claude_says("Fair wind."))]
    silent, speaks = speaking(stage, GPT, wire.url), speaking(stage, CLAUDE, wire.url)

    guessed = (await silent.reply("How is the wind?")).usage
    counted = (await speaks.reply("How is the wind?")).usage

    assert guessed is not None
    assert guessed.estimated
    assert guessed.input_tokens > 10
    assert 0 < guessed.output_tokens < 20
    assert counted is not None
    assert (counted.input_tokens, counted.output_tokens, counted.estimated) == (11, 7, False)
    assert [(await session.status()).tokens_estimated for session in (silent, speaks)] == [True, False]
