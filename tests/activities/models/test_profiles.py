"""What a profile puts into requests, as real servers on real ports receive them, by the real SDKs of all three APIs."""

import json
import re
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.model_limits import window_of
from longhaul.activities.models.profiles import BadProfiles, read_key_places, read_profiles, tells_family
from longhaul.activities.models.providers import PROVIDERS, Providers
from longhaul.agent.values.conversation.messages import AssistantMsg, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS
from longhaul.agent.values.spec.profiles import APIS, OF_APIS, ModelProfile
from tests.activities.models.sample_requests import KEYS, WEATHER
from tests.activities.models.test_providers import ignore
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says

SAYS = {"messages": claude_says("Aye."), "responses": response_says("Aye."), "chat": chat_says("Aye.")}
SPEAKING = [name for name in APIS if APIS[name] in SAYS and name not in CLOUDS]
"""Those of other vendors are in test_vendors.py."""
ENVIRON = {**KEYS, "TEAM_KEY": "sk-team-moss", "OTHER_KEY": "sk-other-gorse"}

OF_REQUESTS: dict[str, tuple[Any, dict[str, dict[str, Any]]]] = {
    "extra_body": (
        {"top_k": 7, "vendor": {"deep": [1, None]}},
        {api: {"top_k": 7, "vendor": {"deep": [1, None]}} for api in SAYS},
    ),
    "top_p": (0.25, {api: {"top_p": 0.25} for api in SAYS}),
    "seed": (0, {"chat": {"seed": 0}}),
    "stop": (
        ["ENOUGH", "END"],
        {"messages": {"stop_sequences": ["ENOUGH", "END"]}, "chat": {"stop": ["ENOUGH", "END"]}},
    ),
    "verbosity": ("low", {"responses": {"text": {"verbosity": "low"}}, "chat": {"verbosity": "low"}}),
    "service_tier": ("auto", {api: {"service_tier": "auto"} for api in SAYS}),
    "temperature": (0.5, {api: {"temperature": 0.5} for api in SAYS}),
    "token_field": ("max_completion_tokens", {"chat": {"max_completion_tokens": 8192}}),
    "effort": (
        "low",
        {
            "messages": {"output_config": {"effort": "low"}},
            "responses": {"reasoning": {"effort": "low"}},
            "chat": {"reasoning_effort": "low"},
        },
    ),
}
"""A value of each, and what stands in the body then, by API."""
ELSEWHERE = {"headers", "betas", "cache_ttl", "background"}
"""Not fields of the body by themselves: they have tests of their own."""


@asynccontextmanager
async def calling(
    profiles: Mapping[str, Mapping[str, Any]], environ: Mapping[str, str] = ENVIRON, listed: str = ""
) -> AsyncIterator[Providers]:
    providers = Providers(environ, read_key_places(listed), read_profiles(profiles))
    yield providers
    await providers.close()


def asking(**config: Any) -> ModelRequest:
    told = [UserMsg("user", "Hi"), AssistantMsg("longhaul", "Hello."), UserMsg("user", "Fair wind?")]
    return ModelRequest("", "Be brief.", told, (WEATHER,), ModelConfig.model_validate(config))


async def received(wire: Wire, provider: str, **said: Any) -> dict[str, Any]:
    """The body of a request with this profile, which the operator has written."""
    wire.answers.append(Answer(SAYS[APIS[provider]]))
    table = {"provider": provider, "model": "tide-3", "base_url": wire.url, "api_key_env": "TEAM_KEY", **said}
    async with calling({"tide": table}) as providers:
        await providers.call("tide", asking(), ignore)
    return wire.bodies[-1]


def test_each_field_of_requests_is_looked_at_here() -> None:
    for api, names in OF_APIS.items():
        if api == "ai":
            continue
        seen = {name for name, (_, bodies) in OF_REQUESTS.items() if api in bodies}
        assert names - ELSEWHERE == seen


@pytest.mark.proves("F6")
@pytest.mark.parametrize("name", OF_REQUESTS)
@pytest.mark.parametrize("provider", SPEAKING)
async def test_what_a_profile_says_is_what_the_server_hears(wire: Wire, provider: str, name: str) -> None:
    value, bodies = OF_REQUESTS[name]
    if APIS[provider] not in bodies:
        return  # refused where the profile is read: `test_what_an_api_does_not_have_is_refused_by_name`
    without = await received(wire, provider)
    body = await received(wire, provider, **{name: value})

    added = {field: body[field] for field in body if field not in without or body[field] != without[field]}
    expected = bodies[APIS[provider]]
    assert {field: added.get(field) for field in expected} == expected
    assert body["model"] == "tide-3"
    if name == "token_field":
        assert "max_tokens" not in body


