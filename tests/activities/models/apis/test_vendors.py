"""Models of other vendors through pydantic-ai, against servers on real ports that speak as those vendors do."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.providers import infer_provider_class

from longhaul.activities.models.apis.vendors import VENDORS
from longhaul.activities.models.model import AnswerSchema, Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import KeyPlace, read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.requests.thinking_origin import fitting, origin_of
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolResultState,
    URLSource,
    UserMsg,
)
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS
from longhaul.agent.values.spec.known_names import VENDORS as KNOWN
from tests.activities.models.converse_wire import converse_turn
from tests.activities.models.loops import answered, assert_each_goes_on_where_the_last_one_ended, beginnings
from tests.activities.models.sample_requests import PIXEL, TIDES, WEATHER, Caller, called, returned
from tests.activities.models.wire import (
    Answer,
    Wire,
    chat_calls,
    chat_chunk,
    chunks,
    cohere_calls,
    google_chunk,
    says_of,
)

CONFIG = ModelConfig()
PDF = "JVBERi0xLjQKJSVFT0YK"
PLACES = {"bedrock": {"region": "us-east-1"}, "google-vertex": {"region": "us-east5", "project": "our-project"}}
"""Of clouds."""
GOOGLES = ("google", "google-vertex")


@dataclass
class Asking:
    """One vendor's model at an address of the test, as an operator's profile has it."""

    vendor: str
    url: str
    providers: Providers
    deltas: list[Delta] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, messages: list[Msg] | str, **more: Any) -> ModelReply:
        told = [UserMsg("user", messages)] if isinstance(messages, str) else messages
        config = ModelConfig.model_validate(more.pop("config", {}))
        asked = {"system": "Be brief.", "tools": [WEATHER], "call_number": 4, **more}
        return await self.providers.call("it", ModelRequest("", messages=told, config=config, **asked), self._hear)

    async def step(self, messages: list[Msg], **more: Any) -> list[Msg]:
        """One call as a session makes it, its reply, and a result for each call in it."""
        origin = self.providers.origin("it", CONFIG)
        name, _, address = origin.partition(" ")
        at = CONFIG.model_copy(update={"base_url": address})
        request = ModelRequest(name, "Be brief.", messages, [WEATHER], at)
        fit = fitting(request, origin_of(name, at), beginnings(name, at, messages))
        return answered(await self.call(list(fit.messages), **more), name, at, messages)

    async def heard_more(self) -> None:
        self.began.clear()
        await self.began.wait()

    def _hear(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self.began.set()

    def heard(self, kind: str) -> str:
        return "".join(delta.text for delta in self.deltas if delta.kind == kind)


@asynccontextmanager
async def asking(wire: Wire, vendor: str, model: str = "some/model", **said: Any) -> AsyncIterator[Asking]:
    table = {"provider": f"ai:{vendor}", "model": model, "base_url": wire.url, "api_key_env": "TEAM_KEY"}
    table |= {**PLACES.get(vendor, {}), **said}
    providers = Providers({"TEAM_KEY": "sk-team-moss"}, (), read_profiles({"it": table}))
    try:
        yield Asking(vendor, wire.url, providers)
    finally:
        await providers.close()


def calls_of(vendor: str, call_id: str, city: str) -> bytes:
    if vendor == "cohere":
        return cohere_calls((call_id, "weather", {"city": city}))
    if vendor == "bedrock":
        return converse_turn(None, "", (call_id, "weather", {"city": city}))
    if vendor not in GOOGLES:
        return chat_calls(call_id, "weather", {"city": city})
    usage = {"promptTokenCount": 21, "candidatesTokenCount": 5, "totalTokenCount": 26}
    part = {"functionCall": {"name": "weather", "args": {"city": city}, "id": call_id}, "thoughtSignature": "c2lnbmVk"}
    return chunks(google_chunk(part), google_chunk({"text": ""}, reason="STOP", usageMetadata=usage), done=False)


def said_to(body: Mapping[str, Any]) -> str:
    return json.dumps(body.get("messages") or body.get("contents"))


def test_each_vendor_stands_in_both_lists_and_the_library_has_it() -> None:
    assert tuple(VENDORS) == KNOWN
    for vendor, about in VENDORS.items():
        assert infer_provider_class(about.library_name or vendor)
    assert {f"ai:{vendor}" for vendor in PLACES} == {name for name in CLOUDS if name.startswith("ai:")}


def test_the_page_has_a_row_for_each_vendor() -> None:
    text = (Path(__file__).parents[4] / "docs" / "agents" / "providers.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `ai:(\w+)` \| `(\w+)` \| `([^`]+)`(?:, or a profile)? \| (yes|-) \|$", text)

    assert rows == [
        (name, about.key_env, about.base_url or about.base_url_env, "yes" if about.takes_pdf else "-")
        for name, about in VENDORS.items()
        if name not in PLACES
    ]


@pytest.mark.parametrize("vendor", [name for name, vendor in VENDORS.items() if vendor.base_url])
def test_a_vendors_key_and_address_are_those_of_the_library(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a newer release: where an address moves, this fails."""
    about = VENDORS[vendor]
    for each in VENDORS.values():
        monkeypatch.delenv(each.base_url_env, raising=False)
        monkeypatch.delenv(each.key_env, raising=False)
    monkeypatch.setenv(about.key_env, "sk-some-key")

    made = infer_provider_class(vendor)()

    assert made.base_url.rstrip("/") == about.base_url


