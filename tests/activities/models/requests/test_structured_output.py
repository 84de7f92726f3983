"""Answers of a given form: forced where the API can, asked for in words where a server can't, and read strictly."""

from typing import Any

import pytest

from longhaul.activities.models.model import AnswerSchema, ModelReply, ModelRequest
from longhaul.activities.models.requests.answer_form import NOT_FORCED, BadAnswer, answer_of, called_in_words
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock, Usage, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import WEATHER, Caller
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says
from tests.servers.aimock import Aimock

FORM = AnswerSchema(
    name="write_summary",
    description="Hand in the summary.",
    schema={"properties": {"goal": {"type": "string"}}, "required": ["goal"]},
)
SCHEMA = {"type": "object", "properties": {"goal": {"type": "string"}}, "required": ["goal"]}
MODELS = ["anthropic:claude-haiku-4-5", "openai:gpt-5.1", "openai-chat:gpt-4o"]
SAYS = {MODELS[0]: claude_says, MODELS[1]: response_says, MODELS[2]: chat_says}


async def ask(caller: Caller, model: str, tools: Any = (), **config: Any) -> ModelReply:
    settings = ModelConfig(base_url=caller.base_url, **config)
    told = [UserMsg("user", "Sum it up")]
    request = ModelRequest("", "Be brief.", told, tools, settings, answer=FORM)
    return await caller.providers.call(model, request, lambda _: None)


@pytest.mark.aimock
@pytest.mark.parametrize("model", MODELS)
async def test_a_forced_answer_comes_back_as_an_object(aimock: Aimock, claude: Caller, gpt: Caller, model: str) -> None:
    calls = [{"id": "c1", "name": "write_summary", "arguments": '{"goal":"moon"}'}]
    aimock.answer({"match": {"userMessage": "Sum it up"}, "response": {"toolCalls": calls}})

    reply = await ask(claude if model.startswith("anthropic") else gpt, model)

    assert answer_of(reply) == {"goal": "moon"}
    assert reply.notes == ()
    body = aimock.journal()[0]["body"]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["write_summary"]


@pytest.mark.aimock
@pytest.mark.parametrize("model", MODELS)
async def test_a_server_that_forces_nothing_is_asked_in_words(
    aimock: Aimock, claude: Caller, gpt: Caller, model: str
) -> None:
    aimock.answer({"match": {"userMessage": "JSON schema"}, "response": {"content": '```json\n{"goal":"moon"}\n```'}})
    aimock.fail_next(400, message="tool_choice: not supported by this server", type="invalid_request_error")

    reply = await ask(claude if model.startswith("anthropic") else gpt, model)

    assert answer_of(reply) == {"goal": "moon"}
    assert reply.notes == (NOT_FORCED,)
    assert not aimock.journal()[-1]["body"].get("tools")


@pytest.mark.aimock
@pytest.mark.parametrize("message", ["bad field: metadata", "prompt is too long: tools take 9 tokens > 8"])
async def test_other_refusals_are_not_tried_again(aimock: Aimock, claude: Caller, message: str) -> None:
    aimock.fail_next(400, message=message, type="invalid_request_error")

    with pytest.raises(Exception, match=message):
        await ask(claude, MODELS[0])

    assert len(aimock.journal()) == 1


async def sent(by_wire: Caller, wire: Wire, model: str, **settings: Any) -> tuple[dict[str, Any], ModelReply]:
    wire.answers.append(Answer(SAYS.get(model, chat_says)("{}")))
    reply = await ask(by_wire, model, **settings)
    return wire.bodies[0], reply


async def test_claude_is_made_to_call_the_tool_and_does_not_think(by_wire: Caller, wire: Wire) -> None:
    body, reply = await sent(by_wire, wire, MODELS[0], tools=[WEATHER], thinking_budget_tokens=2_000, temperature=0.5)

    assert body["tools"][1] == {"name": "write_summary", "description": "Hand in the summary.", "input_schema": SCHEMA}
    assert body["tool_choice"] == {"type": "tool", "name": "write_summary", "disable_parallel_tool_use": True}
    assert "thinking" not in body
    assert (body["temperature"], body["max_tokens"]) == (0.5, 8192)
    assert "Thinking is off" in reply.notes[0]


async def test_the_responses_api_is_made_to_call_the_function(by_wire: Caller, wire: Wire) -> None:
    body, reply = await sent(by_wire, wire, MODELS[1])

    assert body["tools"] == [
        {
            "type": "function",
            "name": "write_summary",
            "description": "Hand in the summary.",
            "parameters": SCHEMA,
            "strict": False,
        }
    ]
    assert body["tool_choice"] == {"type": "function", "name": "write_summary"}
    assert reply.notes == ()