@pytest.mark.parametrize("provider", SPEAKING)
async def test_headers_and_the_key_of_a_profile_arrive(wire: Wire, provider: str) -> None:
    await received(wire, provider, headers={"X-Team": "harbour", "User-Agent": "tide"})

    head = wire.heads[0].lower()
    assert "x-team: harbour\r\n" in head
    assert "user-agent: tide\r\n" in head
    assert "sk-team-moss" in head
    assert not any(key in head for key in KEYS.values())


async def test_betas_stand_beside_those_that_are_needed_anyway(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: of-the-operator-1")
    wire.answers = [Answer(SAYS["messages"])] * 2
    table = {"provider": "anthropic", "model": "tide-3", "betas": ["context-1m-2025-08-07", "tides-2"]}
    async with calling({"tide": table}, {**ENVIRON, "ANTHROPIC_BASE_URL": wire.url}) as providers:
        await providers.call("tide", asking(), ignore)
        await providers.call("anthropic:tide-3", asking(), ignore)

    assert "anthropic-beta: of-the-operator-1,context-1m-2025-08-07,tides-2\r\n" in wire.heads[0].lower()
    assert "anthropic-beta: of-the-operator-1\r\n" in wire.heads[1].lower()


@pytest.mark.parametrize("ttl", ["5m", "1h"])
async def test_each_mark_for_the_cache_bears_the_time(wire: Wire, ttl: str) -> None:
    marked = json.dumps(await received(wire, "anthropic", cache_ttl=ttl))
    plain = json.dumps(await received(wire, "anthropic"))

    assert marked.count('"cache_control"') == plain.count('"cache_control"') == 4
    assert marked.count(f'"cache_control": {{"type": "ephemeral", "ttl": "{ttl}"}}') == 4
    assert '"ttl"' not in plain


async def test_a_call_without_a_profile_is_as_before(wire: Wire) -> None:
    wire.answers = [Answer(SAYS["chat"])] * 2
    async with calling({}, {**ENVIRON, "OPENAI_BASE_URL": wire.url}) as providers:
        await providers.call("openai-chat:tide-3", asking(), ignore)
    table = {"provider": "openai-chat", "model": "tide-3"}
    async with calling({"tide": table}, {**ENVIRON, "OPENAI_BASE_URL": wire.url}) as providers:
        await providers.call("tide", asking(), ignore)

    assert wire.bodies[0] == wire.bodies[1]


FAMILIES = [
    ("anthropic", "us.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8", "claude-opus-4-8"),
    ("anthropic", "anthropic/claude-opus-4.8", "claude-opus-4.8", "claude-opus-4-8"),
    ("openai", "openai/gpt-5", "gpt-5", "gpt-5"),
    ("openai", "ft:gpt-5:team::x1", "gpt-5", "gpt-5"),
    ("openai", "our-deployment", "gpt-5", "gpt-5"),
    ("openai-chat", "our-deployment", "gpt-5", "gpt-5"),
]


@pytest.mark.parametrize(("provider", "name", "family", "plain"), FAMILIES)
async def test_a_gateways_name_is_read_and_one_of_our_own_needs_a_family(
    wire: Wire, provider: str, name: str, family: str, plain: str
) -> None:
    """Thinking, temperature and the limit of output differ by family: the same as under the maker's own name."""
    wanted = {"temperature": 0.7, "thinking_budget_tokens": 2048}
    wire.answers = [Answer(SAYS[APIS[provider]])] * 3
    at = {"provider": provider, "base_url": wire.url, "api_key_env": "TEAM_KEY"}
    profiles = {
        "told": {**at, "model": name, "family": family},
        "own": {**at, "model": plain, "family": plain},
        "untold": {**at, "model": name},
    }
    async with calling(profiles) as providers:
        for each in profiles:
            await providers.call(each, asking(**wanted), ignore)
    told, own, untold = wire.bodies

    assert told.pop("model") == untold.pop("model") == name
    own.pop("model")
    assert told == own
    assert (told == untold) is ("deployment" not in name)
    assert "temperature" not in told


async def test_a_name_that_looks_like_a_family_is_none_where_its_profile_says_so(wire: Wire) -> None:
    like = await received(wire, "openai-chat", model="gpt-5-for-the-harbour")
    other = await received(wire, "openai-chat", model="gpt-5-for-the-harbour", family="other")

    assert like["max_tokens"] > other["max_tokens"] == 8192


@pytest.mark.parametrize(
    ("said", "window"),
    [({}, 128_000), ({"family": "gpt-4.1"}, 1_047_576), ({"family": "gpt-4.1", "context_length": 9_000}, 9_000)],
)
def test_a_window_is_the_profiles_or_that_of_its_family(said: dict[str, Any], window: int) -> None:
    providers = Providers({}, (), read_profiles({"tide": {"provider": "openai", "model": "tide-3", **said}}))

    assert window_of("tide", ModelConfig(), providers.look_up("tide", ModelConfig())) == window


def test_a_profiles_word_counts_before_the_agents_and_the_lower_limit_of_output() -> None:
    said = {"effort": "low", "temperature": 0.1, "context_length": 9_000, "max_output_tokens": 500}
    providers = Providers({}, (), read_profiles({"tide": {"provider": "openai", "model": "tide-3", **said}}))
    wanted = {"reasoning_effort": "high", "temperature": 1, "context_length": 50_000, "max_output_tokens": 300}

    called = providers.look_up("tide", ModelConfig.model_validate(wanted))

    assert called is not None
    assert called.config.reasoning_effort == "low"
    assert (called.config.temperature, called.config.context_length) == (0.1, 9_000)
    assert called.config.max_output_tokens == 300
    assert providers.true_name("tide", ModelConfig()) == "openai:tide-3"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ('{"tide":', "LONGHAUL_MODELS: .*; write \\[models.NAME\\] into longhaul.toml"),
        ("[1]", "LONGHAUL_MODELS: models.body: Input should be a valid dictionary"),
        ({"tide": 3}, "LONGHAUL_MODELS: models.tide"),
        ({"tide": {"provider": "opnai", "model": "x"}}, "models.tide.provider: .* did you mean 'openai'?"),
        ({"tide": {"provider": "openai", "model": "x", "seed": 1}}, "models.tide: seed: OpenAI's Responses API has no"),
        ({"openai": {"provider": "openai", "model": "x"}}, "models: 'openai' can't be the name of a profile"),
    ],
)
def test_an_operators_mistake_is_named(given: Any, sentence: str) -> None:
    with pytest.raises(BadProfiles, match=sentence):
        read_profiles(given)


