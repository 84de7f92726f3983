"""What servers of Chat Completions reason goes back to them as it came, through the real SDK, and to nobody else."""

from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    UserMsg,
)
from tests.activities.models.loops import assert_each_goes_on_where_the_last_one_ended, step
from tests.activities.models.sample_requests import Caller, called, returned
from tests.activities.models.wire import Answer, Wire, chat_chunk, chat_says, chunks, claude_says, claude_turn

GO: list[Msg] = [UserMsg("user", "How is the weather?")]


def call_delta(call_id: str, index: int = 0, **more: Any) -> dict[str, Any]:
    function = {"name": "weather", "arguments": "{}"}
    return {"index": index, "id": call_id, "type": "function", "function": function, **more}


def calling(*deltas: dict[str, Any], calls: tuple[dict[str, Any], ...] = ()) -> Answer:
    pieces = [chat_chunk(delta) for delta in deltas]
    return Answer(chunks(*pieces, chat_chunk({"tool_calls": list(calls)}), chat_chunk({}, "tool_calls")))


def assistants(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == "assistant"]


@pytest.mark.proves("F6")
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("model", ["deepseek-v4-pro", "kimi-k2-thinking", "qwen3"])
async def test_reasoning_goes_back_under_the_name_under_which_it_came(
    by_wire: Caller, wire: Wire, field: str, model: str
) -> None:
    wire.answers = [
        calling({field: f"Step {number}, "}, {field: "I look."}, calls=(call_delta(f"c{number}"),))
        for number in range(4)
    ] + [Answer(chat_says("Rain."))]
    messages = GO
    for _ in range(5):
        messages = await step(by_wire, f"openai-chat:{model}", messages)

    assert [message[field] for message in assistants(wire.bodies[-1])] == [
        f"Step {number}, I look." for number in range(4)
    ]
    assert_each_goes_on_where_the_last_one_ended(wire.bodies)


@pytest.mark.parametrize("tag", ["think", "thinking", "thought"])
async def test_a_thought_in_tags_goes_back_in_front_of_the_text(by_wire: Caller, wire: Wire, tag: str) -> None:
    wire.answers = [
        calling({"content": f"<{tag}>Hm."}, {"content": f"</{tag}>\n\n"}, calls=(call_delta("c1"),)),
        Answer(chat_says(f"<{tag}>So.</{tag}>\n\nRain.")),
        Answer(chat_says("Still.")),
    ]
    messages = GO
    for _ in range(2):
        messages = await step(by_wire, "openai-chat:qwen3", messages)
    assert [message.get_text_content() for message in messages if message.role == "assistant"][-1] == "Rain."

    await step(by_wire, "openai-chat:qwen3", [*messages, UserMsg("user", "And now?")])

    assert [message["content"] for message in assistants(wire.bodies[2])] == [
        f"<{tag}>Hm.</{tag}>\n\n",
        f"<{tag}>So.</{tag}>\n\nRain.",
    ]


async def test_of_two_fields_with_the_same_one_is_kept(by_wire: Caller, wire: Wire) -> None:
    said = {"reasoning": "Hm.", "reasoning_content": "Hm."}
    wire.answers = [calling(said, calls=(call_delta("c1"),)), Answer(chat_says("Rain."))]

    messages = await step(by_wire, "openai-chat:glm-5", GO)
    await step(by_wire, "openai-chat:glm-5", messages)

    (spoken,) = assistants(wire.bodies[1])
    assert (spoken["reasoning_content"], "reasoning" in spoken) == ("Hm.", False)


