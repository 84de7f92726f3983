"""What goes to Anthropic and what comes back, byte for byte, through the real SDK."""

import re
from dataclasses import replace
from typing import Any

import pytest

from longhaul.activities.models.apis.anthropic import build_payload
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import IncompleteStreamError
from longhaul.activities.models.model import ModelRequest
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    HintBlock,
    Msg,
    SystemMsg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultState,
    URLSource,
    Usage,
    UserMsg,
)
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import PIXEL, TIDES, WEATHER, Caller, called, returned
from tests.activities.models.wire import Answer, Wire, claude_message, claude_says, events

MARK = {"type": "ephemeral"}


async def sent(by_wire: Caller, wire: Wire, messages: list[Msg], **settings: Any) -> list[dict[str, Any]]:
    wire.answers.append(Answer(claude_says("ok")))
    await by_wire.call("anthropic:claude-haiku-4-5", messages, **settings)
    found: list[dict[str, Any]] = wire.bodies[-1]["messages"]
    return found


async def test_system_tools_and_last_messages_are_marked_for_the_cache(by_wire: Caller, wire: Wire) -> None:
    messages = [UserMsg("user", "first"), AssistantMsg("longhaul", "second"), UserMsg("user", "third")]

    await sent(by_wire, wire, messages, system="Be brief.", tools=[WEATHER, TIDES])

    body = wire.bodies[0]
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, MARK]
    assert body["tools"][0]["input_schema"] == WEATHER.input_schema
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "first", "cache_control": MARK}]},
        {"role": "assistant", "content": [{"type": "text", "text": "second"}]},
        {"role": "user", "content": [{"type": "text", "text": "third", "cache_control": MARK}]},
    ]
    assert body["stream"] is True
    assert body["max_tokens"] == 8192
    assert "thinking" not in body


async def test_results_come_first_in_the_user_turn_in_the_order_of_the_calls(by_wire: Caller, wire: Wire) -> None:
    calls = [
        ToolCallBlock(id="a1", name="weather", input='{"city": "Oslo"}'),
        ToolCallBlock(id="b2", name="tides", input="{}"),
    ]
    messages = [
        UserMsg("user", "Go"),
        AssistantMsg("longhaul", [TextBlock(text="Looking."), *calls]),
        returned("b2", "tides", "high at noon", ToolResultState.ERROR),
        UserMsg("user", [HintBlock(hint="It is Friday.")]),
        returned("a1", "weather", "rain"),
        UserMsg("user", "Well?"),
    ]

    user, assistant, answer = await sent(by_wire, wire, messages)

    assert user["content"] == [{"type": "text", "text": "Go", "cache_control": MARK}]
    assert assistant["content"] == [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "a1", "name": "weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "b2", "name": "tides", "input": {}},
    ]
    assert answer["content"] == [
        {"type": "tool_result", "tool_use_id": "a1", "content": [{"type": "text", "text": "rain"}]},
        {
            "type": "tool_result",
            "tool_use_id": "b2",
            "content": [{"type": "text", "text": "high at noon"}],
            "is_error": True,
        },
        {"type": "text", "text": "It is Friday."},
        {"type": "text", "text": "Well?", "cache_control": MARK},
    ]


@pytest.mark.proves("X17")
@pytest.mark.parametrize("broken", ["{oops", "[1,2]", "NaN", '{"x": NaN}', "[" * 5000, "7" * 5000])
async def test_old_broken_arguments_never_break_a_later_call(by_wire: Caller, wire: Wire, broken: str) -> None:
    messages = [UserMsg("user", "Go"), called("a1", "weather", broken), returned("a1", "weather", "bad arguments")]

    _, assistant, _ = await sent(by_wire, wire, messages)

    assert assistant["content"] == [
        {"type": "tool_use", "id": "a1", "name": "weather", "input": {"_unparsable": broken}}
    ]


async def test_an_unanswered_call_gets_a_result_that_says_so(by_wire: Caller, wire: Wire) -> None:
    messages = [UserMsg("user", "Go"), called("a1", "weather", "{}"), UserMsg("user", "Hello?")]

    _, _, answer = await sent(by_wire, wire, messages)

    first, second = answer["content"]
    assert (first["type"], first["tool_use_id"], first["is_error"]) == ("tool_result", "a1", True)
    assert "No result of this call was recorded" in first["content"][0]["text"]
    assert second["text"] == "Hello?"


