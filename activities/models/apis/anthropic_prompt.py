"""A request in the shape of Anthropic's Messages API. Source: platform.claude.com, "Messages", "Extended thinking"."""

import re
from collections.abc import Sequence
from typing import Any, assert_never

from longhaul.activities.models.apis.anthropic_thoughts import let_thoughts_be_dropped, thinking_fields
from longhaul.activities.models.model import AnswerSchema, ModelRequest
from longhaul.activities.models.requests.arrangement import arrange
from longhaul.activities.models.requests.text import scrub_json
from longhaul.activities.models.requests.thinking_origin import binds_thinking
from longhaul.activities.models.requests.tool_names import wire_name
from longhaul.activities.models.requests.turns import (
    AssistantTurn,
    Part,
    Turn,
    UserTurn,
    answer_schema,
    arguments_of,
    failed,
    left_out,
    parts_of,
    shown,
    wire_id,
    wire_schema,
    with_names,
)
from longhaul.activities.models.requests.wire_items import WireItem, wire_item
from longhaul.agent.values.conversation.messages import (
    IMAGES,
    Base64Source,
    DataBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)

_CACHE_MARK = {"type": "ephemeral"}
_MOST_TEMPERATURE = 1
_MARKED_MESSAGES = 2
"""Anthropic allows four marks; system and tools take one each. The one before the last finds the previous call's
prefix even when a turn added more blocks than the 20 that a lookup goes back."""


def build_payload(request: ModelRequest, notes: list[str], *, official: bool = False) -> dict[str, Any]:
    """The keyword arguments of `messages.create`; what had to be left out or changed goes into `notes`.
    `official`: Anthropic's own server, not a compatible one."""
    turns = arrange(request.messages)
    messages = _messages(turns, notes)
    _mark_for_cache(messages)
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": messages,
        **thinking_fields(request, version_of(request.model), turns, notes),
    }
    if request.system.strip():
        payload["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE_MARK}]
    if request.tools:
        payload["tools"] = _tools(request)
        if request.no_calls:
            payload["tool_choice"] = {"type": "none"}
        elif request.must_call and "thinking" not in payload and not (official and binds_thinking(request.model)):
            # With thinking the API takes no such choice; the context says it in words.
            payload["tool_choice"] = {"type": "tool", "name": request.must_call}
    if request.answer is not None:
        _force(payload, request.answer)
    if official and request.answer is None and binds_thinking(request.model):
        let_thoughts_be_dropped(payload)
    _set_temperature(payload, request, notes)
    return {name: value if name == "messages" else scrub_json(value) for name, value in payload.items()}


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    for tool in request.tools:
        described = {"description": tool.description} if tool.description else {}
        tools.append({"name": tool.name, **described, "input_schema": wire_schema(tool)})
    tools[-1]["cache_control"] = _CACHE_MARK
    return tools


def _force(payload: dict[str, Any], answer: AnswerSchema) -> None:
    tool = {"name": wire_name(answer.name), "description": answer.description, "input_schema": answer_schema(answer)}
    payload["tools"] = [*payload.get("tools", ()), tool]
    payload["tool_choice"] = {"type": "tool", "name": tool["name"], "disable_parallel_tool_use": True}


def _messages(turns: Sequence[Turn], notes: list[str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        for message in shown(turn, ("messages",), _of_turn, notes):
            _append(messages, message)
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "(The conversation begins here.)"}]})
    if messages[-1]["role"] != "user":
        # A request that ends with the assistant asks it to continue its own words, which newer models refuse.
        _append(messages, {"role": "user", "content": [{"type": "text", "text": "(Continue.)"}]})
    return messages


def _of_turn(turn: Turn, notes: list[str]) -> list[WireItem]:
    if isinstance(turn, UserTurn):
        sides = {"user": [_part(part, notes) for part in with_names(turn.said)]}
    else:
        # First in the user turn, or Anthropic refuses the request; what was said meanwhile comes after.
        sides = {"assistant": _blocks(turn, notes), "user": [_result(result, notes) for result in turn.answers()]}
    return [wire_item({"role": role, "content": content}) for role, content in sides.items() if content]


