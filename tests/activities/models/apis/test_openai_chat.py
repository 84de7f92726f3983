"""What goes to Chat Completions and its compatible servers and what comes back, through the real SDK."""

from typing import Any

import pytest

from longhaul.activities.models.apis.openai_chat import build_payload
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import IncompleteStreamError
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
from tests.activities.models.sample_requests import PIXEL, WEATHER, Caller, called, returned
from tests.activities.models.wire import Answer, Wire, chat_chunk, chat_says, chunks


async def sent(by_wire: Caller, wire: Wire, messages: list[Msg], **settings: Any) -> list[dict[str, Any]]:
    wire.answers.append(Answer(chat_says("ok")))
    await by_wire.call("openai-chat:qwen3", messages, **settings)
    found: list[dict[str, Any]] = wire.bodies[-1]["messages"]
    return found


async def test_speakers_have_names_where_the_api_takes_them(by_wire: Caller, wire: Wire) -> None:
    messages = [UserMsg("ana", "One"), UserMsg("ana", "Two"), UserMsg("Zoë K", "Three"), UserMsg("user", "Four")]

    told = await sent(by_wire, wire, messages, system="Be brief.", tools=[WEATHER])

    assert told == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "ana", "content": "One\n\nTwo"},
        {"role": "user", "content": "Zoë K: Three"},
        {"role": "user", "content": "Four"},
    ]
    body = wire.bodies[0]
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"][0]["function"]["name"] == "weather"
    assert body["max_tokens"] == 8192


async def test_results_follow_their_calls_and_their_pictures_follow_the_results(by_wire: Caller, wire: Wire) -> None:
    picture = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))
    calls = [ToolCallBlock(id="c1", name="shot", input="[1]"), ToolCallBlock(id="c2", name="weather", input="")]
    thought = ThinkingBlock(thinking="Hm")
    messages = [
        UserMsg("user", [TextBlock(text="Go"), picture]),
        AssistantMsg("x", [thought, TextBlock(text="Looking"), *calls]),
        returned("c2", "weather", "", ToolResultState.DENIED),
        returned("c1", "shot", (TextBlock(text="Done"), picture)),
    ]

    told = await sent(by_wire, wire, messages)

    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert told == [
        {"role": "user", "content": [{"type": "text", "text": "Go"}, image]},
        {
            "role": "assistant",
            "content": "Looking",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "shot", "arguments": '{"_unparsable": "[1]"}'}},
                {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "Done\n(1 attachment(s) of this result follow in a user message.)",
        },
        {"role": "tool", "tool_call_id": "c2", "content": "[denied]\n(no output)"},
        {"role": "user", "content": [{"type": "text", "text": "(Attachments of the result of 'shot':)"}, image]},
    ]


async def test_reasoning_content_becomes_thinking_and_usage_may_be_missing(by_wire: Caller, wire: Wire) -> None:
    body = chunks(
        chat_chunk({"role": "assistant", "content": None, "reasoning_content": "Let "}),
        chat_chunk({"reasoning_content": "me see"}),
        chat_chunk({"content": "Four"}),
        chat_chunk({}, "stop"),
        done=False,
    )
    wire.answers.append(Answer(body))

    reply = await by_wire.call("openai-chat:qwen3", "2+2?")

    thought = ThinkingBlock.model_validate({"thinking": "Let me see", "reasoning_field": "reasoning_content"})
    assert reply.content == (thought, TextBlock(text="Four"))
    assert (reply.usage, reply.stop_reason, reply.model) == (Usage(), "stop", "qwen-from-the-wire")


async def test_calls_without_ids_or_indexes_are_told_apart(by_wire: Caller, wire: Wire) -> None:
    first = {"index": None, "function": {"name": "weather", "arguments": '{"city":'}}
    rest = {"index": None, "function": {"arguments": '"Oslo"}'}}
    second = {"index": None, "function": {"name": "tides", "arguments": "{}"}}
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    deltas = [chat_chunk({"tool_calls": [call]}) for call in (first, rest, second)]
    wire.answers.append(Answer(chunks(*deltas, chat_chunk({}, "tool_calls"), {"choices": [], "usage": usage})))

    reply = await by_wire.call("openai-chat:qwen3", "Go")

    assert reply.content == (
        ToolCallBlock(id="call_4_0", name="weather", input='{"city":"Oslo"}'),
        ToolCallBlock(id="call_4_1", name="tides", input="{}"),
    )
    assert reply.usage == Usage(input_tokens=9, output_tokens=4, cache_input_tokens=3)


async def test_an_id_that_was_used_before_is_replaced(by_wire: Caller, wire: Wire) -> None:
    twice = [{"index": place, "id": "call_0", "function": {"name": "weather", "arguments": "{}"}} for place in (0, 1)]
    wire.answers.append(Answer(chunks(chat_chunk({"tool_calls": twice}), chat_chunk({}, "tool_calls"))))
    before = [UserMsg("user", "Go"), called("call_0", "weather", "{}"), returned("call_0", "weather", "sun")]

    reply = await by_wire.call("openai-chat:qwen3", before)

    assert [call.id for call in reply.content if isinstance(call, ToolCallBlock)] == ["call_4_0", "call_4_1"]