@pytest.mark.proves("F6")
@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_call_its_result_and_the_answer_go_to_and_fro(wire: Wire, vendor: str) -> None:
    wire.answers = [Answer(calls_of(vendor, "c1", "Bergen")), Answer(says_of(f"ai:{vendor}", "Rain."))]
    async with asking(wire, vendor) as it:
        first = await it.step([UserMsg("user", "How is the weather?")])
        second = await it.call(first)

    (call,) = first[1].get_tool_calls()
    assert (call.name, json.loads(call.input)) == ("weather", {"city": "Bergen"})
    assert it.heard("tool_call").replace(" ", "") == '{"city":"Bergen"}'
    assert [block.text for block in second.content if isinstance(block, TextBlock)] == ["Rain."]
    assert it.heard("text") == "Rain."
    assert second.stop.value == "end"
    sent = said_to(wire.bodies[1])
    assert all(word in sent for word in ("How is the weather?", "Bergen", "c1", "Rain."))
    assert "Be brief." in json.dumps(wire.bodies[1])
    assert json.dumps(wire.bodies[1]).count("Tell the weather of a city.") == 1
    assert all("sk-team-moss" in head for head in wire.heads)


@pytest.mark.proves("F6")
@pytest.mark.parametrize("vendor", VENDORS)
async def test_what_a_profile_says_is_heard_or_noted(wire: Wire, vendor: str) -> None:
    """Under whatever name the vendor has for it."""
    wire.answers = [Answer(says_of(f"ai:{vendor}", "Aye."))]
    said: dict[str, Any] = {"temperature": 0.625, "top_p": 0.375, "seed": 987, "stop": ["ENOUGH"]}
    async with asking(wire, vendor, **said) as it:
        reply = await it.call("Fair wind?")

    sent, notes = json.dumps(wire.bodies[0]), " ".join(reply.notes)
    for value, name in (("0.625", "temperature"), ("0.375", "top_p"), ("987", "seed"), ("ENOUGH", "stop")):
        assert (value in sent) != (name in notes)
    # Of a model that may think, with room for that.
    assert "8192" in sent or "33192" in sent


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_picture_arrives_and_nothing_is_fetched_from_an_address(wire: Wire, vendor: str) -> None:
    wire.answers = [Answer(says_of(f"ai:{vendor}", "Aye."))]
    shown: list[TextBlock | DataBlock] = [
        TextBlock(text="Look."),
        DataBlock(source=Base64Source(data=PIXEL, media_type="image/png")),
        DataBlock(source=Base64Source(data=PDF, media_type="application/pdf"), name="map.pdf"),
        DataBlock(source=URLSource(url=f"{wire.url}/map.pdf", media_type="application/pdf")),
        DataBlock(source=URLSource(url=f"{wire.url}/gull.png", media_type="image/png")),
        DataBlock(source=Base64Source(data="U09O", media_type="audio/wav"), name="gull.wav"),
    ]
    async with asking(wire, vendor) as it:
        reply = await it.call([UserMsg("user", shown)])

    sent = said_to(wire.bodies[0])
    assert (PIXEL in sent.replace("-", "+").replace("_", "/")) == VENDORS[vendor].takes_pictures
    assert VENDORS[vendor].takes_pictures or "An attachment of type 'image/png' was left out." in reply.notes
    assert (PDF in sent) == VENDORS[vendor].takes_pdf
    assert ("U09O" in sent) == VENDORS[vendor].takes_sound
    assert ("gull.wav" in sent) != VENDORS[vendor].takes_sound
    assert len(wire.heads) == 1
    assert ("An attachment of type 'audio/wav' was left out." in reply.notes) != VENDORS[vendor].takes_sound


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_failed_result_and_its_picture_are_told(wire: Wire, vendor: str) -> None:
    wire.answers = [Answer(says_of(f"ai:{vendor}", "Aye."))]
    output = [TextBlock(text="no such city"), DataBlock(source=Base64Source(data=PIXEL, media_type="image/png"))]
    told = [
        UserMsg("user", "Look."),
        called("c1", "weather", '{"city": "Atlantis"}'),
        returned("c1", "weather", output, ToolResultState.ERROR),
    ]
    async with asking(wire, vendor) as it:
        await it.call(told)

    sent = said_to(wire.bodies[0])
    assert "[error]" in sent
    assert "no such city" in sent
    assert (PIXEL in sent.replace("-", "+").replace("_", "/")) == VENDORS[vendor].takes_pictures


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_broken_record_is_sent_in_order(wire: Wire, vendor: str) -> None:
    """No first word of a user, arguments that are no JSON, a call without a result, and the assistant last."""
    wire.answers = [Answer(says_of(f"ai:{vendor}", "Aye."))]
    told = [
        AssistantMsg("longhaul", "I began."),
        called("a very odd id of more than forty characters, with blanks", "weather", '{"city": '),
        AssistantMsg("longhaul", "I ended."),
    ]
    async with asking(wire, vendor) as it:
        await it.call(told)

    roles = [each["role"] for each in wire.bodies[0].get("messages") or wire.bodies[0]["contents"]]
    assert roles[-1] == "user"
    assert "No result of this call was recorded" in said_to(wire.bodies[0])


