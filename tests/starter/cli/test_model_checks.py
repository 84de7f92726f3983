"""What the doctor says of profiles of models: each that is wrong is named, and what to do."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.cli.doctor.worker_checks import on_the_models
from longhaul.starter.settings import Settings

HEARD: list[bytes] = []


@pytest.fixture
async def server() -> AsyncIterator[str]:
    """Somewhere that answers, and keeps what it hears."""
    HEARD.clear()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        HEARD.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as made:
        yield "http://{}:{}".format(*made.sockets[0].getsockname())


async def checks(models: Any, model_keys: str = "") -> dict[str, Check]:
    settings = Settings(models=models, model_keys=model_keys)
    return {check.name: check async for check in on_the_models(settings)}


@pytest.mark.proves("F6")
async def test_each_profile_is_looked_at_whatever_is_wrong_with_others(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "sk-team-moss")
    monkeypatch.delenv("LOST_KEY", raising=False)
    at = {"provider": "anthropic", "model": "claude-opus-4-8", "base_url": server, "api_key_env": "TEAM_KEY"}
    found = await checks(
        {
            "right": at,
            "keyless": {"provider": "openai-chat", "model": "qwen3", "base_url": server},
            "misspelt": {**at, "famly": "claude-opus-4-8"},
            "wrong": {**at, "seed": 3},
            "lost": {**at, "api_key_env": "LOST_KEY"},
            "deaf": {**at, "base_url": "http://127.0.0.1:9"},
            "strange": {**at, "model": "our-deployment"},
            "said": {**at, "model": "our-deployment", "family": "other"},
            "homeless": {"provider": "ai:azure", "model": "gpt-5.1", "api_key_env": "TEAM_KEY"},
            "played": {"provider": "scripted", "model": "play.jsonl"},
            "openai": at,
        }
    )

    assert {name.removeprefix("model ") for name, check in found.items() if check.ok} == {
        *("right", "keyless", "said", "played")
    }
    about = {name.removeprefix("model "): (check.detail, check.fix) for name, check in found.items()}
    for name, says, fix in (
        ("right", f"anthropic:claude-opus-4-8 at {server}, TEAM_KEY is set", ""),
        ("keyless", f"openai-chat:qwen3 at {server}, no key", ""),
        ("misspelt", "famly", "fix [models.misspelt] in longhaul.toml"),
        ("wrong", "seed: Anthropic's Messages API has no such thing", "fix [models.wrong]"),
        ("lost", "its key is missing, LOST_KEY is not set here", "export LOST_KEY=…"),
        ("deaf", "the address does not answer (ConnectError)", "fix [models.deaf]"),
        ("strange", "its family is unknown", 'write family = "…", or "other", into [models.strange]'),
        ("homeless", "The base_url of ai:azure, which has none itself", "fix [models.homeless]"),
        ("openai", "'openai' can't be the name of a profile", "fix [models.openai]"),
    ):
        assert says in about[name][0], name
        assert fix in about[name][1], name
    assert HEARD
    assert not any(b"sk-team-moss" in head for head in HEARD)


@pytest.mark.parametrize(
    ("models", "keys", "says"),
    [
        ('{"tide":', "", "write [models.NAME] into longhaul.toml"),
        ("[1]", "", "LONGHAUL_MODELS: models.body"),
        ("{}", "nonsense", "LONGHAUL_MODEL_KEYS: 'nonsense' is no pair"),
    ],
)
async def test_what_can_not_be_read_at_all_is_one_check(models: str, keys: str, says: str) -> None:
    (check,) = (await checks(models, keys)).values()

    assert not check.ok
    assert says in check.detail


async def test_profiles_in_json_are_looked_at_and_without_any_nothing_is_said(server: str) -> None:
    said = {"tide": {"provider": "openai-chat", "model": "qwen3", "base_url": server}}

    assert {name: check.ok for name, check in (await checks(json.dumps(said))).items()} == {"model tide": True}
    assert await checks("") == await checks({}) == {}
