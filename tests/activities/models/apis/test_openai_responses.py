"""What goes to OpenAI's Responses API and what comes back, byte for byte, through the real SDK."""

from typing import Any

import pytest

from longhaul.activities.models.apis.sdk_calls import cache_key_of
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.model import ModelRequest
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultState,
    URLSource,
    Usage,
    UserMsg,
)
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.loops import step
from tests.activities.models.sample_requests import PIXEL, WEATHER, Caller, called, returned
from tests.activities.models.wire import Answer, Wire, events, response_event, response_says, response_turn

REASONING = {"thinking": "Rain?", "item_id": "rs_1", "encrypted_content": "gAAAA"}


async def sent(by_wire: Caller, wire: Wire, messages: list[Msg], **settings: Any) -> list[dict[str, Any]]:
    wire.answers.append(Answer(response_says("ok")))
    await by_wire.call("openai:gpt-4.1", messages, **settings)
    found: list[dict[str, Any]] = wire.bodies[-1]["input"]
    return found


async def test_nothing_is_kept_at_the_provider(by_wire: Caller, wire: Wire) -> None:
    wire.answers.append(Answer(response_says("Hello")))

    reply = await by_wire.call("openai:gpt-4.1", "Hi", system="Be brief.", tools=[WEATHER], temperature=0.5)

    body = wire.bodies[0]
    assert (body["store"], body["stream"], body["instructions"]) == (False, True, "Be brief.")
    assert (body["temperature"], body["max_output_tokens"]) == (0.5, 8192)
    assert body["tools"] == [
        {
            "type": "function",
            "name": "weather",
            "description": "Tell the weather of a city.",
            "parameters": WEATHER.input_schema,
            "strict": False,
        }
    ]
    assert "include" not in body
    assert reply.content == (TextBlock(text="Hello"),)
    assert reply.usage == Usage(input_tokens=21, output_tokens=5, cache_input_tokens=8)
    assert (reply.model, reply.stop_reason) == ("gpt-from-the-wire", "completed")


async def test_grok_keeps_its_temperature_and_has_room_to_think(by_wire: Caller, wire: Wire) -> None:
    """xAI advises a temperature for its models, which reason, and counts thoughts against the limit of output."""
    turn = response_turn("gAAAA", "Rain.", ("c1", "weather", {"city": "Oslo"}))
    wire.answers = [Answer(turn), Answer(response_says("Rain."))]
    settings: dict[str, Any] = {"reasoning_effort": "max", "temperature": 0.7}

    messages = await step(by_wire, "xai:grok-4.7", [UserMsg("user", "How is it in Oslo?")], **settings)
    reply = await by_wire.call("xai:grok-4.7", messages, **settings)

    for body in wire.bodies:
        assert (body["reasoning"], body["temperature"], body["max_output_tokens"]) == ({"effort": "xhigh"}, 0.7, 33_192)
        assert (body["include"], body["store"]) == (["reasoning.encrypted_content"], False)
    kinds = [item.get("type", item.get("role")) for item in wire.bodies[1]["input"]]
    assert kinds == ["user", "reasoning", "function_call", "function_call_output"]
    assert wire.bodies[1]["input"][1]["encrypted_content"] == "gAAAA"
    asked = "This model has no effort 'max': it is asked for 'xhigh'. It has: low, medium, high, xhigh."
    assert reply.notes == (asked,)


async def test_reasoning_goes_back_with_what_it_led_to(by_wire: Caller, wire: Wire) -> None:
    thought = ThinkingBlock.model_validate(REASONING)
    call = ToolCallBlock(id="c1", name="weather", input='{"city":  "Oslo"}')
    messages = [UserMsg("user", "Go"), AssistantMsg("x", [thought, call, thought]), returned("c1", "weather", "sun")]
    wire.answers.append(Answer(response_says("ok")))

    reply = await by_wire.call("openai:gpt-5.1", messages, reasoning_effort="low", temperature=0.5)

    assert wire.bodies[0]["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Rain?"}],
            "encrypted_content": "gAAAA",
        },
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":  "Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sun"},
    ]
    assert wire.bodies[0]["reasoning"] == {"effort": "low", "summary": "auto"}
    assert wire.bodies[0]["include"] == ["reasoning.encrypted_content"]
    assert "temperature" not in wire.bodies[0]
    assert reply.notes == ("The temperature was left out: this model takes none with these settings.",)