@pytest.mark.parametrize("vendor", VENDORS)
async def test_an_answer_of_a_given_form_and_one_without_calls(wire: Wire, vendor: str) -> None:
    calls, said = Answer(calls_of(vendor, "c1", "Bergen")), Answer(says_of(f"ai:{vendor}", "Aye."))
    # Mistral can be forbidden to call by leaving the tools out alone: it is asked with them first.
    wire.answers = [calls, calls, said] if vendor == "mistral" else [calls, said]
    form = AnswerSchema("weather", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
    async with asking(wire, vendor) as it:
        await it.call("Where?", tools=[TIDES], answer=form)
        reply = await it.call("And now in words.", no_calls=True)

    first, *_, last = wire.bodies
    forced, forbidden = (json.dumps(body.get("tool_choice") or body.get("toolConfig")) for body in (first, last))
    in_words = "fit this JSON schema" in json.dumps(wire.bodies[0])
    offered = json.dumps({name: part for name, part in last.items() if part})
    assert reply.content == (TextBlock(text="Aye."),)
    assert (len(wire.bodies), "tools" in wire.bodies[1]) == (3, True) or vendor != "mistral"
    assert in_words or "weather" in forced or any(word in forced.lower() for word in ("any", "required"))
    assert "none" in forbidden.lower() or '"tools"' not in offered


async def test_what_deepseek_thinks_goes_back_to_it_and_to_no_other(wire: Wire) -> None:
    piece = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    thinks = chunks(
        chat_chunk({"reasoning_content": "Rain, "}),
        chat_chunk({"reasoning_content": "I think."}),
        chat_chunk({"tool_calls": [piece]}),
        chat_chunk({}, "tool_calls"),
    )
    wire.answers = [Answer(thinks), Answer(says_of("ai:deepseek", "Rain.")), Answer(says_of("ai:together", "Rain."))]
    async with asking(wire, "deepseek", "deepseek-v4-pro") as it, asking(wire, "together") as other:
        messages = await it.step([UserMsg("user", "How is the weather?")])
        messages = await it.step(messages)
        await other.step([*messages, UserMsg("user", "Sure?")])

    thought = next(block for block in messages[1].content if isinstance(block, ThinkingBlock))
    assert (thought.thinking, it.heard("thinking")) == ("Rain, I think.", "Rain, I think.")
    spoken = [message for message in wire.bodies[1]["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in spoken] == ["Rain, I think."]
    assert "I think." not in json.dumps(wire.bodies[2])


@pytest.mark.parametrize("vendor", GOOGLES)
async def test_what_google_has_signed_goes_back_to_it(wire: Wire, vendor: str) -> None:
    wire.answers = [Answer(calls_of(vendor, "c1", "Bergen")), Answer(says_of(f"ai:{vendor}", "Rain."))]
    async with asking(wire, vendor, "gemini-3-pro-preview") as it:
        messages = await it.step([UserMsg("user", "How is the weather?")])
        await it.step(messages)

    (asked, spoken, answers) = wire.bodies[1]["contents"]
    assert (asked["role"], spoken["role"], answers["role"]) == ("user", "model", "user")
    (part,) = spoken["parts"]
    assert part["thoughtSignature"].rstrip("=") == "c2lnbmVk"
    assert part["functionCall"]["args"] == {"city": "Bergen"}


async def test_a_gemini_call_of_another_model_is_sent_so_that_it_is_taken(wire: Wire) -> None:
    """Gemini 3 refuses a call without a signature."""
    wire.answers = [Answer(says_of("ai:google", "Rain."))]
    told = [UserMsg("user", "How is it?"), called("c1", "weather", "{}"), returned("c1", "weather", "Rain.")]
    async with asking(wire, "google", "gemini-3-pro-preview") as it:
        await it.call(told)

    (part,) = wire.bodies[0]["contents"][1]["parts"]
    assert part["thoughtSignature"]


@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("google", "gemini-3-pro-preview"),
        ("google-vertex", "gemini-3-pro-preview"),
        ("deepseek", "deepseek-v4-pro"),
        ("groq", "openai/gpt-oss-120b"),
        ("bedrock", "us.anthropic.claude-opus-4-8"),
        ("bedrock", "openai.gpt-oss-120b-1:0"),
        ("bedrock", "us.amazon.nova-pro-v1:0"),
    ],
)
async def test_each_effort_is_sent_or_noted(wire: Wire, vendor: str, model: str, effort: str) -> None:
    wire.answers = [Answer(says_of(f"ai:{vendor}", "Aye."))] * 2
    async with asking(wire, vendor, model) as it:
        plain = await it.call("Fair wind?")
        asked = await it.call("Fair wind?", config={"reasoning_effort": effort})

    assert wire.bodies[0] != wire.bodies[1] or asked.notes != plain.notes


async def test_where_a_model_does_not_think_that_is_said(wire: Wire) -> None:
    wire.answers = [Answer(says_of("ai:mistral", "Aye."))]
    async with asking(wire, "mistral", "mistral-large-latest") as it:
        reply = await it.call("Fair wind?", config={"reasoning_effort": "high", "thinking_budget_tokens": 2048})

    assert set(reply.notes) == {
        "The effort was left out: this model takes none.",
        "The thinking budget was left out: here an effort says how much a model thinks.",
    }


OF_OPENAI = {
    "prompt_tokens": 90, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 12}, "total_tokens": 120,
}  # fmt: skip
OF_GOOGLE = {
    "promptTokenCount": 90, "candidatesTokenCount": 18, "thoughtsTokenCount": 12, "cachedContentTokenCount": 64,
    "totalTokenCount": 120,
}  # fmt: skip


