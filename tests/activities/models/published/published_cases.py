# ruff: noqa: E501  one row each
"""Records as sessions come to have them, and what is asked for beside them: each is sent to each kind of server."""

from dataclasses import dataclass, field
from typing import Any

from longhaul.activities.models.model import AnswerSchema
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    URLSource,
    UserMsg,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from tests.activities.models.sample_requests import PIXEL, TIDES, WEATHER, called, returned

ASKED = UserMsg("user", "How is the weather?")
PICTURE = DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"), name="gull.png")
SPOILT = DataBlock(source=Base64Source(data="AAAA", media_type="image/png"), name="spoilt.png")
GIF = DataBlock(
    source=Base64Source(data="R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=", media_type="image/gif"), name="gull.gif"
)
PAPER = DataBlock(source=Base64Source(data="JVBERi0xLjQKJSVFT0YK", media_type="application/pdf"), name="tides.pdf")
NAMELESS = DataBlock(source=Base64Source(data="JVBERi0xLjQKJSVFT0YK", media_type="application/pdf"))
FAR_PICTURE = DataBlock(source=URLSource(url="https://x.example/gull.png", media_type="image/png"))
FAR_PAPER = DataBlock(source=URLSource(url="https://x.example/tides.pdf", media_type="application/pdf"))
STORED = DataBlock(source=URLSource(url="blob:abc", media_type="image/png"))
SOUND = DataBlock(source=Base64Source(data="AAAA", media_type="audio/wav"), name="gull.wav")
TIFF = DataBlock(source=Base64Source(data="AAAA", media_type="image/tiff"), name="gull.tiff")
NOTES = DataBlock(source=Base64Source(data="aGk=", media_type="text/plain"), name="notes.txt")

ERROR, DENIED, INTERRUPTED = ToolResultState.ERROR, ToolResultState.DENIED, ToolResultState.INTERRUPTED


def _call(call_id: str, name: str = "weather", arguments: str = "{}") -> ToolCallBlock:
    return ToolCallBlock(id=call_id, name=name, input=arguments)


def _result(call_id: str, output: Any = "Rain.", name: str = "weather") -> ToolResultBlock:
    return ToolResultBlock(id=call_id, name=name, output=output)


def _said(*blocks: Any) -> Msg:
    return AssistantMsg("longhaul", blocks)


def _round(call_id: str = "a1", name: str = "weather", arguments: str = "{}") -> list[Msg]:
    return [called(call_id, name, arguments), returned(call_id, name, "Rain.")]


def _shown(*parts: DataBlock) -> list[Msg]:
    return [UserMsg("user", [TextBlock(text="Look."), *parts])]


def _thought(**extras: Any) -> list[Msg]:
    thought = ThinkingBlock(thinking="Hm.", **extras)
    return [ASKED, _said(thought, _call("t1")), returned("t1", "weather", "Rain.")]


