"""How a model stopped, by real SDKs over HTTP, and what the session makes of it."""

import json
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import CONTINUES, HintBlock, ToolResultState, problem
from longhaul.agent.values.conversation.prompt import GO_ON
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.session import Session
from tests.activities.models.replies.stopping import (
    APIS,
    CHAT,
    CLAUDE,
    RESPONSES,
    half_a_call,
    refusing_in_parts,
    stopping,
)
from tests.activities.models.rules import assert_taken_by_all
from tests.activities.models.wire import Answer, Wire, claude_calls, gpt_calls
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import results

pytestmark = pytest.mark.server

LENGTH = {CLAUDE: "max_tokens", RESPONSES: "max_output_tokens", CHAT: "length"}
END = {CLAUDE: "end_turn", RESPONSES: "completed", CHAT: "stop"}
BROKEN = [
    (CLAUDE, "max_tokens", "length"),
    (CLAUDE, "pause_turn", "paused"),
    (RESPONSES, "max_output_tokens", "length"),
    (RESPONSES, "incomplete", "paused"),
    (CHAT, "length", "length"),
]
REFUSALS = [
    (CLAUDE, "refusal", "refused"),
    (RESPONSES, "content_filter", "filtered"),
    (CHAT, "content_filter", "filtered"),
    (CHAT, "refusal", "refused"),
]


def speaking(stage: Stage, model: str, wire: Wire, *, config: dict[str, Any] | None = None, **spec: Any) -> Session:
    """A watched agent whose model is at that address."""
    base_url = wire.url if model == CLAUDE else f"{wire.url}/v1"
    given = {"base_url": base_url, **(config or {})}
    return stage.session(model=model, tools=["fetch"], stuck=StuckConfig(), model_config=given, **spec)


def ending(model: str, words: str) -> Answer:
    return Answer(stopping(model, END[model], words))


@pytest.mark.parametrize(("model", "reason", "meant"), BROKEN)
async def test_what_broke_off_is_gone_on_with_and_the_model_hears_why(
    stage: Stage, wire: Wire, model: str, reason: str, meant: str
) -> None:
    wire.answers = [Answer(stopping(model, reason, "One, tw")), ending(model, "o, three.")]
    session = speaking(stage, model, wire)

    done = await session.reply("Count")

    assert (done.error, done.finished_reason, done.get_text_content()) == (None, "completed", "One, two, three.")
    sent = json.dumps(wire.bodies[1])
    assert sent.index("One, tw") < sent.index(GO_ON[meant][:30])  # type: ignore[index]
    told = (await session.events()).events
    assert [event.value for event in told if event.name == "broken_off"] == [{"stop": meant, "stop_reason": reason}]
    transcript = [message async for message in session.transcript()]
    assert problem(transcript) == ""
    assert_taken_by_all(transcript)


@pytest.mark.parametrize("model", APIS)
async def test_a_model_that_does_not_come_to_its_end_ends_the_reply_as_incomplete(
    stage: Stage, wire: Wire, model: str
) -> None:
    wire.answers = [Answer(stopping(model, LENGTH[model], f"{number},")) for number in range(9)]
    session = speaking(stage, model, wire)

    done = await session.reply("Count")

    assert (done.finished_reason, done.get_text_content()) == ("incomplete", "0,1,2,3,")
    assert done.error is not None
    assert done.error.type == "incomplete"
    assert "max_continuations" in done.error.message
    assert (len(wire.bodies), (await session.status()).last_error) == (4, done.error)
    wire.answers = [ending(model, "Ten.")]
    later = await session.reply("And the last one?")
    assert (later.finished_reason, later.get_text_content()) == ("completed", "Ten.")
    assert not any(CONTINUES in json.dumps(body) for body in wire.bodies)


@pytest.mark.parametrize("model", APIS)
@pytest.mark.parametrize("arguments", ['{"page": 8, "ch', '{"page": 8, "chars": 10}', ""])
async def test_half_a_call_is_never_run_and_the_model_makes_it_again(
    stage: Stage, wire: Wire, model: str, arguments: str
) -> None:
    wire.answers = [Answer(half_a_call(model, arguments)), ending(model, "Then not.")]

    done = await speaking(stage, model, wire).reply("Read page 8")

    ((state, why),) = results(done)
    assert (done.finished_reason, state) == ("completed", ToolResultState.ERROR)
    assert "did not run: your message broke off while you were writing it" in why
    assert "broke off while you were writing it" in json.dumps(wire.bodies[1])


