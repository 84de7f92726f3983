"""What models take is read from one file: it is what its sources say, and names of any form lead to its rows."""

import json
import tomllib
from datetime import date, timedelta
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic

from longhaul.activities.models.apis.anthropic import AnthropicModel
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests import rule_sources
from longhaul.activities.models.requests.model_rules import RULES_FILE, UNKNOWN, made_on, rules_of, shared
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import ModelProfile
from tests.activities.models.sample_requests import WEATHER, Caller
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says

TYPED = {
    "claude-opus-4-8": (
        "anthropic:claude-opus-4-8", "claude-opus-4.8", "anthropic/claude-opus-4.8", "claude-opus-4-8[1m]",
        "openrouter/anthropic/claude-opus-4.8", "anthropic/claude-opus-4.8:thinking", "Claude-Opus-4-8-20260514",
        "us.anthropic.claude-opus-4-8-v1:0", "bedrock/global.anthropic.claude-opus-4-8",
        "vertex_ai/claude-opus-4-8@default",
    ),
    "gpt-5.4-mini": (
        "openai:gpt-5.4-mini-2026-03-17", "openai/gpt-5.4-mini", "azure/gpt-5.4-mini", "ft:gpt-5.4-mini:acme",
    ),
    "kimi-k3": ("ai:moonshotai:kimi-k3", "moonshotai/kimi-k3", "moonshotai/Kimi-K3:free"),
    "glm-5.3": ("zai-org/GLM-5.3", "ai:zai:glm-5.3", "z-ai/glm-5.3"),
    "deepseek-v3.1": ("accounts/fireworks/models/deepseek-v3p1", "deepseek-ai/DeepSeek-V3.1"),
    "gpt-oss-120b": ("openai.gpt-oss-120b-1:0", "groq/openai/gpt-oss-120b", "openai/gpt-oss-120b"),
    "grok-4.7": ("xai:grok-4.7", "x-ai/grok-4.7", "grok-4-7"),
    "gemini-3.8-flash": ("ai:google:gemini-3.8-flash", "models/gemini-3.8-flash", "gemini/gemini-3.8-flash-preview"),
}  # fmt: skip


@pytest.mark.parametrize(("plain", "typed"), [(plain, name) for plain, names in TYPED.items() for name in names])
def test_a_name_is_read_in_each_form_that_people_type(plain: str, typed: str) -> None:
    assert rules_of(plain).is_known
    assert rules_of(typed) == rules_of(plain)