RECORDS: dict[str, list[Msg]] = {
    "a question": [ASKED],
    "nothing": [],
    "two questions": [ASKED, UserMsg("user", "And tomorrow?")],
    "a named speaker": [UserMsg("Ada L. <x>", "How is it?"), UserMsg("Bo", "And here?")],
    "blank words": [ASKED, UserMsg("user", " \n"), AssistantMsg("longhaul", "\t"), UserMsg("user", "Well?")],
    "an empty message": [UserMsg("user", []), ASKED],
    "words that end in blanks": [ASKED, AssistantMsg("longhaul", "Rain. \n "), UserMsg("user", "Sure?  ")],
    "the assistant first": [AssistantMsg("longhaul", "I began."), ASKED],
    "a call first": [*_round(), UserMsg("user", "And now?")],
    "nobody but the assistant": [AssistantMsg("longhaul", "I began.")],
    "the assistant last": [ASKED, AssistantMsg("longhaul", "Rain.")],
    "the assistant twice": [ASKED, AssistantMsg("longhaul", "Rain."), AssistantMsg("longhaul", "And snow."), ASKED],
    "words, then a call of the next message": [ASKED, AssistantMsg("longhaul", "I look."), *_round()],
    "a call and its result": [ASKED, *_round()],
    "three rounds": [ASKED, *_round("r1"), *_round("r2"), *_round("r3")],
    "words before a call": [ASKED, _said(TextBlock(text="I look."), _call("w1")), returned("w1", "weather", "Rain.")],
    "words behind a call": [ASKED, _said(_call("w1"), TextBlock(text="I look.")), returned("w1", "weather", "Rain.")],
    "parallel calls": [ASKED, _said(_call("p1"), _call("p2"), _call("p3")), _said(_result("p1")), _said(_result("p2"), _result("p3"))],
    "results in another order": [ASKED, _said(_call("p1"), _call("p2")), _said(_result("p2")), _said(_result("p1"))],
    "results in one message with words": [ASKED, _said(_call("p1")), _said(_result("p1"), TextBlock(text="So."))],
    "a call without a result": [ASKED, called("u1", "weather", "{}")],
    "a call without a result, then words": [ASKED, called("u1", "weather", "{}"), UserMsg("user", "Stop.")],
    "one of two without a result": [ASKED, _said(_call("u1"), _call("u2")), _said(_result("u2")), UserMsg("user", "So?")],
    "a result without a call": [ASKED, returned("lost", "weather", "Rain.")],
    "a result twice": [ASKED, *_round(), returned("a1", "weather", "Snow.")],
    "a late result": [ASKED, called("l1", "weather", "{}"), UserMsg("user", "Wait."), returned("l1", "weather", "Rain.")],
    "a hint between call and result": [ASKED, called("h1", "weather", "{}"), UserMsg("user", [HintBlock(hint="It is Friday.")]), returned("h1", "weather", "Rain.")],
    "a hint at the end": [ASKED, *_round(), UserMsg("user", [HintBlock(hint="It is Friday.")])],
    "words after a result": [ASKED, *_round(), UserMsg("user", "And in Oslo?")],
    "ids of another provider": [ASKED, *_round("chatcmpl-tool|" + "f" * 90), *_round("functions.weather:0")],
    "two long ids that begin alike": [ASKED, _said(_call("c" * 70 + "1"), _call("c" * 70 + "2")), _said(_result("c" * 70 + "1"), _result("c" * 70 + "2"))],
    "arguments that broke off": [ASKED, *_round(arguments='{"city": "Os')],
    "arguments that are a list": [ASKED, *_round(arguments="[1, 2]")],
    "arguments that are nothing": [ASKED, *_round(arguments="")],
    "arguments with NaN": [ASKED, *_round(arguments='{"city": NaN}')],
    "arguments that are deep": [ASKED, *_round(arguments='{"a":' * 90 + "1" + "}" * 90)],
    "a tool that nobody has": [ASKED, *_round(name="sorcery")],
    "a tool with an odd name": [ASKED, *_round(name="files.read/all"), *_round("a2", name="m" * 82)],
    "a tool without a name": [ASKED, *_round(name="")],
    "an empty result": [ASKED, called("e1", "weather", "{}"), returned("e1", "weather", "")],
    "a blank result in parts": [ASKED, called("e1", "weather", "{}"), returned("e1", "weather", [TextBlock(text=" ")])],
    "a failed result": [ASKED, called("f1", "weather", "{}"), returned("f1", "weather", "No such city.", ERROR)],
    "a failed result with a picture": [ASKED, called("f1", "weather", "{}"), returned("f1", "weather", [TextBlock(text="No."), PICTURE], ERROR)],
    "a denied and an interrupted call": [ASKED, _said(_call("d1"), _call("d2")), returned("d1", "weather", "No.", DENIED), returned("d2", "weather", "", INTERRUPTED)],
    "a result with a picture": [ASKED, called("s1", "weather", "{}"), returned("s1", "weather", [TextBlock(text="See."), PICTURE])],
    "a result that is a picture": [ASKED, called("s1", "weather", "{}"), returned("s1", "weather", [PICTURE])],
    "a result with a paper": [ASKED, called("s1", "weather", "{}"), returned("s1", "weather", [PAPER, FAR_PAPER])],
    "parallel results with pictures": [ASKED, _said(_call("p1"), _call("p2")), _said(_result("p1", [PICTURE])), _said(_result("p2", [PICTURE])), UserMsg("user", "So?")],
    "a picture": _shown(PICTURE),
    "a picture alone": [UserMsg("user", [PICTURE])],
    "a spoilt picture": _shown(SPOILT),
    "a moving picture": _shown(GIF),
    "a result with a moving picture": [ASKED, called("s1", "weather", "{}"), returned("s1", "weather", [TextBlock(text="See."), GIF])],
    "papers": _shown(PAPER, NAMELESS),
    "addresses": _shown(FAR_PICTURE, FAR_PAPER),
    "an address that is none": _shown(STORED),
    "a sound, a text, a TIFF": _shown(SOUND, NOTES, TIFF),
    "a picture of the assistant's": [ASKED, _said(TextBlock(text="See."), PICTURE), ASKED],
    "thinking of Anthropic": _thought(signature="of-anthropic", made_by="anthropic:claude-opus-4-1 https://elsewhere.example"),
    "redacted thinking": _thought(redacted_thinking_data="xyz", made_by="anthropic:claude-opus-4-1 https://elsewhere.example"),
    "thinking of OpenAI": _thought(item_id="rs_9", encrypted_content="of-openai", made_by="openai:gpt-5 https://elsewhere.example"),
    "thinking of DeepSeek": _thought(reasoning_field="reasoning_content", made_by="openai-chat:deepseek-v4-pro https://elsewhere.example"),
    "thinking of nobody": _thought(),
    "thinking alone": [ASKED, _said(ThinkingBlock(thinking="Hm.")), UserMsg("user", "Well?")],
    "thinking last": [ASKED, _said(_call("t1"), ThinkingBlock(thinking="Hm.")), returned("t1", "weather", "Rain.")],
    "a call with another's signature": [ASKED, _said(ToolCallBlock(id="g1", name="weather", input="{}", extras={"thought_signature": "x", "made_by": "openai-chat:gemini-3-flash https://elsewhere.example"})), returned("g1", "weather", "Rain.")],
    "odd characters": [UserMsg("user", "\ud83d \x00 \u2028 天气"), *_round(arguments='{"city": "\\ud83d"}')],
}  # fmt: skip