@pytest.mark.parametrize("model", APIS)
async def test_a_model_that_used_all_tokens_to_think_gets_twice_as_many(stage: Stage, wire: Wire, model: str) -> None:
    wire.answers = [Answer(stopping(model, LENGTH[model], "")) for _ in range(2)] + [ending(model, "Forty.")]

    done = await speaking(stage, model, wire, config={"max_output_tokens": 1_000}).reply("How many?")

    field = "max_output_tokens" if model == RESPONSES else "max_tokens"
    assert (done.finished_reason, done.get_text_content()) == ("completed", "Forty.")
    assert [body[field] for body in wire.bodies] == [1_000, 2_000, 4_000]


@pytest.mark.parametrize(("model", "reason", "kind"), REFUSALS)
@pytest.mark.parametrize("words", ["", "I'd rather not."])
async def test_a_refusal_is_paid_for_once_and_said(
    stage: Stage, wire: Wire, model: str, reason: str, kind: str, words: str
) -> None:
    wire.answers = [Answer(stopping(model, reason, words)) for _ in range(5)]
    session = speaking(stage, model, wire)

    done = await session.reply("How?")

    assert (done.finished_reason, len(wire.bodies)) == ("refused", 1)
    assert done.error is not None
    assert done.error.type == kind
    assert (words or "nothing was said why") in done.error.message
    assert reason in done.error.message
    assert done.usage is not None
    assert done.usage.estimated is (model == CHAT)  # whose wire reports nothing here
    assert (done.usage.output_tokens == 7) is (model != CHAT)
    wire.answers = [ending(model, "Gladly.")]
    assert (await session.reply("Something else")).get_text_content() == "Gladly."
    assert "rather not" not in json.dumps(wire.bodies[1])


async def test_claudes_explanation_of_a_refusal_reaches_the_person(stage: Stage, wire: Wire) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could enable harm."}
    wire.answers = [Answer(stopping(CLAUDE, "refusal", "", stop_details=details))]

    done = await speaking(stage, CLAUDE, wire).reply("How?")

    assert done.error is not None
    assert done.error.message == "claude-from-the-wire did not answer (refusal): It could enable harm."


@pytest.mark.parametrize("model", [RESPONSES, CHAT])
async def test_a_refusal_in_parts_goes_to_the_fallback_which_answers(stage: Stage, wire: Wire, model: str) -> None:
    wire.answers = [Answer(refusing_in_parts(model, "I can't help with that."))]
    fallback = stage.script(
        {"text": "never said: its calls are counted with the other's"},
        {"tool_calls": [{"name": "fetch", "input": {"page": 8, "chars": 10}}]},
        {"text": "Sure."},
    )
    session = speaking(stage, model, wire, config={"fallback_model": fallback})

    done = await session.reply("How?")

    assert (done.error, done.finished_reason, len(wire.bodies)) == (None, "completed", 1)
    assert done.get_text_content() == "Sure."
    told = (await session.events()).events
    assert [event.error.type for event in told if event.name == "model_refused" and event.error] == ["refused"]
    context = [message async for message in session.context()]
    assert "I can't help" not in "".join(message.get_text_content() for message in context)
    everything = [message async for message in session.transcript()]
    assert "I can't help with that." in [message.get_text_content() for message in everything]


async def test_when_both_refuse_nobody_is_asked_a_third_time(stage: Stage, wire: Wire) -> None:
    wire.answers = [Answer(stopping(CHAT, "content_filter", ""))]
    fallback = stage.script({"text": "unused"}, {"text": "Nor I.", "stop_reason": "refusal"}, {"text": "unused"})
    session = speaking(stage, CHAT, wire, config={"fallback_model": fallback})

    done = await session.reply("How?")

    assert (done.finished_reason, len(wire.bodies), (await session.status()).model_calls) == ("refused", 1, 2)
    assert done.error is not None
    assert done.error.message == "scripted did not answer (refusal): Nor I."