@pytest.mark.parametrize(("told", "counted"), [(21.0, 21), (10**18, 0)])
async def test_a_count_of_tokens_that_is_none_costs_no_answer(wire: Wire, told: float, counted: int) -> None:
    usage = {"prompt_tokens": told, "completion_tokens": 5, "total_tokens": 26}
    wire.answers = [Answer(chunks(chat_chunk({"content": "Aye."}), {**chat_chunk({}, "stop"), "usage": usage}))]

    async with asking(wire, "deepseek") as it:
        used = (await it.call("Hi")).usage

    assert (used.input_tokens, used.output_tokens) == (counted, 5)


@pytest.mark.parametrize(
    ("vendor", "usage"), [("deepseek", OF_OPENAI), ("google", OF_GOOGLE), ("google-vertex", OF_GOOGLE)]
)
async def test_tokens_are_counted_as_for_others(wire: Wire, vendor: str, usage: dict[str, Any]) -> None:
    told = chunks(chat_chunk({"content": "Aye."}), {**chat_chunk({}, "stop"), "usage": usage})
    if vendor in GOOGLES:
        told = chunks(google_chunk({"text": "Aye."}, reason="STOP", usageMetadata=usage), done=False)
    wire.answers = [Answer(told)]
    async with asking(wire, vendor) as it:
        used = (await it.call("Hi")).usage

    read, wrote = used.input_tokens, used.output_tokens
    assert (read, wrote, used.cache_input_tokens, used.reasoning_tokens) == (90, 30, 64, 12)