@pytest.mark.parametrize(
    ("invented", "newest"),
    [
        ("claude-opus-6", ["claude-opus-5-5"]),
        ("claude-opus-4-9", ["claude-opus-4-8"]),
        ("claude-lyric-7-1", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"]),
        ("gpt-6.9-sol", ["gpt-6.2-sol"]),
        ("gpt-7", ["gpt-6.2-sol", "gpt-6.2-astra"]),
        ("gpt-6", ["gpt-6-sol", "gpt-6-luna", "gpt-6-astra"]),
        ("gemini-5-pro", ["gemini-3.1-pro-preview"]),
        ("kimi-k5", ["kimi-k3.1-pro", "kimi-k3.1-pro-highspeed"]),
        ("grok-6", ["grok-4.7"]),
        ("glm-6.1", ["glm-5.3"]),
        ("deepseek-v6-pro", ["deepseek-v4-pro"]),
    ],
)
def test_a_new_name_of_a_known_family_keeps_the_rules_of_its_newest(invented: str, newest: list[str]) -> None:
    assert rules_of(invented) == shared([rules_of(name) for name in newest])


@pytest.mark.parametrize("name", ["our-deployment", "m2", "llm", "other", "", "wibble-9-pro"])
def test_of_a_model_of_no_known_family_nothing_is_known(name: str) -> None:
    assert rules_of(name) == UNKNOWN


def test_the_file_is_what_its_sources_say() -> None:
    written = json.loads((rule_sources.HERE / RULES_FILE).read_text(encoding="utf-8"))
    now = rule_sources.rules_now()

    assert {name: written[name] for name in now if name != "made"} == json.loads(
        json.dumps({name: value for name, value in now.items() if name != "made"})
    )
    assert rule_sources.written({**now, "made": made_on()}) == rule_sources.written(written)


def test_each_row_says_where_it_comes_from_and_old_ones_are_listed() -> None:
    rows = tomllib.loads(rule_sources.OVERRIDES.read_text(encoding="utf-8"))["rows"]
    newest = max(row["date"] for row in rows)

    late = rule_sources.old_rows(newest + rule_sources.OLD_AFTER + timedelta(days=1))

    assert all(row["source"] and isinstance(row["date"], date) for row in rows)
    assert len(late) >= len(rows)
    assert any("genai-prices" in row for row in late)
    assert rule_sources.old_rows(date.fromisoformat("2026-11-29")) == []


@pytest.mark.parametrize("effort", [None, "none", "medium", "max"])
@pytest.mark.parametrize("model", ["claude-opus-7", "gpt-6.9-sol", "kimi-k5", "gemini-5-flash", "wibble-9"])
@pytest.mark.parametrize("api", ["anthropic", "openai", "openai-chat"])
async def test_what_a_new_model_is_sent_is_what_its_family_takes(
    by_wire: Caller, wire: Wire, api: str, model: str, effort: str | None
) -> None:
    says = {"anthropic": claude_says, "openai": response_says, "openai-chat": chat_says}[api]
    wire.answers = [Answer(says("ok"))]
    rules = rules_of(model)

    await by_wire.call(f"{api}:{model}", "Hi", tools=[WEATHER], temperature=0.3, reasoning_effort=effort)

    body = wire.bodies[0]
    sent = body.get("reasoning_effort") or {**body.get("reasoning", {}), **body.get("output_config", {})}.get("effort")
    assert sent is None or rules.efforts is None or sent in rules.efforts
    assert rules.samples != "no" or "temperature" not in body or (api == "openai-chat" and rules.maker == "openai")


class Rerouted(httpx2.AsyncHTTPTransport):
    """What goes to Anthropic arrives at the tests' own server."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = httpx2.URL(url)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(scheme="http", host=self._url.host, port=self._url.port)
        return await super().handle_async_request(request)


async def at_anthropic(wire: Wire, model: str, profile: ModelProfile | None = None, **config: Any) -> ModelReply:
    client = AsyncAnthropic(api_key="k", max_retries=0, http_client=httpx2.AsyncClient(transport=Rerouted(wire.url)))
    wire.answers = [Answer(claude_says("ok"))]
    asked = ModelRequest(model, "", [UserMsg("user", "Hi")], (), ModelConfig(**config), profile=profile)
    reply = await AnthropicModel(client).call(asked, lambda _: None)
    await client.close()
    return reply


async def test_an_api_that_takes_no_temperature_is_sent_none_and_an_older_one_is(wire: Wire) -> None:
    profile = ModelProfile(
        provider="anthropic", model="claude-sonnet-4-6", headers={"anthropic-version": "2023-06-01"}, top_p=0.5
    )

    newer = await at_anthropic(wire, "claude-sonnet-4-6", temperature=0.2)
    await at_anthropic(wire, "claude-sonnet-4-6", profile)

    assert "anthropic-version: 2026-10-21" in wire.heads[0]
    assert "temperature" not in wire.bodies[0]
    assert "this version of Anthropic's API takes none" in newer.notes[0]
    assert "anthropic-version: 2023-06-01" in wire.heads[1]
    assert wire.bodies[1]["top_p"] == 0.5


@pytest.mark.parametrize(
    ("model", "wanted", "sent", "noted"),
    [
        ("gpt-5.4", "high", None, True),
        ("gpt-5.4", None, None, False),
        ("gpt-6-luna", "high", "none", True),
        ("gpt-5.6-terra", None, "none", True),
        ("gpt-5", "high", "high", False),
    ],
)
async def test_tools_go_over_chat_completions_with_the_effort_that_they_need(
    by_wire: Caller, wire: Wire, model: str, wanted: str | None, sent: str | None, noted: bool
) -> None:
    wire.answers = [Answer(chat_says("ok"))]
    profile = ModelProfile(provider="openai-chat", model="ours", family=model, base_url=wire.url)
    asked = ModelConfig(profiles={"ours": profile}, base_url=wire.url, reasoning_effort=wanted)
    request = ModelRequest("", "", [UserMsg("user", "Hi")], [WEATHER], asked)

    reply = await by_wire.providers.call("ours", request, lambda _: None)

    assert wire.bodies[0].get("reasoning_effort") == sent
    assert any("Over the Responses API it takes both" in note for note in reply.notes) is noted


async def test_a_model_that_takes_no_tools_there_says_where_it_does(by_wire: Caller, wire: Wire) -> None:
    profile = ModelProfile(provider="openai-chat", model="ours", family="gpt-6.2-sol", base_url=wire.url)
    asked = ModelConfig(profiles={"ours": profile})

    with pytest.raises(SetupError, match=r"write openai:gpt-6\.2-sol"):
        await by_wire.providers.call(
            "ours", ModelRequest("", "", [UserMsg("user", "Hi")], [WEATHER], asked), lambda _: None
        )

    assert wire.bodies == []
