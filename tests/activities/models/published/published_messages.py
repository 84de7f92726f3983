# ruff: noqa: E501  one row each
"""What Anthropic publishes that its Messages API refuses."""

import base64
import re
from collections.abc import Iterator
from typing import Any

from tests.activities.models.published.published import (
    ANTHROPIC,
    Body,
    Rule,
    Sent,
    additions,
    forces,
    functions,
    is_no_object,
    names_no_tool,
)
from tests.activities.models.strict import beginning_of

DOCS = "platform.claude.com/docs/"
API = f"{DOCS}api/messages/create"
TOOLS = f"{DOCS}agents-and-tools/tool-use/"
THINKING = f"{DOCS}build-with-claude/extended-thinking"
OPUS = f"{DOCS}models/opus-5-5/migration-guide"
FABLE = f"{DOCS}models/fable-5-1/migration-guide"
PRESERVED = f"{DOCS}build-with-claude/preserved-thinking"
SEEN = "github.com/anthropics/claude-code/issues/"

BODY: Body = {
    "model": "claude-haiku-4-5",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "system": [{"type": "text", "text": "Be brief."}],
    "tools": [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "How is it?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "signed-1"},
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Rain."}]},
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
}
SIGNED = {"signed-1": beginning_of(BODY, 1)}


def _version(sent: Sent) -> tuple[int, int]:
    found = re.search(r"claude-[a-z]+-(\d+)-(\d+)", sent.model)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _blocks(sent: Sent, *kinds: str) -> Iterator[dict[str, Any]]:
    """Those of messages, and those within results."""
    for message in sent.body["messages"]:
        for block in message["content"]:
            for part in (block, *(block.get("content", ()) if block["type"] == "tool_result" else ())):
                if part["type"] in kinds:
                    yield part


def _set(**fields: Any) -> Any:
    return lambda body: body.update(fields)


def _block(message: int, at: int, **fields: Any) -> Any:
    return lambda body: body["messages"][message]["content"][at].update(fields)


def _tool(**fields: Any) -> Any:
    return lambda body: body["tools"][0].update(fields)


def _unlike(sent: Sent, after: str) -> bool:
    """Whether the results after a turn are not those of its calls; `after`: `missing` or `unasked`."""
    asked: set[str] = set()
    for message in [*sent.body["messages"], {"content": []}]:
        given = {block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"}
        if asked - given if after == "missing" else given - asked:
            return True
        asked = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
    return False


def _results_come_late(sent: Sent) -> bool:
    kinds = [[block["type"] == "tool_result" for block in message["content"]] for message in sent.body["messages"]]
    return any(are != sorted(are, reverse=True) for are in kinds)


def _thinks(sent: Sent) -> str:
    return str(sent.body.get("thinking", {}).get("type", ""))


def _begins_without_a_thought(sent: Sent) -> bool:
    """The turn at hand: the calls since a user last spoke of more than results, and the first of them."""
    first: dict[str, Any] | None = None
    for message in reversed(sent.body["messages"]):
        kinds = {block["type"] for block in message["content"]}
        if message["role"] == "assistant" and "tool_use" not in kinds:
            break
        first = message["content"][0] if message["role"] == "assistant" else first
    return _thinks(sent) == "enabled" and first is not None and "thinking" not in first["type"]


def _is_elsewhere(sent: Sent) -> bool:
    if _version(sent) < (5, 1) or "block_binding" in sent.body.get("thinking", {}):
        return False
    messages = sent.body["messages"]
    return any(
        sent.signed.get(block["signature"]) != beginning_of(sent.body, place)
        for place, message in enumerate(messages)
        for block in message["content"]
        if block["type"] == "thinking"
    )


def _is_no_image(block: dict[str, Any]) -> bool:
    source = block["source"]
    if source["type"] != "base64":
        return not source["url"].startswith(("https://", "http://"))
    try:
        base64.b64decode(source["data"], validate=True)
    except ValueError:
        return True
    kinds = ("image/jpeg", "image/png", "image/gif", "image/webp") if block["type"] == "image" else ("application/pdf",)
    return source["media_type"] not in kinds


MIDST = f"{DOCS}build-with-claude/mid-conversation-system-messages"
_TIDES = {"name": "tides", "input_schema": {"type": "object", "properties": {}}}
_ADDED = {
    "role": "system",
    "content": [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": _TIDES}}],
}


def _is_misplaced(sent: Sent) -> bool:
    roles = ["", *(message["role"] for message in sent.body["messages"]), ""]
    return any(
        role == "system" and (roles[at - 1] not in ("user", "system") or roles[at + 1] == "user")
        for at, role in enumerate(roles)
    )


def _takes_system(sent: Sent) -> bool:
    return _version(sent) >= (4, 8) or re.search(r"claude-(opus|fable|mythos)-5", sent.model) is not None


def _declared(sent: Sent) -> set[str]:
    return {about["name"] for about in functions(sent.body)}


def _rule(name: str, source: str, words: str, breaks: Any, broken: Any, **more: Any) -> Rule:
    return Rule(name, (ANTHROPIC,), source, words, breaks, broken, **more)


def _both(first: Any, second: Any) -> Any:
    return lambda body: (first(body), second(body))


def _never_rests(sent: Sent) -> bool:
    return re.search(r"fable-5|mythos-5|opus-(5-5|[6-9])", sent.model) is not None


def _effort(sent: Sent) -> str:
    return str(sent.body.get("output_config", {}).get("effort", ""))


def _efforts(sent: Sent) -> tuple[str, ...]:
    """Which a model has."""
    if _version(sent) < (4, 5) or re.search(r"(haiku|sonnet)-4-5", sent.model):
        return ()
    few = ("low", "medium", "high")
    return few if "opus-4-5" in sent.model else (*few, "max") if _version(sent) == (4, 6) else (*few, "xhigh", "max")


def _most_output(sent: Sent) -> int:
    return 64_000 if _version(sent) < (4, 6) else 128_000


NEWER = "2026-10-21"
VERSIONS = f"{DOCS}api/migration-2026-10-21"
_SONNET = _set(model="claude-sonnet-4-6", thinking={"type": "disabled"})
_PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AAAA"}}
_OPUS, _OLD = _set(model="claude-opus-5-5", thinking={"type": "adaptive"}), _set(thinking={"type": "disabled"})

RULES = (
    _rule("a user speaks first", API, "messages: first message must use the \"user\" role",
          lambda sent: sent.body["messages"][0]["role"] != "user", lambda body: body["messages"].pop(0)),
    _rule("a user speaks last (from 4.6 on)", OPUS, "This model does not support assistant message prefill.",
          lambda sent: _version(sent) >= (4, 6) and sent.body["messages"][-1]["role"] == "assistant",
          _both(_OPUS, lambda body: body["messages"].append({"role": "assistant", "content": [{"type": "text", "text": "It"}]}))),
    _rule("a `system` message comes after a user, and before the assistant or last", MIDST,
          "messages.3: role 'system' must immediately follow a user message", _is_misplaced,
          _both(_OPUS, lambda body: body["messages"].insert(2, _ADDED)), date="2026-11-30"),
    _rule("`system` messages for models that take them", MIDST, "role 'system' is not supported on this model",
          lambda sent: not _takes_system(sent) and any(message["role"] == "system" for message in sent.body["messages"]),
          lambda body: body["messages"].append(_ADDED), date="2026-11-30"),
    _rule("tools in a message are a beta that is named", MIDST, "messages.3.content.0: Input tag 'tool_addition' found using 'type' does not match any of the expected tags",
          lambda sent: bool(additions(sent.body)) and "inline-tools-2026-09-15" not in sent.betas,
          _both(_OPUS, lambda body: body["messages"].append(_ADDED)), date="2026-11-30"),
    _rule("a tool that a message adds by name is declared", MIDST, "tool_reference_unresolved",
          lambda sent: any(block["tool"]["name"] not in _declared(sent) for block in additions(sent.body)
                           if block["tool"]["type"] == "tool_reference"),
          _both(_OPUS, lambda body: body["messages"].append({"role": "system", "content": [
              {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "tides"}}]})), date="2026-11-30"),
    _rule("no blank text", f"{SEEN}23440", "messages: text content blocks must contain non-whitespace text",
          lambda sent: any(not block["text"].strip() for block in _blocks(sent, "text")), _block(0, 0, text=" \n")),
    _rule("no empty message", API, "messages: all messages must have non-empty content",
          lambda sent: any(not message["content"] for message in sent.body["messages"]),
          lambda body: body["messages"].append({"role": "user", "content": []})),
    _rule("no blank system prompt", API, "system: text content blocks must be non-empty",
          lambda sent: any(not part["text"].strip() for part in sent.body.get("system", ())),
          _set(system=[{"type": "text", "text": ""}])),
    _rule("each call has its result in the next message", f"{SEEN}8612",
          "`tool_use` ids were found without `tool_result` blocks immediately after",
          lambda sent: _unlike(sent, "missing"), lambda body: body["messages"][2]["content"].pop(0)),
    _rule("each result has its call in the message before", f"{TOOLS}handle-tool-calls",
          "unexpected `tool_use_id` found in `tool_result` blocks", lambda sent: _unlike(sent, "unasked"),
          lambda body: body["messages"][2]["content"].insert(0, {"type": "tool_result", "tool_use_id": "x", "content": []})),
    _rule("results before words", f"{TOOLS}handle-tool-calls", "tool_result blocks must come first in the content",
          _results_come_late, lambda body: body["messages"][2]["content"].reverse()),
    _rule("call ids are unique", "github.com/trycua/cua/issues/524", "`tool_use` ids must be unique",
          lambda sent: len(ids := [block["id"] for block in _blocks(sent, "tool_use")]) > len(set(ids)),
          lambda body: body["messages"][1]["content"].append(body["messages"][1]["content"][1])),
    _rule("call ids of letters, digits, `_` and `-`", "github.com/HKUDS/nanobot/pull/4356",
          "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
          lambda sent: any(not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]) for block in _blocks(sent, "tool_use")),
          _both(_block(1, 1, id="a|b"), _block(2, 0, tool_use_id="a|b"))),
    _rule("arguments are an object", API, "tool_use.input: Input should be a valid dictionary",
          lambda sent: any(not isinstance(block["input"], dict) for block in _blocks(sent, "tool_use")),
          _block(1, 1, input="Oslo")),
    _rule("tool names of at most 128 letters, digits, `_` and `-`", f"{TOOLS}define-tools",
          "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
          lambda sent: any(not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]) for tool in functions(sent.body)),
          _tool(name="files.read")),
    _rule("tool names are unique", API, "tools: Tool names must be unique.",
          lambda sent: len(names := [tool["name"] for tool in functions(sent.body)]) > len(set(names)),
          lambda body: body["tools"].append(body["tools"][0])),
    _rule("a schema is an object, without a choice at the top", f"{SEEN}27337",
          "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
          lambda sent: is_no_object(sent.body), _tool(input_schema={"type": "object", "anyOf": [{"required": ["a"]}]})),
    _rule("the tool that is forced is offered", API, "tool_choice: Tool 'x' not found in provided tools",
          lambda sent: names_no_tool(sent.body),
          _both(_OLD, _set(tool_choice={"type": "tool", "name": "x"}))),
    _rule("no forced call with thinking", THINKING, "Thinking may not be enabled when tool_choice forces tool use.",
          lambda sent: _thinks(sent) in ("enabled", "adaptive") and forces(sent.body),
          _set(tool_choice={"type": "any"})),
    _rule("no forced call at all (from 5.1 on)", FABLE, "tool_choice: forced tool use is not supported for this model",
          lambda sent: _version(sent) >= (5, 1) and "haiku" not in sent.model and forces(sent.body),
          _both(_set(model="claude-fable-5-1", thinking={"type": "adaptive"}), _set(tool_choice={"type": "any"}))),
    _rule("no temperature, top_p or top_k (API version 2026-10-21)", VERSIONS, "temperature: Extra inputs are not permitted",
          lambda sent: sent.version >= NEWER and bool({"temperature", "top_p", "top_k"} & sent.body.keys()),
          _both(_SONNET, _set(temperature=1)), date="2026-11-29"),
    _rule("documents are the user's (API version 2026-10-21)", VERSIONS, "messages.1.content.0: Input tag 'document' found",
          lambda sent: sent.version >= NEWER and any(
              block["type"] == "document" for message in sent.body["messages"] if message["role"] == "assistant" for block in message["content"]),
          lambda body: body["messages"][1]["content"].append({"type": "document", "source": {"type": "url", "url": "https://x"}}), date="2026-11-29"),
    _rule("a user's words have no citations (API version 2026-10-21)", VERSIONS, "citations: Extra inputs are not permitted",
          lambda sent: sent.version >= NEWER and any(
              block.get("citations") for message in sent.body["messages"] if message["role"] == "user" for block in message["content"]),
          _block(0, 0, citations=[{"type": "char_location"}]), date="2026-11-29"),
    _rule("thinking ends with `between_tools` (Sonnet 5.5)", f"{DOCS}models/sonnet-5-5/migration-guide",
          '"thinking.type.disabled" is not supported for this model; use "between_tools"',
          lambda sent: _thinks(sent) == "disabled" and "sonnet-5-5" in sent.model,
          _both(_OLD, _set(model="claude-sonnet-5-5")), date="2026-11-29"),
    _rule("no effort above `high` while thinking is off (from 5 on)", f"{DOCS}build-with-claude/effort",
          "`xhigh` and `max` need thinking", lambda sent: _thinks(sent) in ("disabled", "between_tools")
          and _version(sent) >= (5, 0) and _effort(sent) in ("xhigh", "max"),
          _both(_OLD, _set(model="claude-opus-5-0", output_config={"effort": "max"})), date="2026-11-29"),
    _rule("no more output than the model writes", f"{DOCS}about-claude/models/overview", "max_tokens: 200000 > 64000",
          lambda sent: sent.body["max_tokens"] > _most_output(sent), _set(max_tokens=200_000), date="2026-11-29"),
    _rule("more output than thinking", THINKING, "`max_tokens` must be greater than `thinking.budget_tokens`.",
          lambda sent: sent.body["max_tokens"] <= sent.body.get("thinking", {}).get("budget_tokens", 0),
          _set(max_tokens=2048)),
    _rule("a budget of 1,024 at least", THINKING, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
          lambda sent: _thinks(sent) == "enabled" and sent.body["thinking"]["budget_tokens"] < 1024,
          _set(thinking={"type": "enabled", "budget_tokens": 1000})),
    _rule("no budget from 4.7 on", OPUS, '"thinking.type.enabled" is not supported for this model',
          lambda sent: _thinks(sent) == "enabled" and _version(sent) >= (4, 7), _set(model="claude-opus-4-8")),
    _rule("adaptive thinking from 4.6 on", f"{DOCS}build-with-claude/adaptive-thinking",
          "adaptive thinking is not supported on this model",
          lambda sent: _thinks(sent) == "adaptive" and _version(sent) < (4, 6), _set(thinking={"type": "adaptive"})),
    _rule("thinking can't be off (Fable, Mythos, Opus from 5.5 on)", FABLE, '"thinking.type.disabled" is not supported for this model',
          lambda sent: _thinks(sent) in ("disabled", "between_tools") and _never_rests(sent), _both(_OLD, _set(model="claude-fable-5-1"))),
    _rule("an effort that the model has", f"{DOCS}build-with-claude/effort", "This model does not support the effort parameter.",
          lambda sent: _effort(sent) not in ("", *_efforts(sent)),
          _set(output_config={"effort": "low"})),
    _rule("no temperature from 4.7 on", OPUS, "`temperature` is not supported on this model",
          lambda sent: "temperature" in sent.body and _version(sent) >= (4, 7), _both(_OPUS, _set(temperature=0.5))),
    _rule("no temperature beside thinking", THINKING, "`temperature` may only be set to 1 when thinking is enabled.",
          lambda sent: sent.body.get("temperature", 1) != 1 and _thinks(sent) in ("enabled", "adaptive"),
          _set(temperature=0.5)),
    _rule("a temperature of 1 at most", API, "temperature: range: 0..1",
          lambda sent: sent.body.get("temperature", 0) > 1, _both(_OLD, _set(temperature=1.5))),
    _rule("no top_p from 4.7 on", OPUS, "`top_p` is not supported on this model",
          lambda sent: "top_p" in sent.body and _version(sent) >= (4, 7), _both(_OPUS, _set(top_p=0.9))),
    _rule("top_p of 0.95 at least beside thinking", THINKING, "`top_p` must be greater than or equal to 0.95 or unset",
          lambda sent: sent.body.get("top_p", 1) < 0.95 and _thinks(sent) in ("enabled", "adaptive"), _set(top_p=0.5)),
    _rule("a temperature or top_p, not both (4.5)", "github.com/langfuse/langfuse/issues/9882",
          "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
          lambda sent: {"temperature", "top_p"} <= sent.body.keys() and _version(sent) >= (4, 1),
          _both(_OLD, _set(temperature=0.5, top_p=0.9))),
    _rule("stop words are not blank", API, "stop_sequences: each stop sequence must contain non-whitespace",
          lambda sent: any(not word.strip() for word in sent.body.get("stop_sequences", ())), _set(stop_sequences=["\n"])),
    _rule("four cache marks at most", f"{DOCS}build-with-claude/prompt-caching",
          "A maximum of 4 blocks with cache_control may be provided.",
          lambda sent: str(sent.body).count("'cache_control'") > 4,
          lambda body: body["messages"][0]["content"].extend(
              {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}} for _ in range(5))),
    _rule("signatures are its own", THINKING, "messages.1.content.0: Invalid `signature` in `thinking` block",
          lambda sent: any(block["signature"] not in sent.signed for block in _blocks(sent, "thinking")),
          _block(1, 0, signature="another's")),
    _rule("a turn with a budget begins with a thought", THINKING,
          "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
          _begins_without_a_thought, lambda body: body["messages"][1]["content"].pop(0)),
    _rule("thoughts stand where they were had (from 5.1 on)", PRESERVED,
          "Invalid `signature` in `thinking` block. The block is bound to a different conversation.",
          _is_elsewhere, _both(_OPUS, _block(0, 0, text="How was it?"))),
    _rule("what drops them is a beta that is named", PRESERVED, "thinking.block_binding: Extra inputs are not permitted",
          lambda sent: "block_binding" in sent.body.get("thinking", {}) and "thinking-binding-controls" not in sent.betas,
          _set(model="claude-opus-5-5", thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})),
    _rule("pictures and documents of known types", f"{DOCS}build-with-claude/vision",
          "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
          lambda sent: any(_is_no_image(block) for block in _blocks(sent, "image", "document")),
          lambda body: body["messages"][0]["content"].append(_PICTURE)),
    _rule("a failed result is text", "github.com/vellum-ai/vellum-assistant/pull/18387",
          "all content must be type text if `is_error` is true",
          lambda sent: any(block.get("is_error") and any(part["type"] != "text" for part in block["content"])
                           for block in _blocks(sent, "tool_result")),
          _block(2, 0, is_error=True, content=[_PICTURE])),
)  # fmt: skip