async def test_chat_completions_is_made_to_call_the_function(by_wire: Caller, wire: Wire) -> None:
    body, _ = await sent(by_wire, wire, MODELS[2])

    function = {"name": "write_summary", "description": "Hand in the summary.", "parameters": SCHEMA}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "write_summary"}}


async def test_dashscope_does_not_think_when_the_form_is_forced(by_wire: Caller, wire: Wire) -> None:
    body, reply = await sent(by_wire, wire, "qwen:qwen3-max", thinking_budget_tokens=2_000)

    assert body["enable_thinking"] is False
    assert "thinking_budget" not in body
    assert "Thinking is off" in reply.notes[0]


def says(*content: TextBlock | ThinkingBlock | ToolCallBlock, stop: str = "end_turn") -> ModelReply:
    return ModelReply(content, Usage(), "m", stop)


@pytest.mark.parametrize(
    "text",
    [
        '{"goal": "moon"}',
        'Here:\n```json\n{"goal": "moon"}\n```\nDone {really}.',
        '```\n{"goal": "moon"}\n```',
        'It is {"goal": "moon"}, I think.',
    ],
)
def test_an_object_is_found_in_the_text(text: str) -> None:
    assert answer_of(says(ThinkingBlock(thinking="{}"), TextBlock(text=text))) == {"goal": "moon"}


def test_the_first_call_counts_and_not_the_text() -> None:
    calls = [ToolCallBlock(id=str(n), name="write_summary", input=f'{{"goal": {n}}}') for n in (1, 2)]

    assert answer_of(says(TextBlock(text='{"goal": 0}'), *calls)) == {"goal": 1}


@pytest.mark.parametrize(
    "text", ['{"goal": "moon"}', '```json\n{"goal": "moon"}\n```\n', '\n```\n{"goal":\n "moon"}\n```']
)
def test_a_form_that_is_written_and_not_called_is_a_call(text: str) -> None:
    reply = called_in_words(says(ThinkingBlock(thinking="{}"), TextBlock(text=text)), "generate_response")

    *_, words, call = reply.content
    assert words == TextBlock(text=text)
    assert isinstance(call, ToolCallBlock)
    assert (call.name, call.input) == ("generate_response", '{"goal": "moon"}')


@pytest.mark.parametrize(
    "reply",
    [
        says(TextBlock(text='Here: {"goal": "moon"}')),
        says(TextBlock(text='```json\n{"goal": "moon"}\n```\nor\n```json\n{"goal": "sun"}\n```')),
        says(TextBlock(text='{"goal": "mo'), stop="max_tokens"),
        says(TextBlock(text='{"goal": "moon"}'), stop="refusal"),
        says(TextBlock(text='["goal"]')),
        says(TextBlock(text='{"goal": NaN}')),
        says(TextBlock(text='{"goal": ' * 5_000)),
        says(TextBlock(text='{"goal": 1}'), ToolCallBlock(id="1", name="Read", input="{}")),
        says(),
    ],
    ids=range(9),
)
def test_what_else_is_said_stays_as_it_is(reply: ModelReply) -> None:
    assert called_in_words(reply, "generate_response") is reply


def test_lone_surrogates_do_not_get_in() -> None:
    assert answer_of(says(TextBlock(text='{"\\ud800": ["\\udfff"]}'))) == {"\ufffd": ["\ufffd"]}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (says(TextBlock(text="")), "the reply was empty"),
        (says(), "the reply was empty"),
        (says(TextBlock(text="No, " * 80)), "no JSON object but the text 'No, .{116}…'"),
        (says(TextBlock(text="I won't"), stop="refusal"), "the model refused"),
        (says(TextBlock(text='["goal"]')), "no JSON object"),
        (says(TextBlock(text='{"goal": NaN}')), "no JSON object"),
        (says(TextBlock(text='{"goal": ' * 5_000)), "no JSON object"),
        (says(TextBlock(text='{"goal": ' + "[" * 70 + "]" * 70 + "}")), "no JSON object"),
        (says(ToolCallBlock(id="1", name="x", input='{"goal": "mo'), stop="max_tokens"), "broke off at the limit"),
        (says(ToolCallBlock(id="1", name="x", input="[]"), TextBlock(text='{"goal": 1}')), "arguments are no JSON"),
    ],
    ids=["blank", "nothing", "words", "refusal", "list", "nan", "broken", "deep", "cut short", "wrong arguments"],
)
def test_what_is_no_object_is_named(reply: ModelReply, why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        answer_of(reply)