async def test_malformed_arguments_are_passed_on_as_they_came(by_wire: Caller, wire: Wire) -> None:
    call = {"index": 0, "id": "c9", "function": {"name": "weather", "arguments": '{"city": Oslo'}}
    wire.answers.append(Answer(chunks(chat_chunk({"tool_calls": [call]}), chat_chunk({}, "tool_calls"))))

    reply = await by_wire.call("openai-chat:qwen3", "Go")

    assert reply.content == (ToolCallBlock(id="c9", name="weather", input='{"city": Oslo'),)


async def test_a_stream_without_a_finish_reason_is_no_reply(by_wire: Caller, wire: Wire) -> None:
    wire.answers.append(Answer(chunks(chat_chunk({"content": "half"}), done=False)))

    with pytest.raises(IncompleteStreamError):
        await by_wire.call("openai-chat:qwen3", "Go")


async def test_an_error_inside_the_stream_gets_its_verdict(by_wire: Caller, wire: Wire) -> None:
    error = {"error": {"message": "This model's maximum context length is 8192 tokens.", "code": 400}}
    wire.answers.append(Answer(chunks(error)))

    with pytest.raises(Exception, match="maximum context") as caught:
        await by_wire.call("openai-chat:qwen3", "Go")

    assert judge(caught.value).kind == "compress"


async def test_qwen_thinks_with_a_budget(by_wire: Caller, wire: Wire) -> None:
    wire.answers.append(Answer(chat_says("ok")))

    await by_wire.call("qwen:qwen-plus", "Go", thinking_budget_tokens=1500)

    assert (wire.bodies[0]["enable_thinking"], wire.bodies[0]["thinking_budget"]) == (True, 1500)
    assert "authorization: bearer sk-dash-fern" in wire.heads[0].lower()


def test_openai_itself_gets_the_new_name_of_the_limit_and_no_temperature() -> None:
    config = ModelConfig(temperature=0.2, reasoning_effort="high", thinking_budget_tokens=1024)
    request = ModelRequest("gpt-5.1", "", [UserMsg("user", "Hi")], (), config)
    notes: list[str] = []

    payload = build_payload(request, notes, official=True, dashscope=False)

    assert payload == {
        "model": "gpt-5.1",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_completion_tokens": 33_192,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "high",
    }
    assert notes == [
        "The temperature was left out: this model takes none with these settings.",
        "The thinking budget was left out: Chat Completions has no field for it.",
    ]


async def test_pieces_are_told_apart_by_id_where_there_is_no_index(by_wire: Caller, wire: Wire) -> None:
    pieces = [
        {"id": "x1", "function": {"name": "weather", "arguments": '{"city":'}},
        {"id": "x2", "function": {"name": "tides", "arguments": "{}"}},
        {"id": "x1", "function": {"arguments": '"Oslo"}'}},
    ]
    deltas = [chat_chunk({"tool_calls": [{**piece, "index": None}]}) for piece in pieces]
    second_choice = {"index": 1, "delta": {"content": "unasked"}, "finish_reason": "stop"}
    other = {**chat_chunk({}), "choices": [second_choice]}
    wire.answers.append(Answer(chunks(*deltas, other, chat_chunk({"refusal": "No."}, "tool_calls"))))

    reply = await by_wire.call("openai-chat:qwen3", "Go")

    assert reply.content == (
        ToolCallBlock(id="x1", name="weather", input='{"city":"Oslo"}'),
        ToolCallBlock(id="x2", name="tides", input="{}"),
        TextBlock(text="No."),
    )


