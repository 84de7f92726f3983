"""Profiles of models: what one may say, by the API that it speaks, and how agents name them."""

from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.activities.models import providers
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS, PROVIDERS
from longhaul.agent.values.spec.profiles import APIS, OF_APIS, ModelProfile, fields_of

OF_ALL = {"provider", "model", "max_output_tokens", "context_length", "prices"}
OF_SERVERS = {"base_url", "api_key_env", "family"}
OF_CLOUDS = {"region", "project", "api_version"}
"""What a cloud needs is tried in tests/activities/models/test_clouds.py."""
WHERE = {
    **{name: {"region": "us-east-1"} for name in ("bedrock", "bedrock-mantle", "ai:bedrock")},
    **{name: {"region": "us-east5", "project": "ours"} for name in ("vertex", "ai:google-vertex")},
    **{name: {"base_url": "https://ours.example"} for name in ("azure", "azure-chat", "foundry")},
}
SAID: dict[str, Any] = {
    "base_url": "https://models.example/v1",
    "api_key_env": "TEAM_KEY",
    "family": "claude-opus-4-8",
    "headers": {"X-Team": "harbour"},
    "betas": ["context-1m-2025-08-07"],
    "extra_body": {"top_k": 7},
    "effort": "high",
    "temperature": 0.0,
    "top_p": 0.9,
    "seed": 0,
    "stop": ["ENOUGH"],
    "verbosity": "low",
    "service_tier": "auto",
    "background": True,
    "cache_ttl": "1h",
    "token_field": "max_tokens",
}
"""Something of each kind that not every API has."""


def profile(provider: str, **said: Any) -> ModelProfile:
    return ModelProfile.model_validate({"provider": provider, "model": "tide-3", **WHERE.get(provider, {}), **said})


