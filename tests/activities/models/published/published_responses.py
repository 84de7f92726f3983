# ruff: noqa: E501  one row each
"""What OpenAI and Azure publish that their Responses APIs refuse."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.activities.models.published.published import (
    AZURE,
    NAME,
    OF_RESPONSES,
    XAI,
    Body,
    Rule,
    Sent,
    effort_in,
    efforts_of,
    functions,
    is_no_object,
    lacks_items,
    long_descriptions,
    names_no_tool,
    reasons,
    samples,
    too_many_tools,
)

API = "developers.openai.com/api/reference/resources/responses/methods/create"
REASONING = "developers.openai.com/api/docs/guides/reasoning"
OF_XAI = "docs.x.ai/developers/model-capabilities/text/reasoning"
OF_AZURE = "learn.microsoft.com/azure/foundry/openai/how-to/reasoning"

BODY: Body = {
    "model": "gpt-5.1",
    "store": False,
    "max_output_tokens": 4096,
    "include": ["reasoning.encrypted_content"],
    "tools": [
        {
            "type": "function",
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        }
    ],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "How is it?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "signed-1"},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "Rain."},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
    ],
}
SIGNED = {"signed-1": ""}


def _items(sent: Sent, kind: str) -> list[dict[str, Any]]:
    return [item for item in sent.body["input"] if item.get("type", "message") == kind]


def _ids(sent: Sent, kind: str) -> list[str]:
    return [item["call_id"] for item in _items(sent, kind)]


def _parts(sent: Sent, *kinds: str) -> list[dict[str, Any]]:
    said = [item.get("content", item.get("output")) for item in sent.body["input"]]
    return [part for parts in said if isinstance(parts, list) for part in parts if part["type"] in kinds]


def _leads_to_nothing(sent: Sent) -> bool:
    """A thought that is followed by neither what it led to nor by another thought."""
    items = [*sent.body["input"], {"role": "user"}]
    return any(
        item.get("type") == "reasoning"
        and following.get("type") not in ("reasoning", "function_call")
        and following.get("role") != "assistant"
        for item, following in pairwise(items)
    )


def _speaks_as_another(sent: Sent) -> bool:
    return any(
        part["type"].startswith("output" if item["role"] == "user" else "input")
        for item in _items(sent, "message")
        for part in (item["content"] if isinstance(item["content"], list) else ())
    )


def _set(**fields: Any) -> Any:
    return lambda body: body.update(fields)


def _item(at: int, **fields: Any) -> Any:
    return lambda body: body["input"][at].update(fields)


def _pop(at: int) -> Any:
    return lambda body: body["input"].pop(at)


def _tool(**fields: Any) -> Any:
    return lambda body: body["tools"][0].update(fields)


def _both(first: Any, second: Any) -> Any:
    return lambda body: (first(body), second(body))


def _rule(
    name: str, source: str, words: str, breaks: Any, broken: Any, *, servers: Sequence[str] = OF_RESPONSES, **more: Any
) -> Rule:
    return Rule(name, servers, source, words, breaks, broken, **more)


def _has_no_data(part: dict[str, Any]) -> bool:
    url = part["image_url"]
    return not re.match(r"https?://|data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$", url)


def _efforts_of_grok(model: str) -> tuple[str, ...]:
    """xAI's."""
    if re.match(r"grok-(build|code|4\.20)", model):
        return ()
    return ("none", "low", "medium", "high")[bool(re.match(r"grok-4\.[4-9]", model)) :] + ("xhigh",) * (
        model == "grok-4.7"
    )


ADDED = "developers.openai.com/api/docs/guides/tools-tool-search"
_MORE = {"type": "additional_tools", "role": "developer", "tools": [{**BODY["tools"][0], "name": "tides"}]}
_OLD = _set(model="gpt-4.1")
_ARRAY = {"type": "object", "properties": {"x": {"type": "array"}}}

_THINKS = {"reasoning": {"effort": "low"}}