async def test_a_late_second_result_is_told_as_text(by_wire: Caller, wire: Wire) -> None:
    messages = [called("a1", "weather", "{}"), returned("a1", "weather", "rain"), returned("a1", "weather", "sun")]

    begin, assistant, answer = await sent(by_wire, wire, messages)

    assert begin["content"][0]["text"] == "(The conversation begins here.)"
    assert assistant["role"] == "assistant"
    assert [block.get("text") for block in answer["content"]] == [
        None,
        "(Result of an earlier call of 'weather', which is no longer shown.)",
        "sun",
    ]


async def test_names_that_the_api_refuses_are_replaced_on_both_sides(by_wire: Caller, wire: Wire) -> None:
    odd = "call:1/" + "x" * 80
    messages = [UserMsg("user", "Go"), called(odd, "os.system!", "{}"), returned(odd, "os.system!", "no such tool")]

    _, assistant, answer = await sent(by_wire, wire, messages)

    use, result = assistant["content"][0], answer["content"][0]
    assert re.fullmatch(r"os_system__[0-9a-f]{8}", use["name"])
    assert use["id"] == result["tool_use_id"]
    assert use["id"].startswith("call_")
    assert len(use["id"]) == 29


async def test_a_named_speaker_is_named_in_the_text(by_wire: Caller, wire: Wire) -> None:
    picture = DataBlock(source=URLSource(url="https://example.org/cat.png", media_type="image/png"))
    messages = [UserMsg("ana", "Look"), UserMsg("ben", [picture]), UserMsg("user", "Hm"), SystemMsg("system", "A note")]

    (user,) = await sent(by_wire, wire, messages)

    assert user["content"] == [
        {"type": "text", "text": "ana: Look"},
        {"type": "text", "text": "ben:"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/cat.png"}},
        {"type": "text", "text": "Hm"},
        {"type": "text", "text": "A note", "cache_control": MARK},
    ]


async def test_images_and_documents_go_in_and_other_files_are_named(by_wire: Caller, wire: Wire) -> None:
    picture = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))
    paper = DataBlock(source=Base64Source(data="JVBERi0=", media_type="application/pdf"), name="bill.pdf")
    sound = DataBlock(source=Base64Source(data="AAAA", media_type="audio/wav"), name="song.wav")
    stored = DataBlock(source=URLSource(url="workspace:///data/cat.png", media_type="image/png"))
    messages = [UserMsg("user", [paper, sound, stored]), called("a1", "shot", "{}"), returned("a1", "shot", (picture,))]
    wire.answers.append(Answer(claude_says("ok")))

    reply = await by_wire.call("anthropic:claude-haiku-4-5", messages)

    user, _, answer = wire.bodies[0]["messages"]
    assert user["content"] == [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
        {"type": "text", "text": "(The attachment 'song.wav' of type 'audio/wav' can't be shown to this model.)"},
        {
            "type": "text",
            "text": "(The attachment of type 'image/png' can't be shown to this model.)",
            "cache_control": MARK,
        },
    ]
    assert answer["content"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    ]
    assert reply.notes == (
        "An attachment of type 'audio/wav' was left out.",
        "An attachment of type 'image/png' was left out.",
    )


