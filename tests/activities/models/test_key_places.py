"""Which key goes to which address: each kind of provider with its real SDK, and listeners that keep what they hear."""

from collections.abc import AsyncIterator
from typing import get_args, get_type_hints

import pytest

from longhaul.activities.models.apis.vendors import VENDORS
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.profiles import BadKeyPlaces, KeyPlace, is_within, read_key_places
from longhaul.activities.models.providers import PROVIDERS, Provider, Providers
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS
from tests.activities.models.test_providers import ask, ignore
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, on_a_port, response_says, says_of

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-lilac",
    "OPENAI_API_KEY": "sk-proj-heather",
    "DASHSCOPE_API_KEY": "sk-dash-fern",
    "TEAM_KEY": "sk-team-moss",
    "LONGHAUL_APPROVAL_KEY": "a1:signs-everything",
    "LONGHAUL_SECRET_NPM_TOKEN": "npm-thistle",
    "PATH": "/usr/bin:/bin",
}
MODELS = {
    "anthropic": ("anthropic:claude-haiku-4-5", claude_says("Hello")),
    "openai": ("openai:gpt-4.1", response_says("Hello")),
    "openai-chat": ("openai-chat:llama", chat_says("Hello")),
    "qwen": ("qwen:qwen-plus", chat_says("Hello")),
    "xai": ("xai:grok-4.7", response_says("Hello")),
    **{
        f"ai:{vendor}": (f"ai:{vendor}:some/model", says_of(f"ai:{vendor}", "Hello"))
        for vendor in VENDORS
        if f"ai:{vendor}" not in CLOUDS
    },
}
AMBIENT = {
    "ANTHROPIC_AUTH_TOKEN": "ambient-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Gate: ambient-gate\nAuthorization: ambient-basic",
    "OPENAI_CUSTOM_HEADERS": "X-Gate: ambient-gate\nAuthorization: ambient-basic",
    "GROQ_CUSTOM_HEADERS": "X-Gate: ambient-gate\nAuthorization: ambient-basic",
    "GOOGLE_API_KEY": "ambient-google",
    "GEMINI_API_KEY": "ambient-gemini",
    "GOOGLE_CLOUD_PROJECT": "ambient-project",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "MISTRAL_API_KEY": "ambient-mistral",
    "GROQ_API_KEY": "ambient-groq",
    "OPENROUTER_APP_URL": "https://ambient.example",
    "OPENROUTER_APP_TITLE": "ambient-title",
    "OPENAI_ORG_ID": "ambient-org",
    "OPENAI_PROJECT_ID": "ambient-project",
    "OPENAI_ADMIN_KEY": "ambient-admin",
}


@pytest.fixture
async def stranger() -> AsyncIterator[Wire]:
    """A port of this machine that anybody may have opened."""
    async with on_a_port() as told:
        yield told


def key_line(kind: str) -> str:
    return "x-goog-api-key: " if kind == "ai:google" else "authorization: bearer "


def test_each_kind_of_provider_is_tried_here() -> None:
    assert set(MODELS) == set(PROVIDERS) - {"scripted", *CLOUDS}
    assert set(get_args(get_type_hints(Provider)["api"])) == {"messages", "responses", "chat", "script", "ai"}


@pytest.mark.parametrize("key_env", [None, *KEYS])
@pytest.mark.parametrize("kind", MODELS)
async def test_no_variable_of_the_worker_is_sent_to_a_port_that_its_operator_did_not_list(
    stranger: Wire, kind: str, key_env: str | None
) -> None:
    model, _ = MODELS[kind]
    config = {"base_url": stranger.url} | ({"api_key_env": key_env} if key_env else {})
    providers = Providers(KEYS, read_key_places("TEAM_KEY=https://models.example/v1"))
    spec = AgentSpec(model=model, model_config=ModelConfig.model_validate(config))

    with pytest.raises(
        SetupError, match=rf"does not send {key_env or PROVIDERS[kind].key_env} to '{stranger.url}'"
    ) as at_call:
        await providers.call(model, ask(**config), ignore)
    with pytest.raises(SetupError, match="does not send") as at_start:
        providers.check(spec)

    assert str(at_call.value) == str(at_start.value)
    assert judge(at_call.value).kind == "never"
    assert not stranger.heads
    assert not any(key in str(at_call.value) for key in KEYS.values())


