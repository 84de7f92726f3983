"""Calls of sessions whose servers stream in shapes of their own: each runs as it was made, or not at all."""

import json

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from tests.activities.models.replies.shapes import SHAPES, TIDE, Sent
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says
from tests.workflows.conftest import Stage
from tests.workflows.operations import results

pytestmark = pytest.mark.server

MODELS = {"chat": "openai-chat:qwen3", "messages": "anthropic:claude-haiku-4-5", "responses": "openai:gpt-4.1"}
THEN = {
    "chat": chat_says("Fair wind."),
    "messages": claude_says("Fair wind."),
    "responses": response_says("Fair wind."),
}
READ_A, READ_B = (ToolResultState.SUCCESS, "It ebbs."), (ToolResultState.SUCCESS, "It flows.")
PURGED = (ToolResultState.SUCCESS, "purged /tmp/one")

RUNS = [
    ("parallel calls under one index with other ids", "chat", [READ_A, READ_B]),
    ("the same in pieces", "chat", [READ_A, READ_B]),
    ("arguments as an object", "chat", [PURGED]),
    ("content as a list of parts", "chat", []),
    ("no reason to stop", "chat", []),
    ("no reason to stop behind a call", "chat", [PURGED]),
    ("a thought and a call under one index", "messages", [READ_A]),
    ("arguments in the event of their end alone", "responses", [PURGED]),
    ("a whole answer in JSON", "chat", [PURGED]),
    ("a whole answer in JSON", "messages", [PURGED]),
    ("a whole answer in JSON", "responses", [PURGED]),
]
NEVER_RUNS = [
    ("arguments under another index", "messages", "belong to no call"),
    ("arguments under another index", "chat", "belong to no call"),
    ("arguments under another index", "responses", "belong to no call"),
    ("two versions of the arguments", "messages", "two versions"),
    ("two versions of the arguments", "chat", "two versions"),
    ("the last event contradicts the stream", "responses", "two versions"),
    ("missing arguments", "chat", "did not arrive"),
]


def answer(name: str, api: str) -> Answer:
    made = next(shape for shape in SHAPES if shape.name == name).sent(api)
    assert isinstance(made, Sent)
    return Answer(made.body, headers={"content-type": made.media_type})


def session_at(stage: Stage, wire: Wire, api: str, tool: str = "purge", **config: int) -> Session:
    for name, text in (("a.txt", "It ebbs."), ("b.txt", "It flows.")):
        (stage.workspace / name).write_text(text, encoding="utf-8")
    return stage.session(model=MODELS[api], tools=["Read", tool], model_config={"base_url": wire.url, **config})


@pytest.mark.parametrize(("name", "api", "expected"), RUNS)
async def test_calls_run_as_they_were_made(
    stage: Stage, wire: Wire, name: str, api: str, expected: list[tuple[ToolResultState, str]]
) -> None:
    wire.answers = [answer(name, api), Answer(THEN[api])]

    done = await session_at(stage, wire, api).reply("How is the tide?")

    assert (done.error, done.finished_reason) == (None, "completed")
    # Calls that run side by side end in any order.
    assert sorted((state, text.split("\t")[-1].strip()) for state, text in results(done)) == expected
    assert done.get_text_content() == ("Fair wind." if expected else TIDE)
    assert len(wire.bodies) == (2 if expected else 1)


@pytest.mark.parametrize("tool", ["purge", "purge_one"])
@pytest.mark.parametrize(("name", "api", "why"), NEVER_RUNS)
async def test_a_call_with_uncertain_arguments_does_not_run_and_the_model_reads_why(
    stage: Stage, wire: Wire, name: str, api: str, why: str, tool: str
) -> None:
    told = answer(name, api)
    told = Answer(told.body.replace(b'"purge"', json.dumps(tool).encode()), headers=told.headers)
    wire.answers = [told, Answer(THEN[api])]

    done = await session_at(stage, wire, api, tool).reply("Purge /tmp/one")

    ((state, text),) = results(done)
    assert (done.error, state) == (None, ToolResultState.ERROR)
    assert why in text
    assert "purged" not in done.model_dump_json()
    assert why in json.dumps(wire.bodies[1])


async def test_a_person_is_not_asked_about_a_call_with_uncertain_arguments(stage: Stage, wire: Wire) -> None:
    wire.answers = [answer("arguments under another index", "messages"), Answer(THEN["messages"])]
    rules = {"rules": [{"tool_name": "purge", "behavior": "ask"}]}
    config = {"base_url": wire.url}
    session = stage.session(model=MODELS["messages"], tools=["purge"], model_config=config, permission=rules)

    done = await session.reply("Purge /tmp/one")

    assert done.finished_reason == "completed"
    assert not await session.pending()
    assert [state for state, _ in results(done)] == [ToolResultState.ERROR]


@pytest.mark.parametrize("api", MODELS)
async def test_a_page_to_sign_in_at_is_shown_after_a_few_tries(stage: Stage, wire: Wire, api: str) -> None:
    """With default settings an outage is waited for, for hours."""
    wire.answers = [answer("a page to sign in at", api)] * 3 + [Answer(THEN[api])]
    session = session_at(stage, wire, api, max_retries=2)

    failed = await session.reply("How is the tide?")

    assert failed.error is not None
    assert (failed.finished_reason, failed.error.type) == ("error", "upstream")
    assert "Please sign in to the proxy" in failed.error.message
    assert len(wire.bodies) == 3
