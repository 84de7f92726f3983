"""What servers report of tokens, each under its own names and in its own place, is read through the real SDKs."""

from typing import Any

import pytest

from longhaul.activities.models.replies import anthropic_counts, anthropic_usage, estimated_where_silent, openai_usage
from longhaul.agent.values.conversation.messages import Usage
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import Answer, Wire, chat_chunk, chunks, claude_message, events, response_event

PLAIN = {"prompt_tokens": 900, "completion_tokens": 70, "total_tokens": 970}
READ = Usage(input_tokens=900, output_tokens=70, cache_input_tokens=800)

CHAT: list[tuple[str, dict[str, Any], Usage]] = [
    ("OpenAI", {**PLAIN, "prompt_tokens_details": {"cached_tokens": 800}}, READ),
    ("DeepSeek", {**PLAIN, "prompt_cache_hit_tokens": 800, "prompt_cache_miss_tokens": 100}, READ),
    ("Kimi", {**PLAIN, "cached_tokens": 800}, READ),
    ("Mistral", {**PLAIN, "num_cached_tokens": 800}, READ),
    (
        "LiteLLM, of Claude",
        {**PLAIN, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 60},
        READ.model_copy(update={"cache_creation_input_tokens": 60}),
    ),
    (
        "OpenRouter",
        {**PLAIN, "prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 60}},
        READ.model_copy(update={"cache_creation_input_tokens": 60}),
    ),
    (
        "DashScope",
        {**PLAIN, "prompt_tokens_details": {"cached_tokens": 800, "cache_creation_input_tokens": 60}},
        READ.model_copy(update={"cache_creation_input_tokens": 60}),
    ),
    ("vLLM", {**PLAIN, "prompt_tokens_details": None}, Usage(input_tokens=900, output_tokens=70)),
    (
        "OpenAI, reasoning",
        {**PLAIN, "completion_tokens_details": {"reasoning_tokens": 64}},
        Usage(input_tokens=900, output_tokens=70, reasoning_tokens=64),
    ),
    (
        "xAI, reasoning beside",
        {**PLAIN, "total_tokens": 1_270, "completion_tokens_details": {"reasoning_tokens": 300}},
        Usage(input_tokens=900, output_tokens=370, reasoning_tokens=300),
    ),
    (
        "Gemini, reasoning in the total alone",
        {**PLAIN, "total_tokens": 1_270},
        Usage(input_tokens=900, output_tokens=370, reasoning_tokens=300),
    ),
    (
        "a total that fits nothing",
        {**PLAIN, "total_tokens": 5_000, "completion_tokens_details": {"reasoning_tokens": 64}},
        Usage(input_tokens=900, output_tokens=70, reasoning_tokens=64),
    ),
    ("no counts", {"prompt_tokens": None, "completion_tokens": "70", "total_tokens": -3}, Usage()),
    (
        "more from the cache than there was",
        {**PLAIN, "cached_tokens": 10**8},
        Usage(input_tokens=900, output_tokens=70, cache_input_tokens=900),
    ),
    ("past all sense", {"prompt_tokens": 10**30, "completion_tokens": True}, Usage()),
]


@pytest.mark.proves("F6")
@pytest.mark.parametrize(("server", "told", "expected"), CHAT, ids=[row[0] for row in CHAT])
async def test_a_server_that_speaks_chat_completions_is_understood(
    wire: Wire, by_wire: Caller, server: str, told: dict[str, Any], expected: Usage
) -> None:
    wire.answers.append(Answer(chunks(chat_chunk({"content": "Hi"}, "stop"), {"choices": [], "usage": told})))

    assert (await by_wire.call("openai-chat:qwen3", "Hello")).usage == expected, server


@pytest.mark.parametrize("place", ["the choice", "x_groq", "each piece", "a last one that is empty"])
async def test_the_usage_is_found_where_the_server_puts_it(wire: Wire, by_wire: Caller, place: str) -> None:
    said, last = chat_chunk({"content": "Hi"}), chat_chunk({}, "stop")
    more: list[dict[str, Any]] = []
    match place:
        case "the choice":
            last["choices"][0]["usage"] = PLAIN
        case "x_groq":
            last["x_groq"] = {"id": "req_1", "usage": PLAIN}
        case "each piece":
            said["usage"], last["usage"] = {**PLAIN, "completion_tokens": 1}, PLAIN
        case _:
            last["usage"], more = PLAIN, [{"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}]
    wire.answers.append(Answer(chunks(said, last, *more)))

    assert (await by_wire.call("openai-chat:qwen3", "Hello")).usage == Usage(input_tokens=900, output_tokens=70)


async def test_the_responses_api_tells_its_reasoning(wire: Wire, by_wire: Caller) -> None:
    usage = {
        "input_tokens": 900,
        "output_tokens": 70,
        "total_tokens": 970,
        "input_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 60},
        "output_tokens_details": {"reasoning_tokens": 64},
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    item = {**message, "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}
    done = {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": item}
    wire.answers.append(Answer(events(done, response_event("response.completed", status="completed", usage=usage))))

    reply = await by_wire.call("openai:gpt-5.1", "Hello")

    expected = {"cache_input_tokens": 800, "cache_creation_input_tokens": 60, "reasoning_tokens": 64}
    assert reply.usage == Usage(input_tokens=900, output_tokens=70).model_copy(update=expected)


async def test_claude_tells_its_thinking(wire: Wire, by_wire: Caller) -> None:
    told = {"output_tokens": 70, "output_tokens_details": {"thinking_tokens": 64}}
    wire.answers.append(
        Answer(
            events(
                {"type": "message_start", "message": claude_message(input_tokens=100, cache_read_input_tokens=800)},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": told},
                {"type": "message_stop"},
            )
        )
    )

    reply = await by_wire.call("anthropic:claude-haiku-4-5", "Hello")

    assert reply.usage == READ.model_copy(update={"reasoning_tokens": 64})


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage(input_tokens=40, output_tokens=7, estimated=True)),
        (Usage(), Usage(input_tokens=40, output_tokens=7, estimated=True)),
        (Usage(input_tokens=50), Usage(input_tokens=50, output_tokens=7, estimated=True)),
        (Usage(output_tokens=9), Usage(input_tokens=40, output_tokens=9, estimated=True)),
        (Usage(input_tokens=50, output_tokens=9), Usage(input_tokens=50, output_tokens=9)),
    ],
)
def test_what_is_not_reported_is_estimated_and_marked(usage: Usage | None, expected: Usage) -> None:
    assert estimated_where_silent(usage, 40, 7) == expected


def test_a_reply_that_says_nothing_has_no_output_to_estimate() -> None:
    assert estimated_where_silent(Usage(input_tokens=50), 40, 0) == Usage(input_tokens=50)


@pytest.mark.parametrize("told", [None, 7, "x", [], {}, {"prompt_tokens_details": 3}, {"input_tokens": [1]}])
def test_a_usage_of_another_form_is_none(told: object) -> None:
    assert openai_usage(told) == Usage()
    assert anthropic_usage(anthropic_counts(told)) == Usage()


def test_what_anthropic_keeps_for_an_hour_is_counted_by_itself() -> None:
    kept = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 900}
    told = {"input_tokens": 5, "output_tokens": 7, "cache_creation_input_tokens": 1_000, "cache_creation": kept}

    usage = anthropic_usage(anthropic_counts(told))

    assert usage == Usage(
        input_tokens=1_005, output_tokens=7, cache_creation_input_tokens=1_000, cache_creation_1h_input_tokens=900
    )
