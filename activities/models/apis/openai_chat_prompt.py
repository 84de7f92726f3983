"""A request in the shape of Chat Completions. Source: platform.openai.com, "Chat", and DashScope's compatible mode."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

from longhaul.activities.models.apis.chat_thoughts import reasoning_fields, with_signatures
from longhaul.activities.models.model import AnswerSchema, ModelRequest
from longhaul.activities.models.requests.arrangement import arrange
from longhaul.activities.models.requests.efforts import effort_of
from longhaul.activities.models.requests.nested_schemas import with_plain_parts
from longhaul.activities.models.requests.openai_parts import (
    arguments_text,
    attachment_of,
    is_claude,
    is_reasoning_model,
    sound_of,
    state_mark,
)
from longhaul.activities.models.requests.output_limit import output_limit
from longhaul.activities.models.requests.sampling_parameters import is_fixed
from longhaul.activities.models.requests.text import scrub, scrub_json
from longhaul.activities.models.requests.tool_names import wire_name
from longhaul.activities.models.requests.turns import (
    AssistantTurn,
    OutsideWords,
    Part,
    Turn,
    UserTurn,
    answer_schema,
    left_out,
    parts_of,
    shown,
    wire_id,
    wire_schema,
    with_names,
)
from longhaul.activities.models.requests.wire_items import WireItem, wire_item
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock, ToolCallBlock, ToolResultBlock

_WANTS_ANSWER = re.compile(r"(?:mi|magi|mini|dev|code)stral|mixtral|pixtral", re.IGNORECASE)
"""Mistral's refuse it: "Unexpected role 'user' after role 'tool'"."""
_CACHE_MARK = {"cache_control": {"type": "ephemeral"}}
"""For Claude behind a gateway: LiteLLM, OpenRouter, Portkey and others pass it on (docs.litellm.ai and openrouter.ai,
"Prompt caching", 2026-11-24)."""
_MARKED_ENDS = 2
"""As over Anthropic's own API: the end of the request, and that of the one before, which finds what this has cached."""
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
        limit: output_limit(config, thinks=is_reasoning_model(request.model)),
        "stream_options": {"include_usage": True},
    }
    _set_tools(payload, request)
    if (effort := effort_of(request.model, config.reasoning_effort, notes)) is not None:
        payload["reasoning_effort"] = effort
    if config.temperature is not None:
        if official and is_reasoning_model(request.model):
            notes.append("The temperature was left out: reasoning models take none.")
        elif is_fixed(request.model):
            notes.append("The temperature was left out: this model has one of its own.")
        else:
            payload["temperature"] = config.temperature
    if config.thinking_budget_tokens is not None:
        if dashscope and request.answer is not None:
            notes.append("Thinking is off for this call: the server does not think when the answer's form is forced.")
            payload["extra_body"] = {"enable_thinking": False}
        elif dashscope:
            if request.must_call:
                del payload["tool_choice"]  # which the server does not take with thinking; the context says it in words
            payload["extra_body"] = {"enable_thinking": True, "thinking_budget": config.thinking_budget_tokens}
        else:
            notes.append("The thinking budget was left out: Chat Completions has no field for it.")
    return {name: value if name == "messages" else scrub_json(value) for name, value in payload.items()}


def _set_tools(payload: dict[str, Any], request: ModelRequest) -> None:
    if request.tools:
        payload["tools"] = _tools(request)
        if request.no_calls:
            payload["tool_choice"] = "none"
        elif request.must_call:
            payload["tool_choice"] = {"type": "function", "function": {"name": request.must_call}}
    if request.answer is not None:
        _force(payload, request.answer)


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
    functions = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": with_plain_parts(wire_schema(tool)),
        }
        for tool in request.tools
    ]
    return [{"type": "function", "function": function} for function in functions]


def _force(payload: dict[str, Any], answer: AnswerSchema) -> None:
    name = wire_name(answer.name)
    function = {"name": name, "description": answer.description, "parameters": with_plain_parts(answer_schema(answer))}
    payload["tools"] = [*payload.get("tools", ()), {"type": "function", "function": function}]
    payload["tool_choice"] = {"type": "function", "function": {"name": name}}


