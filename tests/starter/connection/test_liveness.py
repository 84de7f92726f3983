"""Whose server it is says how closely calls are watched where nobody has said it."""

from typing import Any

import pytest
from pydantic import ValidationError
from temporalio.client import Client
from temporalio.service import TLSConfig

from longhaul.starter.connection.query_retries import ask_seconds, liveness_of
from longhaul.starter.settings import Settings

OURS: list[dict[str, Any]] = [{}, {"tls": False}]
HIRED: list[dict[str, Any]] = [
    {"tls": True},
    {"tls": TLSConfig(client_cert=b"cert", client_private_key=b"key")},
    {"api_key": "k-1"},
    {"api_key": "k-1", "tls": True},
]


async def client_of(config: dict[str, Any]) -> Client:
    return await Client.connect("127.0.0.1:1", lazy=True, **config)


@pytest.mark.parametrize("config", OURS)
async def test_on_a_server_of_ones_own_a_death_is_noticed_fast(config: dict[str, Any]) -> None:
    client = await client_of(config)

    assert liveness_of(Settings(), client) == 2
    assert ask_seconds(Settings(), client) == 15


@pytest.mark.parametrize("config", HIRED)
async def test_on_a_server_that_is_paid_for_it_is_cheap(config: dict[str, Any]) -> None:
    client = await client_of(config)

    assert liveness_of(Settings(), client) == 30
    assert ask_seconds(Settings(), client) == 90


@pytest.mark.parametrize("config", [*OURS, *HIRED])
@pytest.mark.parametrize(
    ("said", "liveness", "asks"), [("fast", 2, 15), ("cheap", 30, 90), ("4.5", 4.5, 15), ("600", 600, 90)]
)
async def test_what_was_said_holds_everywhere(
    config: dict[str, Any], said: str, liveness: float, asks: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_LIVENESS", said)
    client = await client_of(config)

    assert liveness_of(Settings(), client) == liveness
    assert ask_seconds(Settings(), client) == asks


@pytest.mark.parametrize("said", ["slow", "0.9", "601", "-2", "nan", "inf", "2 s", "Fast"])
def test_anything_else_is_refused_by_name(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGHAUL_LIVENESS", said)

    with pytest.raises(ValidationError, match="liveness"):
        Settings()
