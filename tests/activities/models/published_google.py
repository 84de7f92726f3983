# ruff: noqa: E501  one row each
"""What Google publishes that the Gemini API's own `generateContent` refuses."""

import base64
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tests.activities.models.published.published import (
    GOOGLE,
    STARTS_WITH_A_LETTER,
    Body,
    Rule,
    Sent,
    is_object,
    within,
)

API = "ai.google.dev/api/generate-content"
CLI = "github.com/google-gemini/gemini-cli"
SIGNATURES = "ai.google.dev/gemini-api/docs/thought-signatures"
GEMINI_3 = "ai.google.dev/gemini-api/docs/gemini-3"
SKIPPED = "skip_thought_signature_validator"
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
SOUNDS = ("audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac")
_OWN = base64.b64encode(b"signed-1").decode()
_DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")

BODY: Body = {
    "model": "gemini-3-pro",
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "generationConfig": {"maxOutputTokens": 4096, "thinkingConfig": {"include_thoughts": True}},
    "tools": [{"functionDeclarations": [
        {"name": "weather", "parameters_json_schema": {"type": "object", "properties": {"city": {"type": "string"}}}},
    ]}],
    "contents": [
        {"role": "user", "parts": [{"text": "How is it?"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "weather", "args": {}}, "thoughtSignature": _OWN}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "weather", "response": {"return_value": "Rain."}}}]},
        {"role": "model", "parts": [{"text": "Rain."}]},
        {"role": "user", "parts": [{"text": "And now?"}]},
    ],
}  # fmt: skip
SIGNED = {"signed-1": ""}


def _declared(body: Body) -> list[dict[str, Any]]:
    return [about for tool in body.get("tools", ()) for about in tool.get("functionDeclarations", ())]


def _schema(about: dict[str, Any]) -> dict[str, Any]:
    return about.get("parameters_json_schema") or about.get("parametersJsonSchema") or {"type": "object"}


def _parts(sent: Sent, *kinds: str) -> Iterator[dict[str, Any]]:
    for content in sent.body["contents"]:
        yield from (part for part in content["parts"] if not kinds or any(kind in part for kind in kinds))


def _calls(content: dict[str, Any], kind: str = "functionCall") -> list[dict[str, Any]]:
    return [part for part in content["parts"] if kind in part]


def _answers_otherwise(sent: Sent) -> bool:
    """Not as many results as calls, in the content right behind them, or results without calls."""
    contents = [{"parts": []}, *sent.body["contents"], {"parts": []}]
    return any(len(_calls(content)) != len(_calls(after, "functionResponse")) for content, after in pairwise(contents))


def _calls_out_of_turn(sent: Sent) -> bool:
    contents = sent.body["contents"]
    return any(
        _calls(content) and (place == 0 or contents[place - 1]["role"] != "user")
        for place, content in enumerate(contents)
    )


def _lacks_a_signature(sent: Sent) -> bool:
    first = [calls[0] for content in sent.body["contents"] if (calls := _calls(content))]
    return "gemini-3" in sent.model and any("thoughtSignature" not in part for part in first)


def _is_signed_by_another(sent: Sent) -> bool:
    signatures = [
        part["thoughtSignature"].replace("-", "+").replace("_", "/") for part in _parts(sent, "thoughtSignature")
    ]
    return any(base64.b64decode(each).decode() not in (*sent.signed, SKIPPED) for each in signatures)


def _kinds(sent: Sent) -> list[str]:
    """Of the files in it, those of results too."""
    data = [part["inlineData"] for content in sent.body["contents"] for part in within(content) if "inlineData" in part]
    return [told.get("mimeType") or told["mime_type"] for told in data]


def _thinking(sent: Sent, name: str) -> Any:
    told = sent.body.get("generationConfig", {}).get("thinkingConfig", {})
    camel = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
    return told.get(name, told.get(camel))


def _levels(model: str) -> tuple[str, ...]:
    if "-pro" not in model:
        return ("MINIMAL", "LOW", "MEDIUM", "HIGH")
    return ("LOW", "HIGH") if "gemini-3-pro" in model else ("LOW", "MEDIUM", "HIGH")


def _choice(sent: Sent) -> dict[str, Any]:
    told: dict[str, Any] = sent.body.get("toolConfig", {}).get("functionCallingConfig", {})
    return told


def _allowed(sent: Sent) -> list[str]:
    return _choice(sent).get("allowedFunctionNames") or _choice(sent).get("allowed_function_names") or []


def _set(**fields: Any) -> Any:
    return lambda body: body.update(fields)


def _generation(**fields: Any) -> Any:
    return lambda body: body["generationConfig"].update(fields)


def _content(place: int, **fields: Any) -> Any:
    return lambda body: body["contents"][place].update(fields)


def _tool(**fields: Any) -> Any:
    return lambda body: body["tools"][0]["functionDeclarations"][0].update(fields)


def _rule(name: str, source: str, words: str, breaks: Any, broken: Any) -> Rule:
    return Rule(name, (GOOGLE,), source, words, breaks, broken, date="2026-11-24")


_GIF = {"inlineData": {"mimeType": "image/gif", "data": "R0lGOA=="}}

