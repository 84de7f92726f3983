"""Whatever the record holds, the request keeps the rules that providers refuse requests for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from activities.models import anthropic_prompt, openai_chat_prompt, openai_responses_prompt
from activities.models.model import ModelRequest
from agent.messages import AssistantMsg, HintBlock, Msg, TextBlock, ThinkingBlock, ToolCallBlock, UserMsg
from agent.settings import ModelConfig
from tests.activities.models.requests import returned

IDS = st.sampled_from(["a1", "b2", "c/3", "d" * 70])
TEXTS = st.sampled_from(["", "  \n", "Hi", "\ud800", "\x00"])
KEPT = {"signature": "s", "encrypted_content": "e"}
BLOCKS = st.one_of(
    TEXTS.map(lambda text: TextBlock(text=text)),
    TEXTS.map(
        lambda text: ThinkingBlock.model_validate({"thinking": text, "signature": "s", "encrypted_content": "e"})
    ),
    st.builds(ToolCallBlock, id=IDS, name=st.sampled_from(["weather", "no such!", ""]), input=TEXTS),
    TEXTS.map(lambda text: HintBlock(hint=text)),
)
MESSAGES = st.one_of(
    st.lists(BLOCKS, max_size=4).map(lambda blocks: AssistantMsg("longhaul", blocks)),
    st.builds(UserMsg, st.sampled_from(["user", "ana", "Zoë K"]), TEXTS),
    st.builds(returned, IDS, st.just("weather"), TEXTS),
)
RECORDS = st.lists(MESSAGES, max_size=9)


def request_of(record: list[Msg]) -> ModelRequest:
    return ModelRequest("m", "", record, (), ModelConfig())


@given(RECORDS)
def test_anthropics_rules_hold(record: list[Msg]) -> None:
    messages = anthropic_prompt.build_payload(request_of(record), [])["messages"]

    roles = [message["role"] for message in messages]
    assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    assert len(roles) % 2 == 1
    open_ids: list[str] = []
    for message in messages:
        kinds = [block["type"] for block in message["content"]]
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        assert kinds[: len(results)] == ["tool_result"] * len(results)
        assert results == open_ids
        open_ids = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert len(set(open_ids)) == len(open_ids)
        assert all(block["text"].strip() for block in message["content"] if block["type"] == "text")
        assert all(kinds)
    assert open_ids == []


@given(RECORDS)
def test_the_rules_of_chat_completions_hold(record: list[Msg]) -> None:
    messages = openai_chat_prompt.build_payload(request_of(record), [], official=True, dashscope=False)["messages"]

    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_ids.pop(0)
        else:
            assert open_ids == []
            open_ids = [call["id"] for call in message.get("tool_calls", ())]
        assert message["content"] or message.get("tool_calls")
    assert open_ids == []


@given(RECORDS)
def test_the_rules_of_the_responses_api_hold(record: list[Msg]) -> None:
    items = openai_responses_prompt.build_payload(request_of(record), [])["input"]

    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(outputs)
    for item, following in zip(items, [*items[1:], {"role": "user"}], strict=True):
        if item.get("type") == "reasoning":
            assert following.get("type") in ("reasoning", "function_call") or following.get("role") == "assistant"


@given(RECORDS)
def test_every_request_can_be_sent_as_utf_8(record: list[Msg]) -> None:
    payloads: list[Any] = [
        anthropic_prompt.build_payload(request_of(record), []),
        openai_chat_prompt.build_payload(request_of(record), [], official=False, dashscope=False),
        openai_responses_prompt.build_payload(request_of(record), []),
    ]

    for payload in payloads:
        assert str(payload).encode("utf-8")
        assert not any(0xD800 <= ord(character) <= 0xDFFF for character in texts_of(payload))


def texts_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "".join(texts_of(child) for child in children)