def _messages(request: ModelRequest, notes: list[str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in arrange(request.messages):
        messages += shown(turn, ("chat", request.model), partial(_of_turn, request.model), notes)
    if not messages or messages[0]["role"] != "user":
        # Gemini refuses a call that nobody has asked for, and templates of vLLM a conversation without a user.
        messages.insert(0, {"role": "user", "content": "(The conversation begins here.)"})
    system = [{"role": "system", "content": scrub(request.system)}] if request.system.strip() else []
    told = [*system, *(_answered(messages) if _WANTS_ANSWER.search(request.model) else messages)]
    return _marked_for_cache(told) if is_claude(request.model) else told


def _marked_for_cache(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With marks on the system prompt and on the last message before each of the newest answers."""
    asks = [message["role"] in ("user", "tool") for message in messages]
    ends = [at for at, asked in enumerate(asks) if asked and not any(asks[at + 1 : at + 2])]
    marked = {0, *ends[-_MARKED_ENDS:]} if messages[0]["role"] == "system" else {*ends[-_MARKED_ENDS:]}
    return [_marked(message) if at in marked else message for at, message in enumerate(messages)]


def _marked(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    *before, last = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": [*before, {**last, **_CACHE_MARK}]}


def _of_turn(model: str, turn: Turn, notes: list[str]) -> list[WireItem]:
    if isinstance(turn, UserTurn):
        spoken = groupby(turn.said, key=lambda item: item.speaker)
        messages = [_user(model, speaker, list(said), notes) for speaker, said in spoken]
    else:
        messages = [_assistant(turn, model, notes), *_results(model, turn.answers(), notes)]
    return list(map(wire_item, messages))


def _answered(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With a word of the assistant wherever a user would speak right after a result."""
    told: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and told and told[-1]["role"] == "tool":
            told.append({"role": "assistant", "content": "(Seen.)"})
        told.append(message)
    return told


def _user(model: str, speaker: str, said: Sequence[OutsideWords], notes: list[str]) -> dict[str, Any]:
    """The API's own `name` takes few characters; another name stands in front of the text instead."""
    if speaker and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", speaker):
        return {"role": "user", "name": speaker, "content": _content(model, [item.part for item in said], notes)}
    return {"role": "user", "content": _content(model, with_names(said), notes)}


def _content(model: str, parts: Sequence[Part], notes: list[str]) -> str | list[dict[str, Any]]:
    """Plain text where it suffices: small servers know no lists."""
    shown = [_shown(model, part, notes) for part in parts]
    if all(part["type"] == "text" for part in shown):
        return "\n\n".join(part["text"] for part in shown)
    return shown


def _shown(model: str, part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "text", "text": part.text}
    if (sound := sound_of(part, model)) is not None:
        return sound
    attachment = attachment_of(part)
    if attachment is None or attachment.kind == "file by address":
        return {"type": "text", "text": left_out(part, notes)}
    if attachment.kind == "image":
        return {"type": "image_url", "image_url": {"url": attachment.url}}
    return {"type": "file", "file": {"filename": attachment.name, "file_data": attachment.url}}


def _assistant(turn: AssistantTurn, model: str, notes: list[str]) -> dict[str, Any]:
    text = "\n\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
    message: dict[str, Any] = {"role": "assistant", "content": text or None, **reasoning_fields(turn, model, notes)}
    calls = turn.calls()
    sent = with_signatures(calls, [_call(call) for call in calls], model)
    return {**message, "tool_calls": sent} if sent else message


def _call(call: ToolCallBlock) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": arguments_text(call)}
    return {"id": wire_id(call.id, _LONGEST_ID), "type": "function", "function": function}


def _results(model: str, results: Sequence[ToolResultBlock], notes: list[str]) -> list[dict[str, Any]]:
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
        messages.append({"role": "user", "content": _content(model, attachments, notes)})
    return messages
