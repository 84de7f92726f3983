"""The same promises for all three APIs, against a mock of the world's providers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import NoReplyError
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.registry import Toolbox, describe, finishing
from longhaul.activities.tools.session_tools import GenerateResponse
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    UserMsg,
)
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from tests.activities.models.sample_requests import PIXEL, TIDES, WEATHER, Caller, called, returned
from tests.activities.tools.forms import Form, some_forms
from tests.servers.aimock import Aimock

pytestmark = pytest.mark.aimock

MODELS = ["anthropic:claude-haiku-4-5", "openai:gpt-5.1", "openai-chat:gpt-4o"]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def caller(model: str, claude: Caller, gpt: Caller) -> Caller:
    return claude if model.startswith("anthropic") else gpt


def answer(text: str, **response: Any) -> dict[str, Any]:
    return {"match": {"userMessage": text}, "response": response}


@pytest.mark.proves("F6")
async def test_text_streams_and_is_counted(aimock: Aimock, caller: Caller, model: str) -> None:
    usage = {"input_tokens": 31, "output_tokens": 12, "prompt_tokens": 31, "completion_tokens": 12, "total_tokens": 43}
    aimock.answer(answer("moon", content="The moon is made of rock, mostly basalt.", usage=usage))

    reply = await caller.call(model, "Tell me of the moon")

    assert reply.content[-1] == TextBlock(text="The moon is made of rock, mostly basalt.")
    assert caller.heard("text") == "The moon is made of rock, mostly basalt."
    assert len(caller.deltas) > 1
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (31, 12)


async def test_parallel_calls_and_their_results_make_a_round(aimock: Aimock, caller: Caller, model: str) -> None:
    calls = [
        {"id": "call_oslo", "name": "weather", "arguments": '{"city":"Oslo"}'},
        {"id": "call_kiel", "name": "tides", "arguments": '{"port":"Kiel"}'},
    ]
    done = {"match": {"toolCallId": "call_kiel"}, "response": {"content": "Sail at noon."}}
    aimock.answer(done, answer("sail", toolCalls=calls))

    first = await caller.call(model, "When to sail?", tools=[WEATHER, TIDES])
    asked = tuple(block for block in first.content if isinstance(block, ToolCallBlock))
    messages = [
        UserMsg("user", "When to sail?"),
        AssistantMsg("longhaul", first.content),
        returned(asked[0].id, "weather", "sun"),
        returned(asked[1].id, "tides", "high at noon"),
    ]
    second = await caller.call(model, messages, tools=[WEATHER, TIDES])

    assert [(call.id, call.name, call.input) for call in asked] == [
        ("call_oslo", "weather", '{"city":"Oslo"}'),
        ("call_kiel", "tides", '{"port":"Kiel"}'),
    ]
    assert second.content[-1] == TextBlock(text="Sail at noon.")
    told = [message for message in aimock.journal()[-1]["body"]["messages"] if message["role"] == "tool"]
    assert [(message["tool_call_id"], message["content"]) for message in told] == [
        ("call_oslo", "sun"),
        ("call_kiel", "high at noon"),
    ]


async def test_thinking_comes_before_the_text(aimock: Aimock, caller: Caller, model: str) -> None:
    aimock.answer(answer("riddle", content="Time.", reasoning="It flies, it heals.", reasoningSignature="c2lnbmVk"))

    reply = await caller.call(model, "A riddle")

    thought, text = reply.content
    assert isinstance(thought, ThinkingBlock)
    assert (thought.thinking, text) == ("It flies, it heals.", TextBlock(text="Time."))
    kept = thought.model_extra or {}
    expected = {
        "anthropic": ["signature"],
        "openai": ["encrypted_content", "item_id"],
        "openai-chat": ["reasoning_field"],
    }
    assert sorted(kept) == expected[model.partition(":")[0]]


async def test_claudes_thinking_survives_the_round_trip_in_strict_mode(aimock: Aimock, claude: Caller) -> None:
    calls = [{"id": "t1", "name": "weather", "arguments": "{}"}]
    aimock.answer(
        {"match": {"toolCallId": "t1"}, "response": {"content": "Sun."}},
        answer("weather", toolCalls=calls, reasoning="Hm", redactedThinking=["b3BhcXVl"]),
    )
    first = await claude.call(MODELS[0], "The weather?", tools=[WEATHER], thinking_budget_tokens=1024)

    messages = [UserMsg("user", "The weather?"), AssistantMsg("x", first.content), returned("t1", "weather", "sun")]
    second = await claude.call(MODELS[0], messages, tools=[WEATHER], thinking_budget_tokens=1024)

    assert [block.type for block in first.content] == ["thinking", "thinking", "tool_call"]
    assert second.content == (TextBlock(text="Sun."),)


async def test_malformed_arguments_are_passed_on_and_never_block_the_next_call(
    aimock: Aimock, caller: Caller, model: str
) -> None:
    aimock.answer(answer("again", content="Better."))
    messages = [
        UserMsg("user", "Go"),
        called("c1", "weather", '{"city": Oslo'),
        returned("c1", "weather", "The arguments are no JSON."),
        UserMsg("user", "Try again"),
    ]

    reply = await caller.call(model, messages, tools=[WEATHER])

    assert reply.content[-1] == TextBlock(text="Better.")


@pytest.mark.proves("F6")
async def test_an_image_goes_in(aimock: Aimock, caller: Caller, model: str) -> None:
    aimock.answer(answer("picture", content="A dot."))
    picture = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))

    reply = await caller.call(model, [UserMsg("user", [TextBlock(text="What picture?"), picture])])

    assert reply.content[-1] == TextBlock(text="A dot.")
    assert reply.notes == ()


async def test_a_rate_limit_says_how_long_to_wait(aimock: Aimock, caller: Caller, model: str) -> None:
    limited = {"error": {"message": "Slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 17}
    aimock.answer({"match": {"userMessage": "hurry"}, "response": limited})

    with pytest.raises(Exception, match="Slow down") as caught:
        await caller.call(model, "hurry")

    action = judge(caught.value)
    assert (action.kind, action.delay_seconds, action.error_type) == ("retry_after", 17.0, "rate_limit")
    assert len(aimock.journal()) == 1


@dataclass(frozen=True)
class Fault:
    status: int
    kind: str
    message: str
    action: str
    error_type: str


FAULTS = [
    Fault(500, "server_error", "Broken", "retry", "upstream"),
    Fault(503, "server_error", "ProviderOutage", "retry", "upstream"),
    Fault(401, "authentication_error", "Who are you", "fall_back", "authentication"),
    Fault(400, "invalid_request_error", "prompt is too long: 9 tokens > 8", "compress", "context_overflow"),
    Fault(400, "invalid_request_error", "Bad field", "never", "invalid_request"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.message)
async def test_a_failed_request_is_sent_once_and_judged(
    aimock: Aimock, caller: Caller, model: str, fault: Fault
) -> None:
    aimock.fail_next(fault.status, message=fault.message, type=fault.kind)

    with pytest.raises(Exception, match=fault.message) as caught:
        await caller.call(model, "Hi")

    assert (judge(caught.value).kind, judge(caught.value).error_type) == (fault.action, fault.error_type)
    assert len(aimock.journal()) == 1


@pytest.mark.parametrize("chunks", [1, 3])
async def test_a_dropped_connection_is_worth_a_retry(aimock: Aimock, caller: Caller, model: str, chunks: int) -> None:
    story = {**answer("story", content="Once upon a time there was a very long story."), "truncateAfterChunks": chunks}
    aimock.answer(story)

    with pytest.raises(Exception, match=r"(?i)connection|peer closed|incomplete|ended the stream") as caught:
        await caller.call(model, "A story")

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("retry", "connection")


async def test_an_answer_of_garbage_is_worth_another_try_and_is_shown(
    aimock: Aimock, caller: Caller, model: str
) -> None:
    aimock.answer({**answer("garbage", content="never seen"), "chaos": {"malformedRate": 1.0}})

    with pytest.raises(NoReplyError, match="malformed json") as caught:
        await caller.call(model, "garbage")

    assert judge(caught.value).kind == "few_tries"
    assert "{malformed json: <<<chaos>>>" in judge(caught.value).sentence


async def test_the_finish_function_is_called_and_its_result_goes_back(
    aimock: Aimock, caller: Caller, model: str
) -> None:
    schema = {"type": "object", "properties": {"height": {"type": "number"}}, "required": ["height"]}
    finish = describe(GenerateResponse(schema))
    calls = [{"id": "call_tide", "name": "generate_response", "arguments": '{"height":"low"}'}]
    again = [{"id": "call_again", "name": "generate_response", "arguments": '{"height":3.5}'}]
    aimock.answer(
        {"match": {"toolCallId": "call_tide"}, "response": {"toolCalls": again}}, answer("tide", toolCalls=calls)
    )

    first = await caller.call(model, "How high is the tide?", tools=[WEATHER, finish])
    (asked,) = (block for block in first.content if isinstance(block, ToolCallBlock))
    messages = [
        UserMsg("user", "How high is the tide?"),
        AssistantMsg("longhaul", first.content),
        returned(asked.id, "generate_response", 'height: "low" is a string'),
    ]
    second = await caller.call(model, messages, tools=[WEATHER, finish])

    assert (asked.name, asked.input) == ("generate_response", '{"height":"low"}')
    assert [block.input for block in second.content if isinstance(block, ToolCallBlock)] == ['{"height":3.5}']


async def test_answers_in_two_hundred_forms_come_through_as_they_were_written(
    aimock: Aimock, caller: Caller, model: str
) -> None:
    """Ten forms are the fields of one, and the model answers it eleven times: right, and wrong in each field."""
    made = some_forms(200)
    tens = [made[at : at + 10] for at in range(0, 200, 10)]
    whole = {"chunkSize": 1_000_000}
    aimock.answer(*({**answer(f"batch {at} please", toolCalls=_answers(tens[at])), **whole} for at in range(20)))

    for at, forms in enumerate(tens):
        toolbox = finishing(Toolbox(()), _together(forms))
        reply = await caller.call(model, f"batch {at} please", tools=toolbox.descriptors([GENERATE_RESPONSE]))
        right, *wrong = (block.input for block in reply.content if isinstance(block, ToolCallBlock))
        assert toolbox.validate(GENERATE_RESPONSE, right) == _valid(forms)
        assert [json.loads(given)[f"f{field}"] for field, given in enumerate(wrong)] == [form[2] for form in forms]
        for field, given in enumerate(wrong):
            with pytest.raises(ArgumentsError, match=rf"^the answer does not fit:\n- '?f{field}\b"):
                toolbox.validate(GENERATE_RESPONSE, given)

    assert sum(map(len, tens)) == 200


def _together(forms: Sequence[Form]) -> dict[str, Any]:
    return {"type": "object", "properties": {f"f{at}": form[0] for at, form in enumerate(forms)}}


def _valid(forms: Sequence[Form]) -> dict[str, Any]:
    return {f"f{at}": form[1] for at, form in enumerate(forms)}


def _answers(forms: Sequence[Form]) -> list[dict[str, Any]]:
    valid = _valid(forms)
    given = [valid, *({**valid, f"f{at}": form[2]} for at, form in enumerate(forms))]
    return [
        {"id": f"call_{at}", "name": GENERATE_RESPONSE, "arguments": json.dumps(each)} for at, each in enumerate(given)
    ]