@pytest.mark.parametrize("kind", MODELS)
async def test_a_listed_pair_sends_that_key_and_nothing_else_of_the_environment(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    model, says = MODELS[kind]
    wire.answers.append(Answer(says))
    providers = Providers(KEYS, read_key_places(f"TEAM_KEY={wire.url}"))

    await providers.call(model, ask(base_url=f"{wire.url}/v1", api_key_env="TEAM_KEY"), ignore)
    await providers.close()

    assert f"{key_line(kind)}sk-team-moss\r\n" in wire.heads[0].lower()
    assert "ambient" not in wire.heads[0]
    assert not any(key in wire.heads[0] for name, key in KEYS.items() if name != "TEAM_KEY")


@pytest.mark.parametrize("kind", MODELS)
async def test_a_server_that_is_listed_without_a_key_hears_none(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    model, says = MODELS[kind]
    wire.answers.append(Answer(says))
    providers = Providers(KEYS, read_key_places(f"none={wire.url}"))

    reply = await providers.call(model, ask(base_url=wire.url), ignore)
    await providers.close()

    assert reply.content
    assert f"{key_line(kind)}none\r\n" in wire.heads[0].lower()
    assert "ambient" not in wire.heads[0]
    assert not any(key in wire.heads[0] for key in KEYS.values())
    with pytest.raises(SetupError, match="does not send TEAM_KEY"):
        await providers.call(model, ask(base_url=wire.url, api_key_env="TEAM_KEY"), ignore)


@pytest.mark.parametrize("kind", MODELS)
async def test_a_variable_of_another_provider_does_not_go_to_a_providers_own_address(wire: Wire, kind: str) -> None:
    provider = PROVIDERS[kind]
    other = next(key for key in KEYS if key != provider.key_env)
    providers = Providers({**KEYS, provider.base_url_env: wire.url})

    with pytest.raises(SetupError, match=f"does not send {other} to"):
        await providers.call(MODELS[kind][0], ask(api_key_env=other), ignore)

    assert not wire.heads


@pytest.mark.parametrize(
    ("address", "listed", "within"),
    [
        ("https://models.example/v1", "https://models.example/v1", True),
        ("https://models.example/v1/", "https://models.example/v1", True),
        ("https://MODELS.example:443/v1/team", "https://models.example/v1", True),
        ("https://models.example/v1", "https://models.example", True),
        ("https://models.example", "https://models.example/v1", False),
        ("https://models.example/v10", "https://models.example/v1", False),
        ("https://models.example/v1/../other", "https://models.example/v1", False),
        ("https://models.example/v1/%2e%2e/other", "https://models.example/v1", False),
        ("https://models.example/v1\\@evil.example", "https://models.example/v1", False),
        ("https://models.example.evil.net/v1", "https://models.example", False),
        ("https://models.example@evil.net/v1", "https://models.example", False),
        ("https://models.example#@evil.net", "https://models.example", False),
        ("https://models.example?x", "https://models.example", False),
        ("http://models.example/v1", "https://models.example/v1", False),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1", False),
        ("http://localhost:8000", "http://127.0.0.1:8000", False),
        ("http://127.0.0.1:99999", "http://127.0.0.1:99999", False),
        ("https://modelş.example", "https://modelş.example", False),
        ("file:///etc/passwd", "file:///etc", False),
    ],
)
def test_an_address_is_listed_when_it_is_or_lies_below_a_listed_one(address: str, listed: str, within: bool) -> None:
    assert is_within(address, listed) is within


def test_the_list_is_read_as_pairs() -> None:
    assert read_key_places(" TEAM_KEY=https://models.example/v1 , none=http://127.0.0.1:8000,") == (
        KeyPlace("TEAM_KEY", "https://models.example/v1"),
        KeyPlace("none", "http://127.0.0.1:8000"),
    )
    assert read_key_places("") == ()


@pytest.mark.parametrize(
    "setting",
    ["https://models.example", "TEAM_KEY", "TEAM KEY=https://a", "K=models.example", "K=https://", "=http://a"],
)
def test_an_entry_that_is_no_pair_is_refused_with_the_form(setting: str) -> None:
    with pytest.raises(BadKeyPlaces, match="is no pair of a variable and an address; write NAME=https://HOST/PATH"):
        read_key_places(setting)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"model": "openai:a", "model_config": {"base_url": "models.example"}}, "'models.example' is no address"),
        (
            {"model": "openai:a", "model_config": {"fallback_model": "openai-chat:b", "api_key_env": "PATH"}},
            "does not send PATH to 'https://api.openai.com/v1'",
        ),
    ],
)
def test_each_model_that_an_agent_names_is_looked_at_before_its_first_reply(
    spec: dict[str, object], sentence: str
) -> None:
    with pytest.raises(SetupError, match=sentence):
        Providers(KEYS).check(AgentSpec.model_validate(spec))


def test_models_beside_an_agents_own_have_neither_its_address_nor_its_key() -> None:
    config = {"base_url": "https://models.example", "api_key_env": "TEAM_KEY", "fallback_model": "openai:gpt-4.1"}
    spec = AgentSpec(
        model="anthropic:c",
        model_config=ModelConfig.model_validate(config),
        permission=PermissionContext(analyzer_model="qwen:qwen-plus"),
    )

    Providers(KEYS, read_key_places("TEAM_KEY=https://models.example")).check(spec)
    for model, address in (("openai:g", None), ("qwen:q", None), ("anthropic:d", "https://models.example")):
        assert spec.llm_config.for_model(model, spec.model).base_url == address
