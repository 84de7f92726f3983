"""What providers refuse a request for, as assertions about what we would send them of a record."""

from collections.abc import Sequence

from longhaul.activities.models.apis import anthropic, openai_chat, openai_responses
from longhaul.activities.models.model import ModelRequest
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.spec.agent_spec import ModelConfig


def request_of(record: Sequence[Msg]) -> ModelRequest:
    return ModelRequest("m", "", list(record), (), ModelConfig())


def assert_taken_by_all(record: Sequence[Msg]) -> None:
    assert_taken_by_anthropic(record)
    assert_taken_by_chat_completions(record)
    assert_taken_by_responses(record)


def assert_taken_by_anthropic(record: Sequence[Msg]) -> None:
    messages = anthropic.build_payload(request_of(record), [])["messages"]

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


def assert_taken_by_chat_completions(record: Sequence[Msg]) -> None:
    messages = openai_chat.build_payload(request_of(record), [], official=True, dashscope=False)["messages"]

    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_ids.pop(0)
        else:
            assert open_ids == []
            open_ids = [call["id"] for call in message.get("tool_calls", ())]
        assert message["content"] or message.get("tool_calls")
    assert open_ids == []


def assert_taken_by_responses(record: Sequence[Msg]) -> None:
    items = openai_responses.build_payload(request_of(record), [])["input"]

    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(outputs)
    for item, following in zip(items, [*items[1:], {"role": "user"}], strict=True):
        if item.get("type") == "reasoning":
            assert following.get("type") in ("reasoning", "function_call") or following.get("role") == "assistant"