DETAILS = [
    {"type": "reasoning.text", "text": "First ", "format": "anthropic-claude-v1", "index": 0, "signature": None},
    {"type": "reasoning.text", "text": "this.", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.text", "text": "", "signature": "c2ln", "index": 0},
    {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "c1", "index": 0, "format": "google-gemini-v1"},
    {"type": "reasoning.encrypted", "data": "bW9yZQ==", "id": "c2", "index": 0, "format": "google-gemini-v1"},
    {"type": "reasoning.summary", "summary": "In ", "index": 1},
    {"type": "reasoning.summary", "summary": "short.", "index": 1, "nested": {"is": "left out"}},
]
WHOLE = [
    {"type": "reasoning.text", "text": "First this.", "format": "anthropic-claude-v1", "index": 0, "signature": "c2ln"},
    DETAILS[3],
    DETAILS[4],
    {"type": "reasoning.summary", "summary": "In short.", "index": 1},
]


@pytest.mark.proves("F6")
@pytest.mark.parametrize("beside", [{"reasoning": "First this."}, {}])
async def test_details_go_back_whole_and_in_order(by_wire: Caller, wire: Wire, beside: dict[str, Any]) -> None:
    deltas = [{"reasoning_details": [detail]} for detail in DETAILS]
    deltas[0] |= beside
    wire.answers = [calling(*deltas, calls=(call_delta("c1"), call_delta("c2", 1))), Answer(chat_says("Rain."))]

    messages = await step(by_wire, "openai-chat:anthropic/claude-opus-4.5", GO)
    await step(by_wire, "openai-chat:anthropic/claude-opus-4.5", messages)

    (spoken,) = assistants(wire.bodies[1])
    assert spoken["reasoning_details"] == WHOLE
    assert not {"reasoning", "reasoning_content"} & spoken.keys()
    thought = messages[1].content[0]
    assert isinstance(thought, ThinkingBlock)
    assert thought.thinking.startswith("First this.")


@pytest.mark.parametrize("details", ["text", 3, [None], ["x"], [{}], [{"type": 3}], [{"type": "reasoning.text"}], {}])
async def test_odd_details_harm_nothing(by_wire: Caller, wire: Wire, details: object) -> None:
    wire.answers = [calling({"reasoning_details": details}, calls=(call_delta("c1"),)), Answer(chat_says("Rain."))]

    messages = await step(by_wire, "openai-chat:some/model", GO)
    await step(by_wire, "openai-chat:some/model", messages)

    assert [call.id for call in messages[1].get_tool_calls()] == ["c1"]
    assert assistants(wire.bodies[1])[0]["tool_calls"][0]["id"] == "c1"


def signed(signature: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": signature}}}


@pytest.mark.proves("F6")
async def test_a_signature_of_geminis_goes_back_with_its_call(by_wire: Caller, wire: Wire) -> None:
    wire.answers = [
        calling(calls=(call_delta("c1", **signed("c2ln-1")), call_delta("c2", 1))),
        calling(calls=(call_delta("c3", **signed("c2ln-2")),)),
        Answer(chat_says("Rain.")),
    ]
    messages = GO
    for _ in range(3):
        messages = await step(by_wire, "openai-chat:gemini-3-pro", messages)

    first, second = assistants(wire.bodies[2])
    assert [call.get("extra_content") for call in first["tool_calls"]] == [signed("c2ln-1")["extra_content"], None]
    assert [call.get("extra_content") for call in second["tool_calls"]] == [signed("c2ln-2")["extra_content"]]
    assert_each_goes_on_where_the_last_one_ended(wire.bodies)


@pytest.mark.parametrize(
    "extra", [None, "x", {}, {"google": None}, {"google": {"thought_signature": 7}}, {"other": {}}]
)
async def test_another_extra_content_is_not_kept(by_wire: Caller, wire: Wire, extra: object) -> None:
    wire.answers = [calling(calls=(call_delta("c1", extra_content=extra),))]

    messages = await step(by_wire, "openai-chat:gemini-3-pro", GO)

    assert messages[1].get_tool_calls()[0].extras == {}


async def test_calls_of_another_model_are_marked_so_for_gemini(by_wire: Caller, wire: Wire) -> None:
    """It refuses an answer whose first call has no signature, also when it was not its own."""
    calls = [ToolCallBlock(id=call_id, name="weather", input="{}") for call_id in ("c1", "c2")]
    results = [returned(call.id, "weather", "Rain.") for call in calls]
    wire.answers = [Answer(chat_says("ok")), Answer(chat_says("ok"))]

    for model in ("gemini-3-pro", "gemini-2.5-flash"):
        await by_wire.call(f"openai-chat:{model}", [*GO, AssistantMsg("longhaul", calls), *results])

    marked = [[call.get("extra_content") for call in assistants(body)[0]["tool_calls"]] for body in wire.bodies]
    skipped = signed("skip_thought_signature_validator")["extra_content"]
    assert marked == [[skipped, None], [None, None]]


@pytest.mark.parametrize(
    ("model", "sent"), [("deepseek-v4-pro", " "), ("moonshotai/Kimi-K2.6", " "), ("qwen3", None), ("gpt-5.1", None)]
)
async def test_servers_that_insist_on_reasoning_get_a_blank_where_another_model_answered(
    by_wire: Caller, wire: Wire, model: str, sent: str | None
) -> None:
    wire.answers = [Answer(chat_says("ok"))]

    await by_wire.call(f"openai-chat:{model}", [*GO, called("c1", "weather", "{}"), returned("c1", "weather", "Rain.")])

    assert assistants(wire.bodies[0])[0].get("reasoning_content") == sent


DEEPSEEK, GEMINI, CLAUDE = "openai-chat:deepseek-v4-pro", "openai-chat:gemini-3-pro", "anthropic:claude-opus-4-5"
SECRETS = ("From DeepSeek alone.", "c2ln-of-gemini", "c2ln-of-claude")


def answer_of(model: str) -> Answer:
    if model == CLAUDE:
        return Answer(claude_turn(("From Claude.", "c2ln-of-claude"), "", ("toolu_1", "weather", {})))
    if model == DEEPSEEK:
        return calling({"reasoning_content": "From DeepSeek alone."}, calls=(call_delta("c1"),))
    return calling(calls=(call_delta("c2", **signed("c2ln-of-gemini")),))


@pytest.mark.parametrize("first", [DEEPSEEK, GEMINI, CLAUDE])
async def test_nothing_goes_to_a_provider_that_it_is_not_from(wire: Wire, first: str) -> None:
    """A fallback: of another kind, and of the same kind at another address."""
    from tests.activities.models.conftest import calling as calling_at  # noqa: PLC0415

    wire.answers = [
        answer_of(first),
        Answer(claude_says("ok") if first != CLAUDE else chat_says("ok")),
        Answer(chat_says("ok")),
    ]
    other = CLAUDE if first != CLAUDE else DEEPSEEK
    async with calling_at(wire.url) as here, calling_at(f"{wire.url}/elsewhere") as elsewhere:
        messages = await step(here, first, GO)
        assert any(secret in "".join(message.model_dump_json() for message in messages) for secret in SECRETS)

        await step(here, other, messages)
        await step(elsewhere, "openai-chat:qwen3", messages)

    for body in wire.bodies[1:]:
        assert not [secret for secret in SECRETS if secret in str(body)]
        assert "made_by" not in str(body)


async def test_extras_that_nobody_has_marked_go_to_nobody(by_wire: Caller, wire: Wire) -> None:
    """As of a conversation that was taken over from elsewhere."""
    call = ToolCallBlock(id="c1", name="weather", input="{}", extras={"thought_signature": "c2ln"})
    said = AssistantMsg("longhaul", [TextBlock(text="I look.", extras={"phase": "commentary"}), call])
    wire.answers = [Answer(chat_says("ok"))]

    await step(by_wire, "openai-chat:qwen3", [*GO, said, returned("c1", "weather", "Rain.")])

    assert "c2ln" not in str(wire.bodies[0])