async def test_a_reason_that_nobody_knows_is_kept_and_said(stage: Stage, wire: Wire) -> None:
    wire.answers = [Answer(stopping(CHAT, "novel_reason", "Fair wind."))]
    session = speaking(stage, CHAT, wire)

    done = await session.reply("How is the wind?")

    assert (done.finished_reason, done.get_text_content()) == ("completed", "Fair wind.")
    told = (await session.events()).events
    assert [event.value["stop_reason"] for event in told if event.name == "unknown_stop"] == ["novel_reason"]


@pytest.mark.parametrize(
    ("model", "reason", "turn"),
    [(CLAUDE, "model_context_window_exceeded", claude_calls), (CHAT, "model_length", gpt_calls)],
    ids=["claude", "chat"],
)
async def test_a_full_window_is_made_room_in_before_the_model_goes_on(
    stage: Stage, wire: Wire, model: str, reason: str, turn: Callable[[str, str], bytes]
) -> None:
    wire.answers = [
        Answer(turn("c1", '{"page": 3, "chars": 4000}')),
        Answer(stopping(model, reason, "Half")),
        ending(model, " and half."),
    ]
    dropping = {"condensers": ["drop_oldest"]}
    session = speaking(stage, model, wire, config={"context_length": 20_000}, context_config=dropping)

    done = await session.reply("Read page 3")

    assert (done.error, done.finished_reason, done.get_text_content()) == (None, "completed", "Half and half.")
    kinds = await stage.scheduled(session)
    assert kinds[-4:].count("longhaul.compress") == 1
    context = [message async for message in session.context()]
    hints = [block.hint for message in context for block in message.content if isinstance(block, HintBlock)]
    assert hints == [GO_ON["window"]]


async def test_an_interrupt_in_the_midst_of_going_on_keeps_both_halves(stage: Stage, wire: Wire) -> None:
    half = stopping(CHAT, "stop", "three, fo").partition(b"\n\n")[0] + b"\n\n"
    wire.answers = [Answer(stopping(CHAT, "length", "One, two,")), Answer(half, whole=False, then_wait=True)]
    session = speaking(stage, CHAT, wire)
    reply = await session.submit("Count")
    await heard(session, "three, fo")

    await session.interrupt()
    done = await session.wait(reply)

    assert (done.finished_reason, done.get_text_content()) == ("interrupted", "One, two,\nthree, fo")
    wire.answers = [ending(CHAT, "Five.")]
    assert (await session.reply("Go on")).get_text_content() == "Five."
    assert_taken_by_all([message async for message in session.transcript()])


async def test_a_worker_that_is_killed_in_the_midst_of_going_on_loses_neither_half_nor_count(
    unserved: Stage, wire: Wire
) -> None:
    stage = unserved
    half = stopping(CHAT, "stop", "three, fo").partition(b"\n\n")[0] + b"\n\n"
    wire.answers = [
        Answer(stopping(CHAT, "length", "One, two,")),
        Answer(half, whole=False, then_wait=True),
        *(Answer(stopping(CHAT, "length", f"{word},")) for word in ("three", "four", "five", "six", "seven")),
    ]
    config = {"base_url": f"{wire.url}/v1", "api_key_env": "none"}
    session = stage.session(model=CHAT, tools=["fetch"], model_config=config)
    settings = WorkerSettings(
        address=stage.address,
        task_queue=stage.name,
        directory=stage.settings.data_dir,
        tools="tests.workflows.tools",
        further={"LONGHAUL_MODEL_KEYS": f"none={wire.url}/v1"},
    )
    async with worker(settings) as first:
        reply = await session.submit("Count")
        await heard(session, "three, fo")
        await first.kill()
    async with worker(settings):
        done = await session.wait(reply)

        assert (done.finished_reason, done.get_text_content()) == ("incomplete", "One, two,three,four,five,")
        assert (len(wire.bodies), (await session.status()).model_calls) == (5, 4)


async def heard(session: Session, words: str) -> None:
    """Return when a client has read this."""
    said = ""
    async with aclosing(session.follow()) as told:
        async for event in told:
            said += event.delta if event.type == "TEXT_BLOCK_DELTA" else ""
            if words in said:
                return