@pytest.mark.proves("F6")
async def test_a_claude_behind_a_gateway_is_marked_for_the_cache(wire: Wire) -> None:
    wire.answers = [Answer(calls_of("openrouter", "c1", "Oslo")), Answer(says_of("ai:openrouter", "Rain."))]
    async with asking(wire, "openrouter", "anthropic/claude-opus-4.8") as it:
        messages = await it.step([UserMsg("user", "How is the weather?")])
        await it.call(messages)

    for body, last in zip(wire.bodies, ("user", "tool"), strict=True):
        parts = [(message["role"], part) for message in body["messages"] for part in message["content"] or ()]
        marked = [role for role, part in parts if isinstance(part, dict) and "cache_control" in part]
        assert marked == ["system", last]
        assert "cache_control" in json.dumps(body["tools"])


@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("openrouter", "some/model"),
        ("google", "some/model"),
        ("google-vertex", "some/model"),
        ("bedrock", "us.amazon.nova-pro-v1:0"),
        ("bedrock", "us.anthropic.claude-opus-4-8"),
    ],
)
async def test_twelve_turns_of_calls_each_begin_with_the_one_before(wire: Wire, vendor: str, model: str) -> None:
    turns = 12
    wire.answers = [Answer(calls_of(vendor, f"c{turn}", f"Town {turn}")) for turn in range(turns)]
    messages: list[Msg] = [UserMsg("user", "How is the weather everywhere?")]
    async with asking(wire, vendor, model) as it:
        for _ in range(turns):
            messages = await it.step(messages)

    bodies = [{"messages": body.get("messages") or body["contents"]} for body in wire.bodies]
    assert_each_goes_on_where_the_last_one_ended(bodies)


@pytest.mark.parametrize("model", ["vllm:MiniMaxAI/MiniMax-M2", "groq:qwen/qwen3-32b", "deepseek:deepseek-r1"])
@pytest.mark.parametrize("cuts", ["", "4 9 16", " ".join(map(str, range(1, 24)))])
async def test_a_thought_in_tags_is_no_text_however_it_is_cut(wire: Wire, model: str, cuts: str) -> None:
    text = "<think>Hm.</think>\n\nAye."
    ends = [0, *map(int, cuts.split()), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    keys: dict[str, str] = dict.fromkeys(("VLLM_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY"), "sk-moss")
    providers = Providers(keys, [KeyPlace(name, wire.url) for name in keys])
    caller = Caller(wire.url, providers)
    wire.answers = [Answer(chunks(*[chat_chunk({"content": piece}) for piece in pieces], chat_chunk({}, "stop")))]

    reply = await caller.call(f"ai:{model}", "Hi")
    await providers.close()

    assert [block.type for block in reply.content] == ["thinking", "text"]
    assert (caller.heard("thinking"), caller.heard("text")) == ("Hm.", "Aye.")