def _append(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Joined with one of the same side before it, which is another request's too and stays as it is."""
    if messages and messages[-1]["role"] == message["role"]:
        messages[-1] = {**message, "content": [*messages[-1]["content"], *message["content"]]}
    else:
        messages.append(message)


def _blocks(turn: AssistantTurn, notes: list[str]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in turn.blocks:
        match block:
            case TextBlock():
                content.append({"type": "text", "text": block.text})
            case ToolCallBlock():
                called = {"id": wire_id(block.id), "name": wire_name(block.name), "input": arguments_of(block)}
                content.append({"type": "tool_use", **called})
            case ThinkingBlock():
                content += _thought(block, notes)
            case _ as never:
                assert_never(never)
    return content


def _thought(block: ThinkingBlock, notes: list[str]) -> list[dict[str, Any]]:
    extras = block.model_extra or {}
    if data := extras.get("redacted_thinking_data"):
        return [{"type": "redacted_thinking", "data": data}]
    if signature := extras.get("signature"):
        return [{"type": "thinking", "thinking": block.thinking, "signature": signature}]
    notes.append("Thinking of another provider was left out: Anthropic takes back only what it has signed.")
    return []


def _result(result: ToolResultBlock, notes: list[str]) -> dict[str, Any]:
    content = [_part(part, notes) for part in parts_of(result.output) or [TextBlock(text="(no output)")]]
    sent = {"type": "tool_result", "tool_use_id": wire_id(result.id), "content": content}
    if not failed(result):
        return sent
    if all(part["type"] == "text" for part in content):
        return {**sent, "is_error": True}
    # "all content must be type text if is_error": a picture of what failed says more than the field.
    return {**sent, "content": [{"type": "text", "text": f"[{result.state.value}]"}, *content]}


def _part(part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    kind = _kind_of(part)
    if kind is None:
        return {"type": "text", "text": left_out(part, notes)}
    source = part.source
    if isinstance(source, Base64Source):
        return {"type": kind, "source": {"type": "base64", "media_type": source.media_type, "data": source.data}}
    return {"type": kind, "source": {"type": "url", "url": source.url}}


def _kind_of(part: DataBlock) -> str | None:
    source = part.source
    if not isinstance(source, Base64Source) and not source.url.startswith(("https://", "http://")):
        return None
    if source.media_type == "application/pdf":
        return "document"
    return "image" if source.media_type in IMAGES else None


def _mark_for_cache(messages: list[dict[str, Any]]) -> None:
    users = [place for place, message in enumerate(messages) if message["role"] == "user"]
    for place in users[-_MARKED_MESSAGES:]:
        *before, last = messages[place]["content"]
        messages[place] = {"role": "user", "content": [*before, {**last, "cache_control": _CACHE_MARK}]}


def _set_temperature(payload: dict[str, Any], request: ModelRequest, notes: list[str]) -> None:
    if request.config.temperature is None:
        return
    if payload.get("thinking", {"type": "disabled"})["type"] != "disabled" or version_of(request.model) >= (4, 7):
        notes.append("The temperature was left out: this model takes none with these settings.")
        return
    if request.config.temperature > _MOST_TEMPERATURE:
        notes.append(f"The temperature is {_MOST_TEMPERATURE}: Anthropic takes no more.")
    payload["extra_body"] = {"temperature": min(request.config.temperature, _MOST_TEMPERATURE)}


def version_of(model: str) -> tuple[int, int]:
    """Of a Claude model, from its name; (0, 0) for a name without one, as compatible servers have.

    From 4.6 on thinking is adaptive, from 4.7 on a budget and a temperature are refused ("Extended thinking").
    """
    if re.match(r"claude-(mythos|fable)-", model):
        return (5, 0)
    found = re.match(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2})(?!\d))?(?!\d)", model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
