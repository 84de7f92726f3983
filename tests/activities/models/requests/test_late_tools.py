"""Tools that came late stand where they came: natively where the model takes them, else as schemas to call through
`call_tool`; the beginning stays as it was, for caches and for thoughts."""

import json
from typing import Any

import pytest

from longhaul.activities.models.apis import anthropic, openai_responses
from longhaul.activities.models.failures.status_table import ProviderError
from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.requests.late_tools import LATE_TOOLS, placed, takes_late_tools
from longhaul.activities.models.requests.refused_parameters import refused_by
from longhaul.activities.models.requests.thinking_origin import Beginnings, chain_of
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, UserMsg
from longhaul.agent.values.conversation.prompt import added_tools
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.tool_index import CALL_TOOL
from tests.activities.models.sample_requests import TIDES, WEATHER, called, returned

CALL = ToolDescriptor(name=CALL_TOOL, description="Call one.", input_schema={"type": "object"})
ASKED = UserMsg("user", "How high is the water?")
RECORD = [ASKED, called("c1", "weather", "{}"), returned("c1", "weather", "Rain."), added_tools(["tides"])]


def request(model: str, *tools: ToolDescriptor, messages: list[Msg] = RECORD) -> ModelRequest:
    return ModelRequest(model, "Be brief.", messages, tools, ModelConfig())


def sent(asked: ModelRequest, *, native: bool) -> ModelRequest:
    return placed(asked, asked.tools, native=native)


def test_claude_gets_them_as_a_system_message_behind_the_user() -> None:
    record = [*RECORD, UserMsg("user", "And now?"), AssistantMsg("longhaul", "I look."), UserMsg("user", "Well?")]
    told = sent(request("claude-opus-5-5", WEATHER, TIDES, CALL, messages=record), native=True)

    payload: dict[str, Any] = anthropic.build_payload(told, [], official=True)

    definition = {"name": "tides", "input_schema": {"type": "object", "properties": {"port": {"type": "string"}}}}
    addition = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
    assert [tool["name"] for tool in payload["tools"]] == ["weather", CALL_TOOL]
    assert [message["role"] for message in payload["messages"]] == [
        *("user", "assistant", "user", "system"),
        *("assistant", "user"),
    ]
    assert payload["messages"][3]["content"] == [addition]
    assert anthropic.INLINE_TOOLS in anthropic.betas_of(payload, "claude-opus-5-5")


def test_gpt_gets_them_as_an_item_behind_the_hint() -> None:
    told = sent(request("gpt-6.1-terra", WEATHER, TIDES, CALL), native=True)

    payload = openai_responses.build_payload(told, [])

    assert [tool["name"] for tool in payload["tools"]] == ["weather", CALL_TOOL]
    *_, hint, item = payload["input"]
    assert "more tools from here on: tides" in json.dumps(hint)
    assert (item["type"], item["role"]) == ("additional_tools", "developer")
    assert [tool["name"] for tool in item["tools"]] == ["tides"]


def test_another_model_reads_their_schemas_in_the_same_message_each_time() -> None:
    asked = request("gpt-4o", WEATHER, TIDES, CALL)

    first, again = sent(asked, native=False), sent(asked, native=False)

    assert [tool.name for tool in first.tools] == ["weather", CALL_TOOL]
    assert '"name": "tides"' in str(first.messages[-1].content)
    assert first.messages[-1] is again.messages[-1]
    assert first.messages[0] is ASKED


def test_without_call_tool_they_stand_at_the_beginning() -> None:
    asked = request("gpt-4o", WEATHER, TIDES)

    assert sent(asked, native=True) is asked


def test_a_tool_that_has_to_be_called_stands_at_the_beginning() -> None:
    asked = ModelRequest("gpt-5.4", "", RECORD, [WEATHER, TIDES, CALL], ModelConfig(), must_call="tides")

    assert sent(asked, native=True) is asked


def test_the_beginning_of_a_thought_stays_when_a_tool_comes() -> None:
    before = Beginnings(request("claude-opus-5-5", WEATHER, CALL, messages=RECORD[:1]), chain_of(RECORD[:1]))
    after = Beginnings(request("claude-opus-5-5", WEATHER, TIDES, CALL), chain_of(RECORD))

    assert before.before(1) == after.before(1)


@pytest.mark.parametrize(
    ("api", "url", "model", "takes"),
    [
        ("messages", "https://api.anthropic.com", "claude-opus-5-5", True),
        ("messages", "https://api.anthropic.com", "claude-sonnet-5", False),
        ("messages", "https://gateway.example", "claude-opus-5-5", False),
        ("responses", "https://api.openai.com/v1", "gpt-5.4", True),
        ("responses", "https://api.openai.com/v1", "gpt-5.1", False),
        ("chat", "https://api.openai.com/v1", "gpt-5.4", False),
    ],
)
def test_models_take_them_at_their_makers_own_addresses(api: str, url: str, model: str, takes: bool) -> None:
    assert takes_late_tools(api, url, model) is takes


@pytest.mark.parametrize(
    "words",
    [
        "messages.3.content.0: Input tag 'tool_addition' found using 'type' does not match any of the expected tags",
        "role 'system' is not supported on this model",
        "Invalid value: 'additional_tools'. Supported values are: 'message' and 'function_call'.",
    ],
)
def test_a_refusal_of_the_form_is_known(words: str) -> None:
    assert refused_by(ProviderError(400, "invalid_request_error", words))[0] == LATE_TOOLS