@pytest.mark.proves("X17")
async def test_thinking_of_another_provider_is_left_out(by_wire: Caller, wire: Wire) -> None:
    signed = ThinkingBlock.model_validate({"thinking": "Hm", "signature": "c2ln"})

    items = await sent(by_wire, wire, [UserMsg("user", "Go"), AssistantMsg("x", [signed, TextBlock(text="Yes")])])

    assert items[1:] == [{"role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]}]


async def test_failed_results_broken_arguments_and_pictures(by_wire: Caller, wire: Wire) -> None:
    picture = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))
    messages = [
        UserMsg("ana", [TextBlock(text="See"), picture]),
        called("c1", "weather", "{oops"),
        returned("c1", "weather", "bad arguments", ToolResultState.ERROR),
        called("c2", "shot", ""),
        returned("c2", "shot", (TextBlock(text="Here"), picture), ToolResultState.INTERRUPTED),
    ]

    items = await sent(by_wire, wire, messages)

    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}
    assert items == [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "ana: See"}, image],
        },
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"_unparsable": "{oops"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "[error]\nbad arguments"},
        {"type": "function_call", "call_id": "c2", "name": "shot", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "[interrupted]"}, {"type": "input_text", "text": "Here"}, image],
        },
    ]


async def test_a_reply_with_reasoning_text_and_a_call(by_wire: Caller, wire: Wire) -> None:
    thought = {"type": "reasoning", "id": "rs_7", "summary": []}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_7", "name": "weather", "arguments": ""}
    piece = {"sequence_number": 1, "item_id": "x"}
    summary = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, **piece}
    part = {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0, **piece}
    arguments = {"type": "response.function_call_arguments.delta", "output_index": 1, **piece}
    body = events(
        {"type": "response.output_item.added", "output_index": 0, "item": thought, "sequence_number": 1},
        {**part, "part": {"type": "summary_text", "text": ""}},
        {**summary, "delta": "First."},
        {**part, "part": {"type": "summary_text", "text": ""}},
        {**summary, "delta": "Then."},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**thought, "encrypted_content": "gBBB"},
            "sequence_number": 1,
        },
        {"type": "response.output_item.added", "output_index": 1, "item": call, "sequence_number": 1},
        {**arguments, "delta": '{"city"'},
        {**arguments, "delta": ':"Rome"}'},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {**call, "arguments": '{"city":"Rome"}'},
            "sequence_number": 1,
        },
        response_event("response.incomplete", status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    wire.answers.append(Answer(body))

    reply = await by_wire.call("openai:gpt-5.1", "Hi")

    assert reply.content == (
        ThinkingBlock.model_validate({"thinking": "First.\n\nThen.", "item_id": "rs_7", "encrypted_content": "gBBB"}),
        ToolCallBlock(id="call_7", name="weather", input='{"city":"Rome"}'),
    )
    assert reply.stop_reason == "max_output_tokens"
    assert by_wire.heard("tool_call") == '{"city":"Rome"}'


FAILURES = [
    (
        response_event("response.failed", status="failed", error={"code": "server_error", "message": "Oh"}),
        "retry",
        "upstream",
    ),
    (
        response_event("response.failed", status="failed", error={"code": "rate_limit_exceeded", "message": "Slow"}),
        "retry",
        "rate_limit",
    ),
    (
        response_event("response.failed", status="failed", error={"code": "invalid_image", "message": "Bad"}),
        "repair",
        "invalid_request",
    ),
    (
        {"type": "error", "code": "context_length_exceeded", "message": "Too long", "sequence_number": 1},
        "compress",
        "context_overflow",
    ),
    (
        {"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "No money"}},
        "fall_back",
        "rate_limit",
    ),
]


@pytest.mark.parametrize(("event", "kind", "error_type"), FAILURES)
async def test_a_failure_inside_the_stream_gets_its_verdict(
    by_wire: Caller, wire: Wire, event: dict[str, Any], kind: str, error_type: str
) -> None:
    wire.answers.append(Answer(events(event)))

    with pytest.raises(Exception, match=r"Oh|Slow|Bad|Too long|No money") as caught:
        await by_wire.call("openai:gpt-5.1", "Hi")

    action = judge(caught.value)
    assert (action.kind, action.error_type) == (kind, error_type)


@pytest.mark.parametrize("cut", [150, 420])
async def test_a_broken_or_unfinished_stream_is_worth_a_retry(by_wire: Caller, wire: Wire, cut: int) -> None:
    body = response_says("a long story")[:cut]
    wire.answers += [Answer(body, whole=False), Answer(body[: body.rindex(b"\n\n") + 2] if b"\n\n" in body else b"")]

    for _ in range(2):
        with pytest.raises(Exception, match=r"peer closed|ended the stream") as caught:
            await by_wire.call("openai:gpt-4.1", "Hi")
        assert (judge(caught.value).kind, judge(caught.value).error_type) == ("retry", "connection")


async def test_items_that_come_whole_are_kept_and_unknown_ones_are_noted(by_wire: Caller, wire: Wire) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c7", "name": "weather", "arguments": '{"city":"Rome"}'}
    said = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    parts = [{"type": "output_text", "text": "Rome?", "annotations": []}, {"type": "refusal", "refusal": " No."}]
    body = events(
        {"type": "response.output_item.added", "output_index": 0, "item": search, "sequence_number": 1},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {**said, "content": parts},
            "sequence_number": 2,
        },
        {"type": "response.output_item.done", "output_index": 2, "item": call, "sequence_number": 3},
        response_event("response.completed", status="completed"),
    )
    wire.answers.append(Answer(body))

    reply = await by_wire.call("openai:gpt-4.1", "Hi", thinking_budget_tokens=1024)

    assert reply.content == (
        TextBlock(text="Rome? No."),
        ToolCallBlock(id="c7", name="weather", input='{"city":"Rome"}'),
    )
    assert reply.usage == Usage()
    assert reply.notes == (
        "The thinking budget was left out: OpenAI takes a reasoning effort instead.",
        "An item of type 'web_search_call' in the reply was left out.",
    )


async def test_documents_and_addresses_go_in_and_other_files_are_named(by_wire: Caller, wire: Wire) -> None:
    paper = DataBlock(source=Base64Source(data="JVBERi0=", media_type="application/pdf"))
    photo = DataBlock(source=URLSource(url="https://example.org/cat.webp", media_type="image/webp"))
    sound = DataBlock(source=Base64Source(data="AAAA", media_type="audio/wav"), name="song.wav")

    (user,) = await sent(by_wire, wire, [UserMsg("user", [paper, photo, sound])])

    assert user["content"] == [
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        {"type": "input_image", "image_url": "https://example.org/cat.webp", "detail": "auto"},
        {
            "type": "input_text",
            "text": "(The attachment 'song.wav' of type 'audio/wav' can't be shown to this model.)",
        },
    ]


@pytest.mark.parametrize(
    ("host", "key", "sent"),
    [
        ("api.openai.com", "7f3a", {"prompt_cache_key": "7f3a"}),
        ("api.openai.com", "", {}),
        ("models.example", "7f3a", {}),
    ],
)
def test_openai_alone_is_told_which_requests_have_one_beginning(host: str, key: str, sent: dict[str, str]) -> None:
    request = ModelRequest("gpt-5.1", "", [UserMsg("user", "Hi")], (), ModelConfig(), cache_key=key)

    assert cache_key_of(request, host) == sent
