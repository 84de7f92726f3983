"""Which keys of profiles reach which servers: each its own alone."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.providers import PROVIDERS
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import CLOUDS
from longhaul.agent.values.spec.profiles import APIS, fields_of
from tests.activities.models.sample_requests import KEYS
from tests.activities.models.test_profiles import ENVIRON, asking, calling
from tests.activities.models.test_providers import ignore
from tests.activities.models.wire import Answer, Wire, on_a_port, says_of

SPEAKING = [name for name in APIS if name not in ("scripted", *CLOUDS)]
"""How clouds are signed in to is in test_clouds.py."""
HOSTED = {"ai:bedrock": {"region": "us-east-1"}, "ai:google-vertex": {"region": "us-east5", "project": "ours"}}
"""Of them, for the two hundred, those that go by a key as others do."""
LISTED, LAST, USUAL = range(3), 4, "sk-usual-gorse"
"""Of five servers: which the operator lists for agents' own profiles, and which is the provider's own, with its key."""


@pytest.mark.parametrize("provider", SPEAKING)
async def test_an_agents_own_profile_is_no_way_around_the_operators_list(wire: Wire, provider: str) -> None:
    for key_env in (None, *ENVIRON):
        table = {"provider": provider, "model": "x", "base_url": wire.url} | (
            {"api_key_env": key_env} if key_env else {}
        )
        spec = AgentSpec.model_validate({"model": "reef", "models": {"reef": table}})
        # The operator's own profile goes there with a key, and the list has another pair: neither is the agent's.
        of_operator = {"provider": provider, "model": "x", "base_url": wire.url, "api_key_env": "TEAM_KEY"}
        async with calling({"tide": of_operator}, listed="OTHER_KEY=https://models.example") as providers:
            with pytest.raises(SetupError, match=f"does not send .* to '{wire.url}'"):
                providers.check(spec)
            with pytest.raises(SetupError, match=f"does not send .* to '{wire.url}'"):
                await providers.call("reef", ModelRequest("", "", [], (), spec.call_config), ignore)

    assert not wire.heads


async def test_an_agents_own_profile_uses_a_pair_that_is_listed(wire: Wire) -> None:
    table = {"provider": "anthropic", "model": "x", "base_url": f"{wire.url}/v1", "api_key_env": "TEAM_KEY"}
    spec = AgentSpec.model_validate({"model": "reef", "models": {"reef": table}})
    wire.answers = [Answer(says_of("anthropic", "Aye."))]
    async with calling({}, listed=f"TEAM_KEY={wire.url}") as providers:
        providers.check(spec)
        request = ModelRequest("", "", [UserMsg("user", "Hi")], (), spec.call_config.for_model("reef", "reef"))
        await providers.call("reef", request, ignore)

    assert "sk-team-moss" in wire.heads[0]


@pytest.mark.parametrize("provider", SPEAKING)
async def test_an_operators_profile_of_another_address_without_a_key_sends_none(wire: Wire, provider: str) -> None:
    wire.answers = [Answer(says_of(provider, "Aye."))]
    async with calling({"tide": {"provider": provider, "model": "x/y", "base_url": wire.url}}) as providers:
        await providers.call("tide", asking(), ignore)

    assert not any(key in wire.heads[0] for key in ENVIRON.values())


@pytest.mark.parametrize("provider", SPEAKING)
async def test_another_key_at_the_providers_own_address_goes_without_what_belongs_to_the_usual_one(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    for variable in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.setenv(variable, "X-Gate: ambient-gate")
    monkeypatch.setenv("OPENAI_ORG_ID", "ambient-org")
    wire.answers = [Answer(says_of(provider, "Aye."))]
    variable = PROVIDERS[provider].base_url_env
    table = {"provider": provider, "model": "x/y", "api_key_env": "TEAM_KEY"}
    async with calling({"tide": table}, {**ENVIRON, variable: wire.url}) as providers:
        await providers.call("tide", asking(), ignore)

    assert "sk-team-moss" in wire.heads[0]
    assert "ambient" not in wire.heads[0]
    assert not any(key in wire.heads[0] for key in KEYS.values())


@pytest.mark.proves("F6")
async def test_of_two_hundred_profiles_each_server_hears_its_own_key_alone() -> None:
    """The operator's and an agent's own, some with another server's key, full names beside them, and fallbacks."""
    async with _servers() as servers:
        drawn = _Drawn(random.Random(20_261_123), servers)  # noqa: S311  no secret
        environ = {**drawn.keys, "OPENAI_API_KEY": USUAL, "OPENAI_BASE_URL": servers[LAST].url}
        listed = ",".join(f"KEY_{place}={servers[place].url}" for place in LISTED)
        sent, refused = [0] * len(servers), 0
        async with calling(drawn.of_operator, environ, listed) as providers:
            for spec, model in drawn.calls():
                place, provider = drawn.home(model)
                held = spec.call_config.for_model(model, spec.model)
                request = ModelRequest("", "", [UserMsg("user", "Hi")], (), held)
                if drawn.is_stray(model):
                    refused += 1
                    with pytest.raises(SetupError, match="does not send KEY_"):
                        await providers.call(model, request, ignore)
                    continue
                sent[place] += 1
                servers[place].answers.append(Answer(says_of(provider, "Aye.")))
                await providers.call(model, request, ignore)

    every = {*drawn.keys.values(), USUAL}
    heard = [[{key for key in every if key in head} for head in wire.heads] for wire in servers]
    for place, keys_of_each in enumerate(heard):
        own = [{drawn.keys[f"KEY_{place}"]}, *([{USUAL}] if place == LAST else [])]
        assert [keys for keys in keys_of_each if keys not in own] == []
        assert len(keys_of_each) == sent[place] > 30
    assert [{USUAL}] == [*{frozenset(keys) for keys in heard[LAST]} - {frozenset({drawn.keys[f"KEY_{LAST}"]})}]
    assert refused > 20