RULES = (
    _rule("each call has an output", "developers.openai.com/api/docs/guides/function-calling", "No tool output found for function call call_1.",
          lambda sent: set(_ids(sent, "function_call")) - set(_ids(sent, "function_call_output")), _pop(3)),
    _rule("each output has a call", "github.com/agno-agi/agno/pull/9376",
          "No tool call found for function call output with call_id call_1.",
          lambda sent: set(_ids(sent, "function_call_output")) - set(_ids(sent, "function_call")), _both(_pop(2), _pop(1))),
    _rule("no item twice", "github.com/vercel/ai/issues/7883", "Duplicate item found with id rs_1.",
          lambda sent: len(ids := [item["id"] for item in sent.body["input"] if item.get("id")]) > len(set(ids)),
          lambda body: body["input"].insert(1, body["input"][1])),
    _rule("call ids of 64 characters at most", API, "Invalid 'input[2].call_id': string too long.",
          lambda sent: any(len(name) > 64 for name in _ids(sent, "function_call")),
          _both(_item(2, call_id="c" * 65), _item(3, call_id="c" * 65))),
    _rule("call ids are not empty", API, "Invalid 'input[2].call_id': empty string.",
          lambda sent: any(not name for name in _ids(sent, "function_call")), _both(_item(2, call_id=""), _item(3, call_id=""))),
    _rule("tool names of 64 letters, digits, `_` and `-`", "developers.openai.com/api/docs/guides/function-calling",
          "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches '^[a-zA-Z0-9_-]+$'.",
          lambda sent: any(not NAME.fullmatch(named["name"]) for named in (*functions(sent.body), *_items(sent, "function_call"))),
          _tool(name="files.read")),
    _rule("a schema is an object, without a choice at the top", "developers.openai.com/api/docs/guides/function-calling",
          "Invalid schema for function 'weather': schema must have type 'object' and not have 'oneOf'/'anyOf'/… at the top level.",
          lambda sent: is_no_object(sent.body), _tool(parameters={"anyOf": [{"type": "object"}]})),
    _rule("an array says what is in it", "github.com/garrytan/gbrain/issues/1103",
          "Invalid schema for function 'weather': In context=('properties', 'x'), array schema missing items.",
          lambda sent: lacks_items(sent.body), _tool(parameters=_ARRAY)),
    _rule("the tool that is forced is offered", API, "Tool choice 'x' not found in 'tools' parameter.",
          lambda sent: names_no_tool(sent.body), _set(tool_choice={"type": "function", "name": "x"})),
    _rule("no empty list of tools", API, "Invalid 'tools': empty array.", lambda sent: sent.body.get("tools") == [], _set(tools=[])),
    _rule("16 tokens of output at least", "github.com/vectorize-io/hindsight/issues/58",
          "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 10 instead.",
          lambda sent: sent.body["max_output_tokens"] < 16, _set(max_output_tokens=15)),
    _rule("thoughts are its own", "github.com/openai/codex/issues/8119", "The encrypted content gAAA... could not be verified.",
          lambda sent: any(item.get("encrypted_content") not in sent.signed for item in _items(sent, "reasoning")),
          _item(1, encrypted_content="another's")),
    _rule("thoughts lead to something", "github.com/continuedev/continue/pull/11785",
          "Item 'rs_1' of type 'reasoning' was provided without its required following item.", _leads_to_nothing,
          lambda body: body["input"].insert(6, {**body["input"][1], "id": "rs_2"})),
    _rule("thoughts carry their content where nothing is stored", REASONING,
          "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
          lambda sent: any(not item.get("encrypted_content") for item in _items(sent, "reasoning")),
          lambda body: body["input"][1].pop("encrypted_content")),
    _rule("no encrypted thoughts of models that have none", OF_AZURE, "Encrypted content is not supported with this model.",
          lambda sent: bool(sent.body.get("include")) and not reasons(sent.model), _both(_OLD, _pop(1))),
    _rule("128 tools at most", "github.com/Spshulem/openAGI/pull/53", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.",
          lambda sent: too_many_tools(sent.body), lambda body: body.update(tools=body["tools"] * 129), date="2026-11-24"),
    _rule("descriptions of tools of 1,024 characters at most", "github.com/OpenHands/OpenHands/issues/4838",
          "Invalid 'tools[0].description': string too long. Expected a string with maximum length 1024, but got a string with length 4394 instead.",
          lambda sent: long_descriptions(sent.body), lambda body: body["tools"][0].update(description="x" * 1025),
          servers=(AZURE,), date="2026-11-24"),
    _rule("`additional_tools` are the developer's", ADDED, "Invalid value: 'user'. Supported values are: 'developer'.",
          lambda sent: any(item.get("role") != "developer" for item in _items(sent, "additional_tools")),
          _both(_set(model="gpt-5.4"), lambda body: body["input"].append({**_MORE, "role": "user"})), date="2026-11-30"),
    _rule("`additional_tools` from GPT-5.4 on", ADDED, "Invalid value: 'additional_tools'.",
          lambda sent: bool(_items(sent, "additional_tools")) and not re.match(r"gpt-(5\.[4-9]|[6-9])", sent.model),
          lambda body: body["input"].append(_MORE), date="2026-11-30"),
    _rule("cache keys of 64 characters at most", "github.com/theopenco/llmgateway/pull/3110",
          "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
          lambda sent: len(sent.body.get("prompt_cache_key", "")) > 64, _set(prompt_cache_key="k" * 65), date="2026-11-30"),
    _rule("no effort for models that don't reason", REASONING, "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
          lambda sent: "reasoning" in sent.body and not reasons(sent.model),
          _both(_both(_OLD, _pop(1)), _set(reasoning={"effort": "low"}, include=[]))),
    _rule("an effort that the model has", REASONING, "Unsupported value: 'max' is not supported with the 'gpt-5.1' model.",
          lambda sent: effort_in(sent.body) not in (None, *efforts_of(sent.model)), _set(reasoning={"effort": "max"})),
    _rule("no effort `none` where the model always reasons", "developers.openai.com/api/docs/models/gpt-6.2-sol",
          "Unsupported value: 'none' is not supported with the 'gpt-6.2-sol' model.",
          lambda sent: effort_in(sent.body) == "none" and "none" not in efforts_of(sent.model),
          _set(model="gpt-6.2-sol", reasoning={"effort": "none"}), date="2026-11-29"),
    _rule("no more output than the model writes", "developers.openai.com/api/docs/models/gpt-6.2-sol",
          "max_output_tokens is too large: 200000. This model supports at most 128000 completion tokens.",
          lambda sent: reasons(sent.model) and sent.body["max_output_tokens"] > 128_000 and sent.model.startswith("gpt-6"),
          _set(model="gpt-6.2-sol", max_output_tokens=200_000), date="2026-11-29"),
    _rule("an effort that the model has", OF_XAI, "Model grok-4.7 does not support parameter reasoningEffort value max.",
          lambda sent: sent.body.get("reasoning", {}).get("effort", "low") not in (*_efforts_of_grok(sent.model), "low"),
          _set(reasoning={"effort": "max"}), servers=(XAI,), date="2026-11-24"),
    _rule("no effort for models that take none", "github.com/earendil-works/pi/issues/8381", "Model grok-build-0.1 does not support parameter reasoningEffort.",
          lambda sent: "effort" in sent.body.get("reasoning", {}) and not _efforts_of_grok(sent.model),
          _set(model="grok-build-0.1", reasoning={"effort": "low"}), servers=(XAI,), date="2026-11-24"),
    _rule("200 tools at most", "docs.x.ai/docs/guides/function-calling", "A maximum of 200 tools may be given, but got 201.",
          lambda sent: too_many_tools(sent.body, 200), lambda body: body.update(tools=body["tools"] * 201),
          servers=(XAI,), date="2026-11-24"),
    _rule("no temperature where the model reasons", REASONING, "Unsupported parameter: 'temperature' is not supported with this model.",
          lambda sent: "temperature" in sent.body and not samples(sent.body), _set(temperature=0.5, **_THINKS)),
    _rule("no top_p where the model reasons", "github.com/brainlid/langchain/pull/428",
          "Unsupported parameter: 'top_p' is not supported with this model.",
          lambda sent: "top_p" in sent.body and not samples(sent.body), _set(top_p=0.5, **_THINKS)),
    _rule("each side has parts of its own", API, "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
          _speaks_as_another, _item(4, content=[{"type": "input_text", "text": "Rain."}])),
    _rule("no empty output or message", API, "Invalid 'input[3].output': empty.",
          lambda sent: any(item.get("content", item.get("output", "x")) in ("", []) for item in sent.body["input"]),
          _item(5, content=[])),
    _rule("pictures of known types", "developers.openai.com/api/docs/guides/images-vision",
          "Invalid 'input[0].content[0].image_url'. Expected a base64-encoded data URL with an image MIME type.",
          lambda sent: any(_has_no_data(part) for part in _parts(sent, "input_image")),
          lambda body: body["input"][0]["content"].append({"type": "input_image", "image_url": "data:image/tiff;base64,AAAA"})),
    _rule("files have names", "developers.openai.com/api/docs/guides/file-inputs",
          "Missing required parameter: 'input[0].content[1].filename'.",
          lambda sent: any("file_data" in part and not part.get("filename") for part in _parts(sent, "input_file")),
          lambda body: body["input"][0]["content"].append({"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"})),
    _rule("no audio, video or text as a file of its own", "learn.microsoft.com/azure/foundry/openai/how-to/responses",
          "Invalid file data: only PDF is supported.",
          lambda sent: any("application/pdf" not in part.get("file_data", "application/pdf") for part in _parts(sent, "input_file")),
          lambda body: body["input"][0]["content"].append(
              {"type": "input_file", "filename": "a", "file_data": "data:audio/wav;base64,AAAA"}), servers=(AZURE,)),
)  # fmt: skip