async def test_documents_go_in_and_other_files_are_named(by_wire: Caller, wire: Wire) -> None:
    paper = DataBlock(source=Base64Source(data="JVBERi0=", media_type="application/pdf"), name="bill.pdf")
    sound = DataBlock(source=Base64Source(data="AAAA", media_type="audio/wav"))
    stored = DataBlock(source=URLSource(url="workspace:///cat.png", media_type="image/png"), name="cat.png")

    (user,) = await sent(by_wire, wire, [UserMsg("user", [paper, sound, stored])])

    assert user["content"] == [
        {"type": "file", "file": {"filename": "bill.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "text", "text": "(The attachment of type 'audio/wav' can't be shown to this model.)"},
        {"type": "text", "text": "(The attachment 'cat.png' of type 'image/png' can't be shown to this model.)"},
    ]


@pytest.mark.parametrize(
    "model", ["gpt-audio-1.5", "gpt-4o-mini-audio-preview", "google/gemini-3-pro", "qwen3", "gpt-4o"]
)
async def test_sounds_go_to_the_models_that_hear_them(by_wire: Caller, wire: Wire, model: str) -> None:
    sounds = [
        DataBlock(source=Base64Source(data="AAAA", media_type="audio/wav"), name="gull.wav"),
        DataBlock(source=Base64Source(data="BBBB", media_type="audio/mpeg"), name="gull.mp3"),
        DataBlock(source=Base64Source(data="CCCC", media_type="audio/ogg"), name="gull.ogg"),
        DataBlock(source=URLSource(url="https://pier.example/far.wav", media_type="audio/wav"), name="far.wav"),
    ]
    told = [UserMsg("user", [TextBlock(text="Hear."), *sounds]), called("c1", "sing", "{}")]
    told.append(returned("c1", "sing", [TextBlock(text="Sung."), *sounds[:1]]))
    wire.answers.append(Answer(chat_says("ok")))

    reply = await by_wire.call(f"openai-chat:{model}", told)

    parts = [
        part
        for message in wire.bodies[-1]["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    heard = [part["input_audio"] for part in parts if part["type"] == "input_audio"]
    wav = {"data": "AAAA", "format": "wav"}
    hears = "audio" in model or "gemini" in model
    assert heard == ([wav, {"data": "BBBB", "format": "mp3"}, wav] if hears else [])
    assert "'gull.ogg' of type 'audio/ogg' can't be shown" in str(wire.bodies[-1])
    assert "'far.wav' of type 'audio/wav' can't be shown" in str(wire.bodies[-1])
    assert ("An attachment of type 'audio/mpeg' was left out." in reply.notes) != hears


async def test_an_id_made_for_a_call_is_free_too(by_wire: Caller, wire: Wire) -> None:
    call = {"index": 0, "function": {"name": "weather", "arguments": "{}"}}
    wire.answers.append(Answer(chunks(chat_chunk({"tool_calls": [call]}), chat_chunk({}, "tool_calls"))))
    before = [UserMsg("user", "Go"), called("call_4_0", "weather", "{}"), returned("call_4_0", "weather", "sun")]

    reply = await by_wire.call("openai-chat:qwen3", before)

    assert reply.content == (ToolCallBlock(id="call_4_0_", name="weather", input="{}"),)


async def test_a_whole_reply_in_one_message_is_taken_apart_again(by_wire: Caller, wire: Wire) -> None:
    reply = [
        *called("c1", "weather", "{}").content,
        *returned("c1", "weather", "sun").content,
        TextBlock(text="Sunny. And the tides?"),
        *called("c2", "tides", "{}").content,
        *returned("c2", "tides", "high").content,
        TextBlock(text="High."),
    ]

    told = await sent(by_wire, wire, [AssistantMsg("longhaul", reply)])

    assert [(message["role"], message["content"]) for message in told] == [
        ("user", "(The conversation begins here.)"),
        ("assistant", None),
        ("tool", "sun"),
        ("assistant", "Sunny. And the tides?"),
        ("tool", "high"),
        ("assistant", "High."),
    ]


@pytest.mark.parametrize(
    ("model", "roles"),
    [
        ("mistral-large-latest", ["user", "assistant", "tool", "assistant", "user"]),
        ("mistralai/Devstral-2", ["user", "assistant", "tool", "assistant", "user"]),
        ("qwen3", ["user", "assistant", "tool", "user"]),
    ],
)
async def test_a_word_stands_between_a_result_and_what_is_said_meanwhile_where_servers_want_one(
    by_wire: Caller, wire: Wire, model: str, roles: list[str]
) -> None:
    wire.answers.append(Answer(chat_says("ok")))
    record = [UserMsg("user", "Go"), called("c1", "weather", "{}"), returned("c1", "weather", "sun")]

    await by_wire.call(f"openai-chat:{model}", [*record, UserMsg("user", "Hurry.")])

    assert [message["role"] for message in wire.bodies[0]["messages"]] == roles


def marked(body: dict[str, Any]) -> list[str]:
    """The texts that bear a mark for the cache."""
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    return [part["text"] for part in parts if part.get("cache_control") == {"type": "ephemeral"}]


@pytest.mark.proves("F6")
async def test_a_claude_behind_a_gateway_is_marked_for_the_cache(by_wire: Caller, wire: Wire) -> None:
    messages: list[Msg] = [UserMsg("user", "Go")]
    for turn in range(3):
        ids = [f"c{turn}{at}" for at in range(2)]
        messages.append(AssistantMsg("x", [ToolCallBlock(id=each, name="weather", input="{}") for each in ids]))
        messages += [returned(each, "weather", f"sun {each}") for each in ids]
        wire.answers.append(Answer(chat_says("ok")))
        await by_wire.call("openai-chat:anthropic/claude-opus-4-8", messages, system="Be brief.")

    assert [marked(body) for body in wire.bodies] == [
        ["Be brief.", "Go", "sun c01"],
        ["Be brief.", "sun c01", "sun c11"],
        ["Be brief.", "sun c11", "sun c21"],
    ]


@pytest.mark.parametrize("model", ["gpt-4.1", "qwen3", "deepseek-v4-pro", "anthropic-like"])
async def test_no_other_model_is(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers = [Answer(chat_says("ok"))]

    await by_wire.call(f"openai-chat:{model}", "Go", system="Be brief.")

    assert marked(wire.bodies[0]) == []
