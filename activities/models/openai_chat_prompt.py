"""A request in the shape of Chat Completions. Source: platform.openai.com, "Chat", and DashScope's compatible mode."""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, assert_never

from activities.models.model import AnswerSchema, ModelRequest
from activities.models.openai_parts import arguments_text, attachment_of, is_reasoning_model, state_mark
from activities.models.text import scrub_json
from activities.models.turns import (
    AssistantTurn,
    Part,
    Said,
    UserTurn,
    answer_schema,
    arrange,
    left_out,
    parts_of,
    wire_id,
    wire_name,
    wire_schema,
    with_names,
)
from agent.messages import DataBlock, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

_LONGEST_ID = 40
"""Chat Completions takes no longer call ids."""


def build_payload(request: ModelRequest, notes: list[str], *, official: bool, dashscope: bool) -> dict[str, Any]:
    """The keyword arguments of `chat.completions.create`. `official`: OpenAI's own server, not a compatible one."""
    config = request.config
    # OpenAI's reasoning models refuse the old name, many compatible servers do not know the new one.
    limit = "max_completion_tokens" if official else "max_tokens"
    payload: dict[str, Any] = {
        "model": request.model,
        "messages": _messages(request, notes),
        limit: config.max_output_tokens,
        "stream_options": {"include_usage": True},
    }
    _set_tools(payload, request)
    if config.reasoning_effort is not None:
        payload["reasoning_effort"] = config.reasoning_effort
    if config.temperature is not None:
        if official and is_reasoning_model(request.model):
            notes.append("The temperature was left out: reasoning models take none.")
        else:
            payload["temperature"] = config.temperature
    if config.thinking_budget_tokens is not None:
        if dashscope and request.answer is not None:
            notes.append("Thinking is off for this call: the server does not think when the answer's form is forced.")
            payload["extra_body"] = {"enable_thinking": False}
        elif dashscope:
            payload["extra_body"] = {"enable_thinking": True, "thinking_budget": config.thinking_budget_tokens}
        else:
            notes.append("The thinking budget was left out: Chat Completions has no field for it.")
    return {key: scrub_json(value) for key, value in payload.items()}


def _set_tools(payload: dict[str, Any], request: ModelRequest) -> None:
    if request.tools:
        payload["tools"] = _tools(request)
        if request.no_calls:
            payload["tool_choice"] = "none"
    if request.answer is not None:
        _force(payload, request.answer)


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
    functions = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": wire_schema(tool),
        }
        for tool in request.tools
    ]
    return [{"type": "function", "function": function} for function in functions]


def _force(payload: dict[str, Any], answer: AnswerSchema) -> None:
    name = wire_name(answer.name)
    function = {"name": name, "description": answer.description, "parameters": answer_schema(answer)}
    payload["tools"] = [*payload.get("tools", ()), {"type": "function", "function": function}]
    payload["tool_choice"] = {"type": "function", "function": {"name": name}}


def _messages(request: ModelRequest, notes: list[str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    for turn in arrange(request.messages):
        match turn:
            case UserTurn():
                for speaker, said in groupby(turn.said, key=lambda item: item.speaker):
                    messages.append(_user(speaker, list(said), notes))
            case AssistantTurn():
                messages.append(_assistant(turn, notes))
                messages += _results(turn.answers(), notes)
            case _ as never:
                assert_never(never)
    return messages or [{"role": "user", "content": "(The conversation begins here.)"}]


def _user(speaker: str, said: Sequence[Said], notes: list[str]) -> dict[str, Any]:
    """The API's own `name` takes few characters; another name stands in front of the text instead."""
    if speaker and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", speaker):
        return {"role": "user", "name": speaker, "content": _content([item.part for item in said], notes)}
    return {"role": "user", "content": _content(with_names(said), notes)}


def _content(parts: Sequence[Part], notes: list[str]) -> str | list[dict[str, Any]]:
    """Plain text where it suffices: small servers know no lists."""
    shown = [_shown(part, notes) for part in parts]
    if all(part["type"] == "text" for part in shown):
        return "\n\n".join(part["text"] for part in shown)
    return shown


def _shown(part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    attachment = attachment_of(part)
    if attachment is None:
        return {"type": "text", "text": left_out(part, notes)}
    if attachment.kind == "image":
        return {"type": "image_url", "image_url": {"url": attachment.url}}
    return {"type": "file", "file": {"filename": attachment.name, "file_data": attachment.url}}


def _assistant(turn: AssistantTurn, notes: list[str]) -> dict[str, Any]:
    text = "\n\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
    if any(isinstance(block, ThinkingBlock) for block in turn.blocks):
        notes.append("Earlier thinking was left out: Chat Completions does not take it back.")
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    calls = [_call(call) for call in turn.calls()]
    return {**message, "tool_calls": calls} if calls else message


def _call(call: ToolCallBlock) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": arguments_text(call)}
    return {"id": wire_id(call.id, _LONGEST_ID), "type": "function", "function": function}


def _results(results: Sequence[ToolResultBlock], notes: list[str]) -> list[dict[str, Any]]:
    """All results of the turn, then one user message with their attachments, which a result can't hold here."""
    messages: list[dict[str, Any]] = []
    attachments: list[Part] = []
    for result in results:
        texts = [part.text for part in parts_of(result.output) if isinstance(part, TextBlock)]
        shown = [part for part in parts_of(result.output) if isinstance(part, DataBlock)]
        if shown:
            notes.append("Attachments of a tool result were sent as a user message after it.")
            texts.append(f"({len(shown)} attachment(s) of this result follow in a user message.)")
            attachments += [TextBlock(text=f"(Attachments of the result of {result.name!r}:)"), *shown]
        content = state_mark(result) + ("\n".join(texts) or "(no output)")
        messages.append({"role": "tool", "tool_call_id": wire_id(result.id, _LONGEST_ID), "content": content})
    if attachments:
        messages.append({"role": "user", "content": _content(attachments, notes)})
    return messages