@pytest.mark.proves("X17")
async def test_signed_thinking_goes_back_as_it_came_and_foreign_thinking_does_not(by_wire: Caller, wire: Wire) -> None:
    signed = ThinkingBlock.model_validate({"thinking": "Rain?", "signature": "c2ln"})
    hidden = ThinkingBlock.model_validate({"thinking": "", "redacted_thinking_data": "b3BhcXVl"})
    foreign = ThinkingBlock.model_validate({"thinking": "Hm", "encrypted_content": "gAAA"})
    call = ToolCallBlock(id="a1", name="weather", input="{}")
    messages = [
        UserMsg("user", "Go"),
        AssistantMsg("x", [signed, hidden, foreign, call]),
        returned("a1", "weather", "sun"),
    ]

    _, assistant, _ = await sent(by_wire, wire, messages, thinking_budget_tokens=2000)

    assert assistant["content"] == [
        {"type": "thinking", "thinking": "Rain?", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "tool_use", "id": "a1", "name": "weather", "input": {}},
    ]
    assert wire.bodies[0]["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert wire.bodies[0]["max_tokens"] == 10192


async def test_thinking_is_off_while_it_continues_calls_made_without(by_wire: Caller, wire: Wire) -> None:
    messages = [UserMsg("user", "Go"), called("a1", "weather", "{}"), returned("a1", "weather", "sun")]

    await sent(by_wire, wire, messages, thinking_budget_tokens=2000, temperature=0.3)

    assert "thinking" not in wire.bodies[0]
    assert wire.bodies[0]["temperature"] == 0.3


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-5", "claude-fable-5-2", "claude-haiku-5-5"])
async def test_newer_models_think_adaptively_and_take_no_temperature(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers.append(Answer(claude_says("ok")))

    reply = await by_wire.call(f"anthropic:{model}", "Hi", thinking_budget_tokens=2000, temperature=0.3)

    assert wire.bodies[0]["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "temperature" not in wire.bodies[0]
    assert reply.notes == (
        "The thinking budget was left out: this model sets its own.",
        "The temperature was left out: this model takes none with these settings.",
    )


async def test_a_request_never_ends_with_the_assistant(by_wire: Caller, wire: Wire) -> None:
    messages = [UserMsg("user", "Go"), AssistantMsg("x", "  \n"), AssistantMsg("x", "One"), AssistantMsg("x", "Two")]

    _, assistant, last = await sent(by_wire, wire, messages)

    assert assistant["content"] == [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]
    assert last["content"] == [{"type": "text", "text": "(Continue.)", "cache_control": MARK}]


async def test_a_reply_is_put_together_from_its_pieces(by_wire: Caller, wire: Wire) -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    use = {"type": "tool_use", "id": "toolu_7", "name": "weather", "input": {}}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 20, "output_tokens": 1}
    body = events(
        {"type": "message_start", "message": claude_message(**usage)},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Rain "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "maybe"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "b3A="}},
        {"type": "content_block_start", "index": 2, "content_block": use},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"city": '}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '"Ber'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 44}},
        {"type": "message_stop"},
    )
    wire.answers.append(Answer(body))

    reply = await by_wire.call("anthropic:claude-haiku-4-5", "Hi", tools=[WEATHER])

    assert reply.content == (
        ThinkingBlock.model_validate({"thinking": "Rain maybe", "signature": "c2ln"}),
        ThinkingBlock.model_validate({"thinking": "", "redacted_thinking_data": "b3A="}),
        ToolCallBlock(id="toolu_7", name="weather", input='{"city": "Ber'),
    )
    assert reply.usage == Usage(
        input_tokens=330, output_tokens=44, cache_input_tokens=300, cache_creation_input_tokens=20
    )
    assert (reply.model, reply.stop_reason) == ("claude-from-the-wire", "tool_use")
    assert by_wire.heard("thinking") == "Rain maybe"
    assert by_wire.heard("tool_call") == '{"city": "Ber'
    assert {(delta.index, delta.tool_call_id) for delta in by_wire.deltas} == {(0, ""), (2, "toolu_7")}


async def test_arguments_that_come_whole_are_kept(by_wire: Caller, wire: Wire) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bonn"}}
    body = events(
        {"type": "message_start", "message": claude_message(input_tokens=1, output_tokens=1)},
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    )
    wire.answers.append(Answer(body))

    reply = await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert reply.content == (ToolCallBlock(id="t1", name="weather", input='{"city": "Bonn"}'),)


async def test_lone_surrogates_are_replaced_and_nul_is_kept(by_wire: Caller, wire: Wire) -> None:
    wire.answers.append(Answer(claude_says("a\ud800b\x00c \U0001f600")))

    reply = await by_wire.call("anthropic:claude-haiku-4-5", [UserMsg("user", "x\udfffy")])

    assert reply.content == (TextBlock(text="a\ufffdb\x00c \U0001f600"),)
    assert by_wire.heard("text") == "a\ufffdb\x00c \U0001f600"
    assert wire.bodies[0]["messages"][0]["content"][0]["text"] == "x\ufffdy"


async def test_an_overload_inside_the_stream_is_worth_a_retry(by_wire: Caller, wire: Wire) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    start = {"type": "message_start", "message": claude_message(input_tokens=1, output_tokens=1)}
    wire.answers.append(Answer(events(start, error)))

    with pytest.raises(Exception, match="Overloaded") as caught:
        await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    action = judge(caught.value)
    assert (action.kind, action.error_type) == ("retry", "upstream")
    assert action.sentence == "The model's provider is overloaded (HTTP 529): Overloaded"


@pytest.mark.parametrize("cut", [30, 200, 600])
async def test_a_connection_that_breaks_in_mid_stream_is_worth_a_retry(by_wire: Caller, wire: Wire, cut: int) -> None:
    wire.answers.append(Answer(claude_says("a long story")[:cut], whole=False))

    with pytest.raises(Exception, match=r"(?i)peer closed|incomplete|no valid JSON") as caught:
        await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert judge(caught.value).kind == "retry"


async def test_a_stream_that_says_why_it_stopped_needs_no_final_event(by_wire: Caller, wire: Wire) -> None:
    whole = claude_says("all of a story")
    wire.answers.append(Answer(whole[: whole.index(b"event: message_stop")], whole=False))

    reply = await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert reply.content == (TextBlock(text="all of a story"),)


async def test_a_stream_that_does_not_say_why_it_stopped_is_no_reply(by_wire: Caller, wire: Wire) -> None:
    whole = claude_says("half a story")
    wire.answers.append(Answer(whole[: whole.index(b"event: message_delta")]))

    with pytest.raises(IncompleteStreamError) as caught:
        await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert judge(caught.value).kind == "retry"


async def test_an_answer_that_is_no_json_is_worth_a_retry(by_wire: Caller, wire: Wire) -> None:
    wire.answers.append(Answer(b"event: message_start\ndata: {broken\n\n"))

    with pytest.raises(Exception, match="no valid JSON") as caught:
        await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("retry", "upstream")


async def test_a_window_that_leaves_no_room_asks_for_compression(by_wire: Caller, wire: Wire) -> None:
    body = events(
        {"type": "message_start", "message": claude_message(input_tokens=1, output_tokens=0)},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "model_context_window_exceeded"},
            "usage": {"output_tokens": 0},
        },
        {"type": "message_stop"},
    )
    wire.answers.append(Answer(body))

    with pytest.raises(Exception, match="no room") as caught:
        await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert judge(caught.value).kind == "compress"


