"""A request for words alone: the tools stay where they are, for the provider's cache, and none may be called."""

import json
from typing import Any

import pytest

from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.answer_form import NOT_FORBIDDEN
from longhaul.agent.values.conversation.messages import TextBlock, UserMsg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import TIDES, WEATHER, Caller
from tests.activities.models.wire import Answer, Wire, chat_calls, chat_says, claude_calls, claude_says, response_says

MODELS = ["anthropic:claude-haiku-4-5", "openai:gpt-5.1", "openai-chat:gpt-4o"]
SAYS = {MODELS[0]: claude_says, MODELS[1]: response_says, MODELS[2]: chat_says}
NONE: dict[str, Any] = {MODELS[0]: None, MODELS[1]: "none", MODELS[2]: "none"}
"""Another choice would lose what Anthropic has cached of the messages."""


async def ask(
    caller: Caller, model: str, *, no_calls: bool, tools: tuple[ToolDescriptor, ...] = (WEATHER, TIDES)
) -> ModelReply:
    config = ModelConfig(base_url=caller.base_url)
    request = ModelRequest("", "Be brief.", [UserMsg("user", "Where do we stand?")], tools, config, no_calls=no_calls)
    return await caller.providers.call(model, request, lambda _: None)


@pytest.mark.proves("C10")
@pytest.mark.parametrize("model", MODELS)
async def test_only_the_choice_differs_from_a_request_that_may_be_answered_by_calls(
    by_wire: Caller, wire: Wire, model: str
) -> None:
    wire.answers = [Answer(SAYS[model]("Here.")), Answer(SAYS[model]("There."))]

    await ask(by_wire, model, no_calls=False)
    reply = await ask(by_wire, model, no_calls=True)

    before, after = wire.bodies
    assert reply.content == (TextBlock(text="There."),)
    assert after.pop("tool_choice", None) == NONE[model]
    assert json.dumps(after) == json.dumps(before)
    assert len(after["tools"]) == 2


@pytest.mark.parametrize("model", MODELS)
async def test_without_tools_nothing_is_forbidden(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers = [Answer(SAYS[model]("Here."))]

    reply = await ask(by_wire, model, no_calls=True, tools=())

    assert "tool_choice" not in wire.bodies[0]
    assert reply.notes == ()


@pytest.mark.proves("C10")
@pytest.mark.parametrize(
    ("model", "calls", "says", "forbidden"),
    [
        (MODELS[0], claude_calls("toolu_1", "{}", "weather"), claude_says, {"type": "none"}),
        ("openai-chat:anthropic/claude-opus-4-8", chat_calls("call_1", "weather", {}), chat_says, "none"),
    ],
)
async def test_claude_is_forbidden_to_call_once_it_has_called_all_the_same(
    by_wire: Caller, wire: Wire, model: str, calls: bytes, says: Any, forbidden: Any
) -> None:
    wire.answers = [Answer(calls), Answer(says("Here."))]

    reply = await ask(by_wire, model, no_calls=True)

    assert [body.get("tool_choice") for body in wire.bodies] == [None, forbidden]
    assert reply.content == (TextBlock(text="Here."),)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == ((22, 14) if says is claude_says else (0, 0))


@pytest.mark.proves("C10")
@pytest.mark.parametrize("model", MODELS[1:])
async def test_a_server_that_knows_no_such_choice_gets_no_tools_and_that_is_said(
    by_wire: Caller, wire: Wire, model: str
) -> None:
    refusal = {"error": {"type": "invalid_request_error", "message": "tool_choice: 'none' is not supported"}}
    unknown = Answer(json.dumps(refusal).encode(), 400, {"content-type": "application/json"})
    wire.answers = [unknown, Answer(SAYS[model]("Here."))]

    reply = await ask(by_wire, model, no_calls=True)

    assert "tools" not in wire.bodies[1]
    assert "tool_choice" not in wire.bodies[1]
    assert (reply.content, reply.notes) == ((TextBlock(text="Here."),), (NOT_FORBIDDEN,))


@pytest.mark.parametrize("message", ["bad field: metadata", "prompt is too long: tools take 9 tokens > 8"])
async def test_another_refusal_is_not_tried_again(by_wire: Caller, wire: Wire, message: str) -> None:
    refusal = json.dumps({"error": {"type": "invalid_request_error", "message": message}}).encode()
    wire.answers = [Answer(refusal, 400, {"content-type": "application/json"})]

    with pytest.raises(Exception, match=message):
        await ask(by_wire, MODELS[0], no_calls=True)

    assert len(wire.bodies) == 1
