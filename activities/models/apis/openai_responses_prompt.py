"""A request in the shape of OpenAI's Responses API. Source: platform.openai.com, "Conversation state", "Reasoning"."""

from collections.abc import Sequence
from typing import Any, assert_never

from longhaul.activities.models.model import AnswerSchema, ModelRequest
from longhaul.activities.models.requests.arrangement import arrange
from longhaul.activities.models.requests.efforts import NONE, effort_of, may_reason
from longhaul.activities.models.requests.nested_schemas import with_plain_parts
from longhaul.activities.models.requests.openai_parts import (
    arguments_text,
    attachment_of,
    is_grok,
    is_reasoning_model,
    state_mark,
)
from longhaul.activities.models.requests.output_limit import output_limit
from longhaul.activities.models.requests.text import scrub_json
from longhaul.activities.models.requests.tool_names import wire_name
from longhaul.activities.models.requests.turns import (
    AssistantTurn,
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
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock

PHASE, PHASES = "phase", ("commentary", "final_answer")
"""Of a message: models from gpt-5.3-codex on do worse where it does not come back."""
_LEAST_OUTPUT = 16
"""The API refuses a lower limit."""
ENCRYPTED = "reasoning.encrypted_content"
"""What a request has to include, so that a reply's reasoning can be sent back."""


def build_payload(
    request: ModelRequest, notes: list[str], *, encrypted: bool = True, summarised: bool = True
) -> dict[str, Any]:
    """The keyword arguments of `responses.create`; what had to be left out or changed goes into `notes`. `encrypted`:
    the server is asked for reasoning that it takes back, unless its model is known to have none. `summarised`: for
    summaries of it, which people are shown, where the model is known to reason."""
    payload: dict[str, Any] = {
        "model": request.model,
        "input": _items(request, notes),
        "max_output_tokens": max(_LEAST_OUTPUT, output_limit(request.config, thinks=_reasons(request))),
        # Nothing is kept at the provider: the record is ours, and a session may go on with another provider.
        "store": False,
    }
    if request.system.strip():
        payload["instructions"] = request.system
    if request.tools:
        payload["tools"] = _tools(request)
        if request.no_calls:
            payload["tool_choice"] = "none"
        elif request.must_call:
            payload["tool_choice"] = {"type": "function", "name": request.must_call}
    if request.answer is not None:
        _force(payload, request.answer)
    _set_reasoning(payload, request, notes, summarised=summarised)
    if encrypted and may_reason(request.model):
        payload["include"] = [ENCRYPTED]
    return {name: value if name == "input" else scrub_json(value) for name, value in payload.items()}


def _set_reasoning(payload: dict[str, Any], request: ModelRequest, notes: list[str], *, summarised: bool) -> None:
    config = request.config
    if config.thinking_budget_tokens is not None:
        notes.append("The thinking budget was left out: OpenAI takes a reasoning effort instead.")
    effort = effort_of(request.model, config.reasoning_effort, notes)
    reasoning = {} if effort is None else {"effort": effort}
    if summarised and effort != NONE and request.purpose == "reply" and is_reasoning_model(request.model):
        reasoning["summary"] = "auto"
    if reasoning:
        payload["reasoning"] = reasoning
    if config.temperature is not None:
        if _reasons(request) and not is_grok(request.model):
            notes.append("The temperature was left out: reasoning models take none.")
        else:
            payload["temperature"] = config.temperature


def _reasons(request: ModelRequest) -> bool:
    if is_reasoning_model(request.model) or is_grok(request.model):
        return True
    return request.config.reasoning_effort is not None and may_reason(request.model)


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": with_plain_parts(wire_schema(tool)),
            # Strict mode refuses schemas with optional fields, which most tools have.
            "strict": False,
        }
        for tool in request.tools
    ]


def _force(payload: dict[str, Any], answer: AnswerSchema) -> None:
    named = {"type": "function", "name": wire_name(answer.name)}
    # Not strict: a user's own schema may have what strict mode refuses.
    tool = {
        **named,
        "description": answer.description,
        "parameters": with_plain_parts(answer_schema(answer)),
        "strict": False,
    }
    payload["tools"] = [*payload.get("tools", ()), tool]
    payload["tool_choice"] = named


def _items(request: ModelRequest, notes: list[str]) -> list[dict[str, Any]]:
    items = [item for turn in arrange(request.messages) for item in shown(turn, ("responses",), _of_turn, notes)]
    return [*items] or [{"role": "user", "content": "(The conversation begins here.)"}]


def _of_turn(turn: Turn, notes: list[str]) -> list[WireItem]:
    if isinstance(turn, UserTurn):
        items = [{"role": "user", "content": _content(with_names(turn.said), notes)}]
    else:
        items = [*_assistant_items(turn, notes), *(_result(result, notes) for result in turn.answers())]
    return list(map(wire_item, items))


def _assistant_items(turn: AssistantTurn, notes: list[str]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for place, block in enumerate(turn.blocks):
        match block:
            case TextBlock():
                phase = {"phase": block.extras[PHASE]} if block.extras.get(PHASE) in PHASES else {}
                items.append({"role": "assistant", **phase, "content": [{"type": "output_text", "text": block.text}]})
            case ToolCallBlock():
                called = {"call_id": wire_id(block.id), "name": wire_name(block.name)}
                items.append({"type": "function_call", **called, "arguments": arguments_text(block)})
            case ThinkingBlock():
                led_to_something = any(not isinstance(later, ThinkingBlock) for later in turn.blocks[place + 1 :])
                items += _thought(block, notes) if led_to_something else []
            case _ as never:
                assert_never(never)
    return items


def _thought(block: ThinkingBlock, notes: list[str]) -> list[dict[str, Any]]:
    extras = block.model_extra or {}
    if not extras.get("encrypted_content"):
        notes.append("Thinking of another provider was left out: OpenAI takes back only its own.")
        return []
    summary = [{"type": "summary_text", "text": block.thinking}] if block.thinking else []
    kept = {"id": extras.get("item_id", ""), "encrypted_content": extras["encrypted_content"]}
    return [{"type": "reasoning", "summary": summary, **kept}]


def _result(result: ToolResultBlock, notes: list[str]) -> dict[str, Any]:
    parts = parts_of(result.output) or [TextBlock(text="(no output)")]
    mark = state_mark(result)
    if all(isinstance(part, TextBlock) for part in parts):
        output: Any = mark + "\n".join(part.text for part in parts if isinstance(part, TextBlock))
    else:
        output = _content([TextBlock(text=mark.strip()), *parts] if mark else parts, notes)
    return {"type": "function_call_output", "call_id": wire_id(result.id), "output": output}


def _content(parts: Sequence[Part], notes: list[str]) -> list[dict[str, Any]]:
    return [_part(part, notes) for part in parts]


def _part(part: Part, notes: list[str]) -> dict[str, Any]:
    if isinstance(part, TextBlock):
        return {"type": "input_text", "text": part.text}
    attachment = attachment_of(part)
    if attachment is None:
        return {"type": "input_text", "text": left_out(part, notes)}
    if attachment.kind == "image":
        return {"type": "input_image", "image_url": attachment.url, "detail": "auto"}
    if attachment.kind == "file by address":
        return {"type": "input_file", "file_url": attachment.url}
    return {"type": "input_file", "filename": attachment.name, "file_data": attachment.url}