RULES = (
    _rule("the roles are `user` and `model`", API, "Please use a valid role: user, model.",
          lambda sent: any(content.get("role") not in ("user", "model") for content in sent.body["contents"]), _content(4, role="tool")),
    _rule("no empty message", "github.com/egoist/chatwise-releases/issues/250", "contents[1].parts: contents.parts must not be empty.",
          lambda sent: not sent.body["contents"] or any(not content["parts"] for content in sent.body["contents"]), _content(4, parts=[])),
    _rule("each part has something in it", "github.com/boldsoftware/sketch/issues/68",
          "contents[4].parts[0].data: required oneof field 'data' must have one initialized field",
          lambda sent: any(not any(name in part for name in _DATA) for part in _parts(sent)), _content(4, parts=[{}])),
    _rule("as many results as calls, right after them", f"{CLI}/issues/5443",
          "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
          _answers_otherwise, lambda body: body["contents"].pop(2)),
    _rule("calls come after a user or a result", f"{CLI}/issues/26486",
          "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
          _calls_out_of_turn, lambda body: body["contents"].pop(0)),
    _rule("the first call of a message is signed", SIGNATURES, "Function call is missing a thought_signature in functionCall parts.",
          _lacks_a_signature, lambda body: body["contents"][1]["parts"][0].pop("thoughtSignature")),
    _rule("signatures are its own", "docs.apiyi.com/en/faq/gemini-thought-signature-missing", "Corrupted thought signature.",
          _is_signed_by_another, lambda body: body["contents"][1]["parts"][0].update(thoughtSignature="eA==")),
    _rule("tool names begin with an operation or `_`", "github.com/kaitranntt/ccs/issues/25",
          "tools[0].function_declarations[0].name: [FIELD_INVALID] Invalid function name. Must start with an operation or an underscore.",
          lambda sent: any(not STARTS_WITH_A_LETTER.fullmatch(about["name"]) for about in _declared(sent.body)), _tool(name="7zip")),
    _rule("512 tools at most", f"{CLI}/issues/19083", "tools[0].function_declarations: [FIELD_INVALID] At most 512 function declarations can be specified.",
          lambda sent: len(_declared(sent.body)) > 512, lambda body: body["tools"][0].update(functionDeclarations=body["tools"][0]["functionDeclarations"] * 513)),
    _rule("no words of JSON Schema in OpenAPI's field", "github.com/openswarm-ai/openswarm/issues/24",
          "Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.",
          lambda sent: any({"$schema", "$ref", "$defs", "additionalProperties", "const", "propertyNames"} & part.keys()
                           for about in _declared(sent.body) for part in within(about.get("parameters", {}))),
          _tool(parameters={"type": "object", "additionalProperties": False})),
    _rule("a schema is an object, without a choice at the top", API, "parameters_json_schema: the schema has to be of an object.",
          lambda sent: any(not is_object(_schema(about)) for about in _declared(sent.body)), _tool(parameters_json_schema={"type": "string"})),
    _rule("the tool that is forced is offered", API, "allowed_function_names: the function is not declared.",
          lambda sent: any(name not in [about["name"] for about in _declared(sent.body)] for name in _allowed(sent))
          or (_choice(sent).get("mode") == "ANY" and not _declared(sent.body)),
          _set(toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["tides"]}})),
    _rule("names of tools only where one is forced", API, "allowed_function_names should only be set when the Mode is ANY or VALIDATED.",
          lambda sent: bool(_allowed(sent)) and _choice(sent).get("mode") not in ("ANY", "VALIDATED"),
          _set(toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["weather"]}})),
    _rule("an effort that the model has", "github.com/egoist/chatwise-releases/issues/1206",
          "Thinking level MEDIUM is not supported for this model. Please retry with other thinking level.",
          lambda sent: "gemini-3" in sent.model and _thinking(sent, "thinking_level") not in (None, *_levels(sent.model)),
          _generation(thinkingConfig={"thinkingLevel": "MEDIUM"})),
    _rule("no level of thinking before Gemini 3", "github.com/RooCodeInc/Roo-Code/issues/10700", "Thinking level is not supported for this model.",
          lambda sent: "gemini-3" not in sent.model and _thinking(sent, "thinking_level") is not None,
          lambda body: body.update(model="gemini-2.5-flash", generationConfig={"thinkingConfig": {"thinkingLevel": "LOW"}})),
    _rule("a level of thinking or a budget, not both", GEMINI_3, "You can only set only one of thinking budget and thinking level.",
          lambda sent: _thinking(sent, "thinking_level") is not None and _thinking(sent, "thinking_budget") is not None,
          _generation(thinkingConfig={"thinkingLevel": "LOW", "thinkingBudget": 1024})),
    _rule("thinking can't be off (2.5 Pro)", "ai.google.dev/gemini-api/docs/thinking", "Budget 0 is invalid. This model only works in thinking mode.",
          lambda sent: "2.5-pro" in sent.model and _thinking(sent, "thinking_budget") == 0,
          lambda body: body.update(model="gemini-2.5-pro", generationConfig={"thinkingConfig": {"thinkingBudget": 0}})),
    _rule("a temperature of 2 at most", API, "temperature must be in the range [0.0, 2.0]",
          lambda sent: not 0 <= sent.body.get("generationConfig", {}).get("temperature", 1) <= 2, _generation(temperature=2.5)),
    _rule("five stop words at most", API, "stop_sequences: at most 5 are allowed",
          lambda sent: len(sent.body.get("generationConfig", {}).get("stopSequences", ())) > 5, _generation(stopSequences=["a"] * 6)),
    _rule("pictures of known types, without GIF", "ai.google.dev/gemini-api/docs/image-understanding", "Unsupported MIME type: image/gif",
          lambda sent: any(kind not in (*PICTURES, *SOUNDS, "application/pdf") for kind in _kinds(sent)),
          lambda body: body["contents"][4]["parts"].append(_GIF)),
)  # fmt: skip