def test_profiles_are_read_from_tables_and_from_json() -> None:
    tables = {"tide": {"provider": "openai", "model": "tide-3"}}

    assert (
        read_profiles(tables)
        == read_profiles(json.dumps(tables))
        == {"tide": ModelProfile(provider="openai", model="tide-3")}
    )
    assert read_profiles("") == read_profiles(" ") == read_profiles({}) == {}


AGENTS = Path(__file__).parents[3] / "docs" / "agents"
PAGE = (AGENTS / "providers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE + (AGENTS / "models.md").read_text(encoding="utf-8"), re.DOTALL)
OF_PAGE = [tomllib.loads(block).get("models", {}) for block in BLOCKS]
TO_COPY = next(tables for tables in OF_PAGE if "deepseek" in tables)


@pytest.mark.parametrize("tables", OF_PAGE)
def test_each_profile_of_the_page_is_read_and_its_family_is_told(tables: dict[str, Any]) -> None:
    assert [name for name, profile in read_profiles(tables).items() if not tells_family(profile)] == []


@pytest.mark.proves("F6")
def test_each_provider_that_the_page_names_has_a_profile_to_copy() -> None:
    table = PAGE.split("## By provider")[1].split("\n## ")[0]
    named = {name for name in PROVIDERS if re.search(rf"`(provider = \")?{name}[:`\"]", table)}
    profiles = [profile for tables in OF_PAGE for profile in read_profiles(tables).values()]

    assert {"ai:cohere", "ai:vllm", "qwen", "xai", "bedrock"} < named
    assert named <= {profile.provider for profile in profiles}


async def test_the_profiles_to_copy_say_what_counts_without_them() -> None:
    keys = {table["api_key_env"]: "sk-of-the-page" for table in TO_COPY.values()}
    async with calling(TO_COPY, keys) as providers:
        for name, table in TO_COPY.items():
            called = providers.look_up(name, ModelConfig())
            assert called is not None
            assert providers.way(called) == (table["base_url"], table["api_key_env"])
            usual = PROVIDERS[table["provider"]]
            if usual.base_url and table["provider"] != "openai-chat":
                assert (table["base_url"], table["api_key_env"]) == (usual.base_url, usual.key_env)


async def test_a_name_that_stands_for_nothing_is_answered_with_the_nearest() -> None:
    async with calling({"tide": {"provider": "openai", "model": "tide-3"}}) as providers:
        with pytest.raises(
            SetupError, match=r"no model is named 'tied'.*did you mean 'tide'\?; without a profile write"
        ):
            await providers.call("tied", asking(), ignore)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("gpt-6.1-sol", "openai:gpt-6.1-sol"),
        ("kimi-k3", "ai:moonshotai:kimi-k3"),
    ],
)
async def test_a_makers_name_alone_is_answered_with_its_provider(name: str, meant: str) -> None:
    async with calling({}) as providers:
        with pytest.raises(SetupError, match=f"without its provider: did you mean '{meant}'"):
            await providers.call(name, asking(), ignore)
