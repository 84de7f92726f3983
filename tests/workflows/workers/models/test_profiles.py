"""Profiles of models in sessions on a real server: those of the workers' longhaul.toml, and an agent's own."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.models.profiles import read_key_places, read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent, load_agent
from longhaul.starter.client.wire import Refused
from tests.activities.models.sample_requests import KEYS
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.limits import SURE_SECONDS, usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import until
from tests.workflows.roomy import failure_of_replay
from tests.workflows.workers.models.test_models import refusing

pytestmark = pytest.mark.server

TEAM, OTHER = "sk-team-moss", "sk-other-gorse"
ENVIRON = {**KEYS, "TEAM_KEY": TEAM, "OTHER_KEY": OTHER}
TOLD_SECONDS = 5.0


def keys_in(wire: Wire) -> list[set[str]]:
    return [{key for key in ENVIRON.values() if key in head} for head in wire.heads]


async def offering(stage: Stage, profiles: Mapping[str, Any], listed: str = "", **environ: str) -> None:
    """A worker whose operator has written these profiles."""
    stage.providers = Providers({**ENVIRON, **environ}, read_key_places(listed), read_profiles(profiles))
    await stage.providers.warm()  # on a busy machine an SDK's import outlasts the heartbeats of an attempt
    await stage.rest.enter_async_context(stage.another_worker())


def at(wire: Wire, provider: str, key: str = "TEAM_KEY", **said: Any) -> dict[str, Any]:
    return {"provider": provider, "model": "tide-3", "base_url": wire.url, "api_key_env": key, **said}


async def test_a_profile_of_the_operator_is_called_by_its_name(unserved: Stage, wire: Wire) -> None:
    wire.answers = [Answer(claude_says("Fair."))] * 3
    await offering(unserved, {"tide": at(wire, "anthropic", cache_ttl="1h", context_length=9_000)})

    session = unserved.session(model="tide", tools=["fetch"])
    done = await session.reply("Fair wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair.")
    assert all(keys == {TEAM} for keys in keys_in(wire))
    assert wire.bodies[0]["model"] == "tide-3"
    assert '"ttl": "1h"' in json.dumps(wire.bodies[0])
    assert (await session.status()).context_length == 9_000


@pytest.mark.proves("F6")
@pytest.mark.parametrize("first", ["operator", "agent"])
@pytest.mark.parametrize("then", ["operator", "agent", "full name"])
async def test_a_fallback_is_called_at_its_own_address_with_its_own_key(
    unserved: Stage, wire: Wire, other_wire: Wire, first: str, then: str
) -> None:
    wire.answers, other_wire.answers = [refusing(401)] * 3, [Answer(response_says("Aye."))] * 3
    tables = {"tide": (first, at(wire, "anthropic")), "reef": (then, at(other_wire, "openai", "OTHER_KEY"))}
    by = {
        who: {name: table for name, (whose, table) in tables.items() if whose == who} for who in ("operator", "agent")
    }
    listed = f"TEAM_KEY={wire.url}, OTHER_KEY={other_wire.url}"
    await offering(unserved, by["operator"], listed, OPENAI_BASE_URL=other_wire.url)
    named = then == "full name"
    fallback, key = ("openai:gpt-4.1", KEYS["OPENAI_API_KEY"]) if named else ("reef", OTHER)

    spec: dict[str, Any] = {"models": by["agent"]} if by["agent"] else {}
    session = unserved.session(model="tide", tools=["fetch"], model_config={"fallback_model": fallback}, **spec)
    done = await session.reply("Fair wind?")

    assert (done.error, done.get_text_content()) == (None, "Aye.")
    # On a busy machine the first use of an SDK outlasts the heartbeats of an attempt, which is then made again.
    assert [{*map(frozenset, keys_in(each))} for each in (wire, other_wire)] == [
        {frozenset({TEAM})},
        {frozenset({key})},
    ]


@pytest.mark.alone
async def test_a_name_that_no_worker_has_is_told_within_seconds(unserved: Stage, wire: Wire) -> None:
    await offering(unserved, {"tide": at(wire, "anthropic")})
    for spec in ({"model": "tied"}, {"model_config": {"fallback_model": "tied"}}, _judged_by("tied")):
        session = unserved.session({"text": "Aye."}, **{"tools": ["fetch"], **spec})
        began = time.monotonic()
        await session.submit("Fair wind?")

        async def lacks() -> bool:
            return (await session.status()).lacking != ""  # noqa: B023  asked before the next one begins

        await until(lacks)
        said = (await session.status()).lacking
        assert time.monotonic() - began < usual(TOLD_SECONDS)
        assert "no model is named 'tied'" in said
        assert "did you mean 'tide'?" in said
        await session.interrupt()

    assert not wire.heads


def _judged_by(model: str) -> dict[str, Any]:
    return {"permission": {"mode": "bypass", "analyzers": ["model"], "analyzer_model": model}}


async def test_a_running_session_is_given_another_profile(unserved: Stage, wire: Wire, other_wire: Wire) -> None:
    wire.answers, other_wire.answers = [Answer(claude_says("One."))] * 3, [Answer(chat_says("Two."))] * 3
    await offering(unserved, {"tide": at(wire, "anthropic"), "reef": at(other_wire, "openai-chat", "OTHER_KEY")})
    session = unserved.session(model="tide", tools=["fetch"])

    await session.reply("Begin")
    await session.configure(model="reef")
    done = await session.reply("Go on")

    assert done.get_text_content() == "Two."
    assert all(keys == {TEAM} for keys in keys_in(wire))
    assert all(keys == {OTHER} for keys in keys_in(other_wire))


@pytest.mark.proves("F6")
async def test_a_running_session_is_called_otherwise(unserved: Stage, wire: Wire, other_wire: Wire) -> None:
    wire.answers, other_wire.answers = [Answer(claude_says("One."))] * 3, [Answer(chat_says("Two."))] * 3
    await offering(unserved, {"tide": at(wire, "anthropic"), "reef": at(other_wire, "openai-chat", "OTHER_KEY")})
    session = unserved.session(model="tide", tools=["fetch"], model_config={"max_output_tokens": 900, "temperature": 1})

    await session.reply("Begin")
    await session.configure(model_config={"max_output_tokens": 70, "temperature": None, "fallback_model": "reef"})
    await session.reply("Go on")
    wire.answers = [Answer(b"{}", 404)]
    done = await session.reply("And now?")

    told = [(body["max_tokens"], body.get("temperature")) for body in wire.bodies]
    assert (told[0], *told[-2:]) == ((900, 1), (70, None), (70, None))
    assert done.get_text_content() == "Two."
    assert (await session.settings()).llm_config.fallback_model == "reef"
    assert await failure_of_replay(unserved, session) is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_output_tokens": 0}, "model_config.max_output_tokens"),
        ({"reasoning_effrt": "low"}, "model_config.reasoning_effrt"),
        ({"base_url": "https://gateway.example"}, "model_config.base_url: 'tide' is a profile and has its own"),
        ({"profiles": {"x": {"provider": "openai", "model": "y"}}}, "write each profile under"),
    ],
)
async def test_how_a_session_can_not_be_called_is_refused(
    unserved: Stage, wire: Wire, given: dict[str, Any], told: str
) -> None:
    await offering(unserved, {"tide": at(wire, "anthropic")})
    session = unserved.session(model="tide", tools=["fetch"])

    with pytest.raises(Refused, match=told):
        await session.configure(model_config=given)


async def test_an_agents_own_profile_that_the_operator_did_not_list_is_refused(unserved: Stage, wire: Wire) -> None:
    await offering(unserved, {"tide": at(wire, "anthropic")})

    done = await unserved.session(model="reef", tools=["fetch"], models={"reef": at(wire, "anthropic")}).reply("Hi")

    assert done.error is not None
    assert f"does not send TEAM_KEY to '{wire.url}'" in done.error.message
    assert not wire.heads


async def test_a_worker_reads_its_operators_longhaul_toml(unserved: Stage, wire: Wire) -> None:
    wire.answers = [Answer(claude_says("Fair."))] * 3  # the worker's first attempt may be cut short by an import
    config = unserved.folder / "config" / "longhaul"
    config.mkdir(parents=True)
    (config / "longhaul.toml").write_text(
        f"""
        [models.tide]
        provider = "anthropic"
        model = "tide-3"
        base_url = "{wire.url}"
        api_key_env = "TEAM_KEY"
        headers = {{ X-Team = "harbour" }}
        top_p = 0.25
        """
    )
    settings = WorkerSettings(
        address=unserved.address,
        task_queue=unserved.name,
        directory=unserved.settings.data_dir,
        tools="tests.workflows.tools",
        further={"XDG_CONFIG_HOME": str(unserved.folder / "config"), "TEAM_KEY": TEAM},
    )

    async with worker(settings):
        done = await unserved.session(model="tide", tools=["fetch"]).reply("Fair wind?")

    assert (done.error, done.get_text_content()) == (None, "Fair.")
    assert all(keys == {TEAM} for keys in keys_in(wire))
    assert wire.bodies[0]["top_p"] == 0.25
    assert "x-team: harbour\r\n" in wire.heads[0].lower()


def test_a_worker_with_a_profile_that_can_not_be_meant_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "longhaul").mkdir()
    (tmp_path / "longhaul" / "longhaul.toml").write_text('[models.tide]\nprovider = "opnai"\nmodel = "x"\n')

    further = {"XDG_CONFIG_HOME": str(tmp_path)}
    told = WorkerSettings(address="127.0.0.1:1", task_queue="nobody", directory=tmp_path, tools="", further=further)

    ended = subprocess.run(
        [sys.executable, "-m", "longhaul.worker"],
        env=environment(told),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SURE_SECONDS,
        check=False,
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith(
        "longhaul worker: LONGHAUL_MODELS: models.tide.provider: there is no provider 'opnai'"
    )
    assert "did you mean 'openai'?" in ended.stderr


AGENT = """
model = "tide"
tools = ["Read"]

[models.tide]
provider = "anthropic"
model = "us.anthropic.claude-opus-4-8-v1:0"
family = "claude-opus-4-8"
cache_ttl = "1h"
"""


def test_an_agent_file_has_profiles_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "sailor.toml"
    file.write_text(AGENT)

    spec = load_agent(file)

    assert isinstance(spec, AgentSpec)
    assert (spec.model, spec.models["tide"].cache_ttl) == ("tide", "1h")
    file.write_text(AGENT.replace('"anthropic"', '"openai"', 1))
    with pytest.raises(BadAgent, match=r"sailor\.toml: models\.tide: cache_ttl: OpenAI's Responses API has"):
        load_agent(file)
