"""The one tool that has to be called: told to each API in its own words, and left out where it can't be."""

import json
from typing import Any

import pytest

from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.answer_form import NOT_FORCED
from longhaul.activities.tools.registry import describe
from longhaul.activities.tools.session_tools import GenerateResponse
from longhaul.agent.values.conversation.messages import ToolCallBlock, UserMsg
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import WEATHER, Caller
from tests.activities.models.wire import (
    Answer,
    Wire,
    chat_calls,
    chat_says,
    claude_calls,
    claude_says,
    response_says,
    response_turn,
)

CLAUDE, RESPONSES, CHAT = "anthropic:claude-haiku-4-5", "openai:gpt-5.1", "openai-chat:gpt-4o"
MODELS = [CLAUDE, RESPONSES, CHAT]
SCHEMA = {"$defs": {"T": {"type": "object", "properties": {"height": {"type": "number"}}}}, "$ref": "#/$defs/T"}
FINISH = describe(GenerateResponse(SCHEMA))
VALUE = {"height": 3.5}
SAYS = {CLAUDE: claude_says, RESPONSES: response_says, CHAT: chat_says}
CALLS = {
    CLAUDE: claude_calls("c1", json.dumps(VALUE), GENERATE_RESPONSE),
    RESPONSES: response_turn("", "", ("c1", GENERATE_RESPONSE, VALUE)),
    CHAT: chat_calls("c1", GENERATE_RESPONSE, VALUE),
}
FORCED: dict[str, Any] = {
    CLAUDE: {"type": "tool", "name": GENERATE_RESPONSE},
    RESPONSES: {"type": "function", "name": GENERATE_RESPONSE},
    CHAT: {"type": "function", "function": {"name": GENERATE_RESPONSE}},
}


async def ask(caller: Caller, model: str, must_call: str = GENERATE_RESPONSE, **config: Any) -> ModelReply:
    settings = ModelConfig(base_url=caller.base_url, **config)
    said = [UserMsg("user", "How high?")]
    request = ModelRequest("", "Be brief.", said, (WEATHER, FINISH), settings, must_call=must_call)
    return await caller.providers.call(model, request, lambda _: None)


@pytest.mark.proves("C7")
@pytest.mark.parametrize("model", MODELS)
async def test_only_the_choice_differs_and_the_call_comes_back(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers = [Answer(CALLS[model]), Answer(CALLS[model])]

    await ask(by_wire, model, must_call="")
    reply = await ask(by_wire, model)

    before, after = wire.bodies
    assert after.pop("tool_choice") == FORCED[model]
    assert json.dumps(after) == json.dumps(before)
    (call,) = (block for block in reply.content if isinstance(block, ToolCallBlock))
    assert (call.name, json.loads(call.input)) == (GENERATE_RESPONSE, VALUE)


@pytest.mark.parametrize("model", MODELS)
async def test_a_form_is_sent_as_every_provider_takes_it(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers = [Answer(SAYS[model]("Hm."))]

    await ask(by_wire, model)

    (told,) = (tool.get("function", tool) for tool in wire.bodies[0]["tools"] if GENERATE_RESPONSE in json.dumps(tool))
    schema = told.get("input_schema") or told["parameters"]
    assert schema["type"] == "object"
    assert schema["properties"] == {"height": {"type": "number"}}
    assert "$ref" not in schema


@pytest.mark.parametrize("model", MODELS)
async def test_a_server_that_knows_no_such_choice_is_asked_without_and_that_is_said(
    by_wire: Caller, wire: Wire, model: str
) -> None:
    refusal = {"error": {"type": "invalid_request_error", "message": "tool_choice is not supported"}}
    unknown = Answer(json.dumps(refusal).encode(), 400, {"content-type": "application/json"})
    wire.answers = [unknown, Answer(CALLS[model])]

    reply = await ask(by_wire, model)

    assert "tool_choice" not in wire.bodies[1]
    assert len(wire.bodies[1]["tools"]) == 2
    assert reply.notes == (NOT_FORCED,)


async def test_a_claude_that_thinks_is_asked_in_words_alone(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [Answer(claude_says("Hm."))]

    await ask(by_wire, CLAUDE, thinking_budget_tokens=2_000)

    assert wire.bodies[0]["thinking"]["type"] == "enabled"
    assert "tool_choice" not in wire.bodies[0]