def refusal(provider: str, **said: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        profile(provider, **said)
    return what_is_wrong(refused.value)


def test_each_thing_that_a_profile_says_is_tried_here() -> None:
    assert {*ModelProfile.model_fields} == OF_ALL | OF_CLOUDS | {*SAID}
    assert frozenset({*SAID} - OF_SERVERS) == frozenset[str]().union(*OF_APIS.values())


def test_the_providers_are_those_of_the_workers() -> None:
    assert {*APIS} == {*PROVIDERS, *CLOUDS}
    assert {name: provider.api for name, provider in providers.PROVIDERS.items()} == APIS


@pytest.mark.proves("F6")
@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("provider", APIS)
def test_what_an_api_does_not_have_is_refused_by_name(provider: str, name: str) -> None:
    if name in fields_of(provider) or (name in OF_SERVERS and provider != "scripted"):
        assert name in profile(provider, **{name: SAID[name]}).model_dump()
    else:
        assert f"{name}: {providers_api(provider)} has no such thing" in refusal(provider, **{name: SAID[name]})


def providers_api(provider: str) -> str:
    return {
        "messages": "Anthropic's Messages API",
        "responses": "OpenAI's Responses API",
        "chat": "the Chat Completions API",
        "script": "a script",
        "ai": "what is called through pydantic-ai",
    }[APIS[provider]]


def test_a_refusal_says_who_has_it() -> None:
    said = refusal("openai", cache_ttl="1h")

    assert "cache_ttl: OpenAI's Responses API has no such thing, anthropic has it; leave it out" in said


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"provider": "antropic"}, "provider: there is no provider 'antropic'; did you mean 'anthropic'?"),
        ({"model": "  "}, "model: it has to be the server's own name"),
        ({"base_url": "models.example"}, "base_url: it has to be a plain address"),
        ({"base_url": "https://models.example@evil.net"}, "base_url: it has to be a plain address"),
        ({"base_url": "https://models.example/v1?to=evil"}, "base_url: it has to be a plain address"),
        ({"base_url": "file:///etc/passwd"}, "base_url: it has to be a plain address"),
        ({"api_key_env": "LONGHAUL_APPROVAL_KEY"}, "the LONGHAUL_… variables are the worker's own"),
        ({"api_key_env": "longhaul_secret_npm"}, "the LONGHAUL_… variables are the worker's own"),
        ({"family": "claude"}, "family: write the maker's own name with its version"),
        ({"headers": {"Authorization": "Bearer x"}}, "Authorization holds a credential"),
        ({"headers": {"x-api-key": "x"}}, "x-api-key holds a credential"),
        ({"headers": {"Anthropic-Beta": "x"}}, "write it into betas"),
        ({"headers": {"Host": "evil.net"}}, "Host is made with each request"),
        ({"headers": {"X-Team": "a\r\nX-Other: b"}}, "X-Team: a value has at most"),
        ({"headers": {"X Team": "a"}}, "'X Team' is no name of a header"),
        ({"headers": {"X-Team": "a", "x-team": "b"}}, "a header stands there twice"),
        ({"betas": ["a,b"]}, "'a,b' is no name of a beta"),
        ({"extra_body": {"messages": []}}, "messages is made from the session"),
        ({"extra_body": {"max_tokens": 5}}, "max_tokens is made from the session"),
        ({"extra_body": {"top_p": 0.5}}, "top_p: write it as top_p of the profile"),
        ({"extra_body": {"stop_sequences": ["a"]}}, "stop_sequences: write it as stop of the profile"),
        ({"extra_body": {"a": float("nan")}}, "extra_body.a.float: Input should be a finite number"),
        ({"extra_body": {"a": "x" * 20_000}}, "it has 20009 characters of JSON; 20000 are allowed"),
        ({"stop": ["  "]}, "stop: each has to have between one and 200 characters"),
        ({"top_p": 1.5}, "top_p: Input should be less than or equal to 1"),
        ({"service_tier": "standard"}, "has no 'standard'; did you mean 'standard_only'?"),
        ({"cache_ttl": "10m"}, "cache_ttl: Input should be '5m' or '1h'"),
        ({"effort": "hard"}, "effort: Input should be 'none', 'minimal'"),
        ({"temprature": 1}, "temprature: Extra inputs are not permitted"),
        ({"prices": {"input": -1, "output": 1}}, "prices.input: Input should be greater than or equal to 0"),
    ],
)
def test_a_value_that_can_not_be_meant_is_refused(said: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(**{"provider": "anthropic", **said})


def test_a_key_that_stands_where_its_variable_belongs_is_not_repeated() -> None:
    said = refusal("anthropic", api_key_env="sk-ant-very-secret")

    assert "the name of a variable of the worker" in said
    assert "secret" not in said


def test_a_family_is_read_with_dots_and_with_dashes() -> None:
    assert profile("anthropic", family="claude-opus-4.8").told_by == "claude-opus-4-8"
    assert profile("openai", family="gpt-5.1").told_by == "gpt-5.1"
    assert profile("openai").told_by == "tide-3"


TIDE = {"provider": "openai-chat", "model": "tide-3"}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"models": {"openai": TIDE}}, "models: 'openai' can't be the name of a profile"),
        ({"models": {"my tide": TIDE}}, "models: 'my tide' can't be the name of a profile"),
        ({"models": {"a:b": TIDE}}, "models: 'a:b' can't be the name of a profile"),
        ({"models": {"tide": {**TIDE, "cache_ttl": "1h"}}}, "models.tide: cache_ttl: the Chat Completions API"),
        ({"models": {"tide": {**TIDE, "modle": "x"}}}, "models.tide.modle: Extra inputs are not permitted"),
        (
            {"models": {"tide": {**TIDE, "prices": {"input": 1, "output": 2}}}},
            "models.tide.prices: the workers' operator alone says",
        ),
        ({"model_config": {"profiles": {"tide": TIDE}}}, "model_config.profiles: write each profile under"),
        ({"model": "tide", "model_config": {"base_url": "https://a"}}, "model_config.base_url: 'tide' is a profile"),
        ({"model": "tide", "model_config": {"api_key_env": "K"}}, "model_config.api_key_env: 'tide' is a profile"),
    ],
)
def test_an_agent_with_profiles_that_can_not_be_meant_is_refused(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        AgentSpec.model_validate(spec)

    assert sentence in what_is_wrong(refused.value)


def test_a_profile_has_neither_the_address_nor_the_key_of_another_model() -> None:
    config = ModelConfig(base_url="https://models.example", api_key_env="TEAM_KEY")

    for model, own in (("tide", "openai-chat:x"), ("tide", "tide"), ("openai-chat:x", "tide"), ("reef", "tide")):
        held = config.for_model(model, own)
        assert (held.base_url, held.api_key_env) == (None, None)


def test_an_agents_profiles_go_with_its_calls_and_stand_once_in_its_record() -> None:
    spec = AgentSpec.model_validate({"model": "tide", "models": {"tide": TIDE}})
    plain = AgentSpec(model="openai:gpt-4.1")

    assert spec.call_config.profiles == spec.models == {"tide": profile("openai-chat")}
    assert spec.model_dump(mode="json")["models"] == {"tide": TIDE}
    assert "profiles" not in spec.model_dump(mode="json")["model_config"]
    assert plain.call_config is plain.llm_config
    assert AgentSpec.model_validate(spec.model_dump()) == spec
