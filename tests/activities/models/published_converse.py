# ruff: noqa: E501  one row each
"""What AWS publishes that Bedrock's Converse API refuses, and what users have seen it refuse."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.activities.models.published.published import (
    CONVERSE,
    NAME,
    Body,
    Rule,
    Sent,
    is_no_object,
    names_no_tool,
    within,
)

AWS = "docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_"
PICTURES, PAPERS = ("png", "jpeg", "gif", "webp"), ("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")

BODY: Body = {
    "model": "us.anthropic.claude-opus-4-8",
    "system": [{"text": "Be brief."}],
    "inferenceConfig": {"maxTokens": 4096},
    "tools": [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}],
    "messages": [
        {"role": "user", "content": [{"text": "How is it?"}]},
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "signed-1"}}},
            {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "Rain."}]}}]},
        {"role": "assistant", "content": [{"text": "Rain."}]},
        {"role": "user", "content": [{"text": "And now?"}]},
    ],
}  # fmt: skip
SIGNED = {"signed-1": ""}


def _blocks(sent: Sent, kind: str) -> Iterator[Any]:
    """What is under that name, in messages and in results."""
    for message in sent.body["messages"]:
        for block in message["content"]:
            inner = block["toolResult"]["content"] if "toolResult" in block else ()
            yield from (each[kind] for each in (block, *inner) if kind in each)


def _texts(sent: Sent) -> list[str]:
    return [*_blocks(sent, "text"), *(block["text"] for block in sent.body.get("system", ()) if "text" in block)]


def _unlike(sent: Sent, after: str) -> bool:
    """Whether the results after a turn are not those of its calls; `after`: `missing` or `unasked`."""
    asked: set[str] = set()
    for message in [*sent.body["messages"], {"content": []}]:
        given = {block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block}
        if asked - given if after == "missing" else given - asked:
            return True
        asked = {block["toolUse"]["toolUseId"] for block in message["content"] if "toolUse" in block}
    return False


def _kinds(message: dict[str, Any]) -> set[str]:
    return {name for block in message["content"] for name in block}


def _ids(sent: Sent) -> list[str]:
    return [each["toolUseId"] for kind in ("toolUse", "toolResult") for each in _blocks(sent, kind)]


def _is_no_json(value: Any) -> bool:
    return any(isinstance(each, float) and not math.isfinite(each) for part in within(value) for each in part.values())


def _marks(sent: Sent) -> int:
    config = sent.body.get("toolConfig", {}).get("tools", ())
    parts = [*sent.body.get("system", ()), *config, *(b for m in sent.body["messages"] for b in m["content"])]
    return sum("cachePoint" in part for part in parts)


def _chooses(sent: Sent) -> bool:
    return bool(sent.body.get("toolConfig", {}).get("toolChoice"))


def _set(**fields: Any) -> Any:
    return lambda body: body.update(fields)


def _content(place: int, *blocks: dict[str, Any]) -> Any:
    return lambda body: body["messages"][place].update(content=list(blocks))


def _beside(place: int, *blocks: dict[str, Any]) -> Any:
    return lambda body: body["messages"][place]["content"].extend(blocks)


def _call(**fields: Any) -> Any:
    return lambda body: body["messages"][1]["content"][1]["toolUse"].update(fields)


def _config(**fields: Any) -> Any:
    return lambda body: body["inferenceConfig"].update(fields)


def _tool(**fields: Any) -> Any:
    return lambda body: body["tools"][0].update(fields)


def _both(first: Any, second: Any) -> Any:
    return lambda body: (first(body), second(body))


def _rule(name: str, source: str, words: str, breaks: Any, broken: Any) -> Rule:
    return Rule(name, (CONVERSE,), source, words, breaks, broken, date="2026-11-26")


_LLAMA = "us.meta.llama4-maverick-17b-instruct-v1:0"
_PAPER = {"document": {"name": "tides", "format": "pdf", "source": {"bytes": "AAAA"}}}
_ALONE = re.compile(r"meta\.llama|mistral\.|writer\.")
_CHOOSES_NOT = re.compile(r"meta\.llama|openai\.gpt-oss|deepseek\.")

RULES = (
    _rule("a user speaks first", "github.com/langgenius/dify/issues/12340", "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
          lambda sent: sent.body["messages"][0]["role"] != "user", lambda body: body["messages"].pop(0)),
    _rule("user and assistant in turn", "github.com/langchain-ai/langchain-aws/issues/130", "A conversation must alternate between user and assistant roles.",
          lambda sent: any(one["role"] == other["role"] for one, other in pairwise(sent.body["messages"])), lambda body: body["messages"].pop(3)),
    _rule("a user speaks last (from 4.6 on)", "github.com/microsoft/semantic-kernel/issues/10281", "This model does not support assistant message prefill. The conversation must end with a user message.",
          lambda sent: sent.body["messages"][-1]["role"] != "user", lambda body: body["messages"].pop()),
    _rule("no blank text", "github.com/NousResearch/hermes-agent/pull/63983", "The text field in the ContentBlock object at messages.4.content.0 is blank. Add text to the text field, and try again.",
          lambda sent: any(not text.strip() for text in _texts(sent)), _content(4, {"text": " "})),
    _rule("no empty message", "github.com/earendil-works/pi/pull/3443", "The content field in the Message object at messages.4 is empty. Add a ContentBlock object to the content field and try again.",
          lambda sent: not sent.body["messages"] or any(not message["content"] for message in sent.body["messages"]), _content(4)),
    _rule("each call has its result in the next message", "github.com/zeroclaw-labs/zeroclaw/pull/1476", "Expected toolResult blocks at messages.2.content for the following Ids: c1",
          lambda sent: _unlike(sent, "missing"), _content(2, {"text": "Rain."})),
    _rule("each result has its call in the message before", "github.com/pydantic/pydantic-ai/issues/2327", "The number of toolResult blocks at messages.4.content exceeds the number of toolUse blocks of previous turn.",
          lambda sent: _unlike(sent, "unasked"), _content(4, {"toolResult": {"toolUseId": "c9", "content": [{"text": "Rain."}]}})),
    _rule("tools are offered where there are calls", "github.com/vxcontrol/pentagi/pull/196", "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
          lambda sent: bool(_ids(sent)) and not sent.body.get("tools"), lambda body: body.pop("tools")),
    _rule("results stand alone (Llama, Mistral)", "github.com/pydantic/pydantic-ai/issues/6081", "Conversation blocks and tool result blocks cannot be provided in the same turn.",
          lambda sent: bool(_ALONE.search(sent.model)) and any("toolResult" in kinds and kinds - {"toolResult", "cachePoint"} for kinds in map(_kinds, sent.body["messages"])),
          _both(_set(model=_LLAMA), _beside(2, {"text": "So."}))),
    _rule("arguments are an object", "github.com/vercel/ai/pull/19023", "The format of the value at messages.1.content.1.toolUse.input is invalid. Provide a json object for the field and try again.",
          lambda sent: any(not isinstance(call["input"], dict) or _is_no_json(call["input"]) for call in _blocks(sent, "toolUse")), _call(input="Oslo")),
    _rule("call ids of letters, digits, `_` and `-`", f"{AWS}ToolUseBlock.html", "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
          lambda sent: any(not NAME.fullmatch(each) for each in _ids(sent)), _both(_call(toolUseId="a|b"), lambda body: body["messages"][2]["content"][0]["toolResult"].update(toolUseId="a|b"))),
    _rule("tool names of at most 64 letters, digits, `_` and `-`", "github.com/openclaw/openclaw/issues/12892", "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
          lambda sent: any(not NAME.fullmatch(each["name"]) for each in (*sent.body.get("tools", ()), *_blocks(sent, "toolUse"))), _tool(name="files.read")),
    _rule("a schema is an object, without a choice at the top", "github.com/earendil-works/pi/issues/8279", "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.",
          lambda sent: is_no_object(sent.body), _tool(input_schema={"anyOf": [{"type": "object"}]})),
    _rule("descriptions of tools are not empty", f"{AWS}ToolSpecification.html", "toolSpec.description: Member must have length greater than or equal to 1",
          lambda sent: any(not each.get("description", "x") for each in sent.body.get("tools", ())), _tool(description="")),
    _rule("the tool that is forced is offered", f"{AWS}SpecificToolChoice.html", "tool_choice: Tool 'tides' not found in provided tools",
          lambda sent: names_no_tool(sent.body), _set(tool_choice={"type": "tool", "name": "tides"})),
    _rule("no forced call (Llama, DeepSeek, gpt-oss)", "github.com/strands-agents/harness-sdk/issues/1241", "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again.",
          lambda sent: bool(_CHOOSES_NOT.search(sent.model)) and _chooses(sent), _set(model=_LLAMA, toolConfig={"toolChoice": {"any": {}}})),
    _rule("a temperature of 1 at most", f"{AWS}InferenceConfiguration.html", "inferenceConfig.temperature: Member must have value less than or equal to 1",
          lambda sent: not 0 <= sent.body.get("inferenceConfig", {}).get("temperature", 1) <= 1, _config(temperature=1.7)),
    _rule("stop words are not blank", f"{AWS}InferenceConfiguration.html", "inferenceConfig.stopSequences: Member must have length greater than or equal to 1",
          lambda sent: any(not word.strip() for word in sent.body.get("inferenceConfig", {}).get("stopSequences", ())), _config(stopSequences=[""])),
    _rule("four cache marks at most", "docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html", "A maximum of 4 cache points may be provided.",
          lambda sent: _marks(sent) > 4, _beside(4, *[{"cachePoint": {"type": "default"}}] * 5)),
    _rule("signatures are its own", "docs.aws.amazon.com/bedrock/latest/userguide/inference-reasoning.html", "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block",
          lambda sent: any(each.get("reasoningText", {}).get("signature") not in sent.signed for each in _blocks(sent, "reasoningContent")),
          lambda body: body["messages"][1]["content"][0]["reasoningContent"]["reasoningText"].update(signature="another's")),
    _rule("pictures and documents of known types", f"{AWS}ImageBlock.html", "image.format: Member must satisfy enum value set: [gif, jpeg, png, webp]",
          lambda sent: any(each["format"] not in PICTURES for each in _blocks(sent, "image")) or any(each["format"] not in PAPERS for each in _blocks(sent, "document")),
          _beside(4, {"image": {"format": "tiff", "source": {"bytes": "AAAA"}}})),
    _rule("a document stands beside words", "github.com/archestra-ai/archestra/pull/4220", "A text block must be included when using documents.",
          lambda sent: any("document" in kinds and "text" not in kinds for kinds in map(_kinds, sent.body["messages"])), _content(4, _PAPER)),
    _rule("documents have plain names", f"{AWS}DocumentBlock.html", "The file name contains more than one consecutive whitespace character, or invalid ones.",
          lambda sent: any(not re.fullmatch(r"(?!.*\s\s)[A-Za-z0-9\s()\[\]-]{1,200}", each["name"]) for each in _blocks(sent, "document")),
          _beside(4, {"document": {**_PAPER["document"], "name": "tides.pdf"}})),
)  # fmt: skip