async def test_blocks_of_the_providers_own_tools_are_left_out_and_noted(by_wire: Caller, wire: Wire) -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
    body = events(
        {"type": "message_start", "message": claude_message(input_tokens=1, output_tokens=0)},
        {"type": "content_block_start", "index": 0, "content_block": search},
        piece,
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Found"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
    wire.answers.append(Answer(body))

    reply = await by_wire.call("anthropic:claude-haiku-4-5", "Hi")

    assert reply.content == (TextBlock(text="Found"),)
    assert reply.notes == ("A block of type 'server_tool_use' in the reply was left out.",)


async def test_a_failed_call_with_a_picture_is_told_in_words(wire: Wire, by_wire: Caller) -> None:
    """The field for it may stand beside text alone."""
    wire.answers = [Answer(claude_says("I see."))]
    shown = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))
    failed = returned("c-1", "shoot", (TextBlock(text="The page is torn."), shown), ToolResultState.ERROR)

    await by_wire.call("anthropic:claude-haiku-4-5", [UserMsg("user", "Go"), called("c-1", "shoot", "{}"), failed])

    (result,) = wire.bodies[0]["messages"][-1]["content"]
    assert "is_error" not in result
    assert [part.get("text", part["type"]) for part in result["content"]] == ["[error]", "The page is torn.", "image"]


def test_anthropic_is_asked_what_kept_its_cache_from_serving() -> None:
    reply = ModelRequest("claude-opus-5-5", "", [UserMsg("user", "Hi")], (), ModelConfig(), cache_key="7f3a")
    judgement = replace(reply, purpose="judgement")

    assert build_payload(reply, [], official=True, previous="msg_7")["diagnostics"] == {"previous_message_id": "msg_7"}
    assert "diagnostics" not in build_payload(reply, [], official=True)
    assert "diagnostics" not in build_payload(reply, [], previous="msg_7")
    assert "diagnostics" not in build_payload(judgement, [], official=True, previous="msg_7")


@pytest.mark.parametrize("told", ["with the start", "with the end"])
async def test_what_it_says_of_its_cache_comes_with_the_reply(by_wire: Caller, wire: Wire, told: str) -> None:
    reason = {"diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 900}}}
    begins, ends = (reason, {}) if told == "with the start" else ({}, reason)
    message = {**claude_message(input_tokens=11, output_tokens=1), **begins}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Rain."}}
    wire.answers.append(
        Answer(
            events(
                {"type": "message_start", "message": message},
                block,
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn", **ends}, "usage": {"output_tokens": 7}},
                {"type": "message_stop"},
            )
        )
    )

    reply = await by_wire.call("anthropic:claude-opus-5-5", "Hi")

    assert reply.cache_miss == "tools_changed"