class _Drawn:
    """Profiles of chance, and who asks for which."""

    def __init__(self, chance: random.Random, servers: list[Wire]) -> None:
        self._chance, self._servers = chance, servers
        self.keys = {f"KEY_{place}": f"sk-of-server-{place}-moss" for place in range(len(servers))}
        self.tables = {f"p{number}": self._table() for number in range(200)}
        self.of_agent = {name: self.tables[name] for name in chance.sample([*self.tables], 50)}
        self.of_operator = {name: table for name, table in self.tables.items() if name not in self.of_agent}
        for name in chance.sample([*self.of_agent], 12):
            other = f"KEY_{(self.home(name)[0] + 1) % len(servers)}"
            self.of_agent[name] = self.tables[name] = {**self.tables[name], "api_key_env": other}

    def _table(self) -> dict[str, Any]:
        place, chance = self._chance.randrange(len(self._servers)), self._chance
        url = self._servers[place].url + chance.choice(["", "/v1"])
        provider = chance.choice([*SPEAKING, *HOSTED])
        said: dict[str, Any] = {"provider": provider, "model": f"m/{chance.randrange(9)}", **HOSTED.get(provider, {})}
        if "headers" in fields_of(provider):
            said["headers"] = {"X-Number": str(chance.randrange(9))}
        return {**said, "base_url": url, "api_key_env": f"KEY_{place}"}

    def calls(self) -> Iterator[tuple[AgentSpec, str]]:
        """Each profile as an agent's model, with a fallback; of each agent both are called."""
        for name in self.tables:
            fallback = self._chance.choice([*self.tables, *["openai-chat:usual"] * 20])
            config = {"fallback_model": fallback}
            spec = AgentSpec.model_validate({"model": name, "models": self.of_agent, "model_config": config})
            yield spec, name
            yield spec, fallback

    def home(self, model: str) -> tuple[int, str]:
        """Which server it is of, and which provider."""
        if model not in self.tables:
            return LAST, "openai-chat"
        url = self.tables[model]["base_url"]
        place = next(place for place, wire in enumerate(self._servers) if url.startswith(wire.url))
        return place, self.tables[model]["provider"]

    def is_stray(self, model: str) -> bool:
        """An agent's own with another server's key, or at a server that the operator has not listed."""
        place = self.home(model)[0]
        wrong = model in self.of_agent and self.of_agent[model]["api_key_env"] != f"KEY_{place}"
        return wrong or (model in self.of_agent and place not in LISTED)


@asynccontextmanager
async def _servers() -> AsyncIterator[list[Wire]]:
    async with on_a_port() as one, on_a_port() as two, on_a_port() as three, on_a_port() as four, on_a_port() as five:
        yield [one, two, three, four, five]