@dataclass(frozen=True)
class Offer:
    """What is asked for beside a record: settings of the agent and of the profile, tools, and what has to come back."""

    config: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)


def _tool(name: str = "ask", **schema: Any) -> Offer:
    return Offer(request={"tools": [WEATHER, ToolDescriptor(name=name, description="Do it.", input_schema=schema)]})


def _many(count: int) -> list[ToolDescriptor]:
    return [WEATHER, *(TIDES.model_copy(update={"name": f"tool_{number}"}) for number in range(1, count))]


_TEXT = {"type": "string"}
_FORM = AnswerSchema("summary of all", "The weather.", {"type": "object", "properties": {"city": _TEXT}})

OFFERS: dict[str, Offer] = {
    "no system prompt": Offer(request={"system": " "}),
    "no tools": Offer(request={"tools": []}),
    "a temperature": Offer({"temperature": 0.3}),
    "a high temperature": Offer({"temperature": 1.7}),
    "a temperature and a budget": Offer({"temperature": 0.3, "thinking_budget_tokens": 2048}),
    "a budget": Offer({"thinking_budget_tokens": 2048}),
    "a budget above the output": Offer({"thinking_budget_tokens": 9000, "max_output_tokens": 100}),
    "little output": Offer({"max_output_tokens": 1}),
    "much output": Offer({"max_output_tokens": 200_000}),
    "much output and an effort": Offer({"max_output_tokens": 200_000, "reasoning_effort": "max"}),
    **{f"effort {effort}": Offer({"reasoning_effort": effort})
       for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")},
    "an effort and a budget": Offer({"reasoning_effort": "max", "thinking_budget_tokens": 2048}),
    "top_p": Offer(profile={"top_p": 0.4}),
    "top_p and a temperature": Offer({"temperature": 0.3}, {"top_p": 0.4}),
    "top_p and a budget": Offer({"thinking_budget_tokens": 2048}, {"top_p": 0.4}),
    "stop words": Offer(profile={"stop": ["END"]}),
    "an hour of cache": Offer(profile={"cache_ttl": "1h"}),
    "calls forbidden": Offer(request={"no_calls": True}),
    "a call that has to be": Offer(request={"must_call": "weather"}),
    "a call that has to be, with thinking": Offer({"thinking_budget_tokens": 2048}, request={"must_call": "weather"}),
    "a form": Offer(request={"answer": _FORM}),
    "a form with thinking": Offer({"thinking_budget_tokens": 2048}, request={"answer": _FORM}),
    "a form and no tools": Offer(request={"answer": _FORM, "tools": []}),
    "two tools": Offer(request={"tools": [WEATHER, TIDES]}),
    "many tools": Offer(request={"tools": _many(150)}),
    "very many tools": Offer(request={"tools": _many(700)}),
    "many tools, and one has to be called": Offer(request={"tools": _many(150), "must_call": "tool_149"}),
    "many tools and a form": Offer(request={"tools": _many(128), "answer": _FORM}),
    "a long description": Offer(request={"tools": [WEATHER, TIDES.model_copy(update={"description": "The tides. " * 300})]}),
    "a long name": _tool("m" * 82),
    "a name with dots": _tool("files.read"),
    "a name with a digit in front": _tool("7zip"),
    "a name with a line below in front": _tool("_own"),
    "a name of other letters": _tool("天气"),
    "a schema of nothing": _tool(),
    "anyOf at the top": _tool("ask", type="object", properties={"a": _TEXT}, anyOf=[{"required": ["a"]}, {"required": ["b"]}]),
    "oneOf of references": _tool("ask", oneOf=[{"$ref": "#/$defs/A"}], **{"$defs": {"A": {"properties": {"a": _TEXT}}}}),
    "an array of anything": _tool("ask", type="object", properties={"many": {"type": "array"}, "deep": {
        "type": "object", "properties": {"rows": {"type": ["array", "null"]}, "cells": {"type": "array", "items": {}}}}}),
    "a property named like a word": _tool("ask", type="object", properties={"anyOf": _TEXT, "type": _TEXT, "$ref": _TEXT,
                                                                           "items": {"type": "array", "items": {"type": "array"}}}),
    "a type beside choices": _tool("ask", type="object", properties={"a": {"type": "object", "anyOf": [{"required": ["x"]}, {
        "type": "object", "properties": {"y": {"type": "array"}}}]}}),
    "references to definitions": _tool("ask", type="object", properties={"a": {"$ref": "#/definitions/A"}},
                                       definitions={"A": {"type": "array"}}),
}  # fmt: skip
