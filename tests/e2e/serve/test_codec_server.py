"""`longhaul codec serve`: what Temporal's own command line, and a page of its Web UI, read of encrypted sessions."""

import asyncio
import base64
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.client import Client

from longhaul import AgentSpec
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.testing import AgentEnvironment, scripted, settings_for, working
from tests.e2e.serving import TOKENS, Serving, serving, tokens_file
from tests.workflows.operations import until

pytestmark = pytest.mark.server

WORD = "Zinnober9183"
WEB_UI = "http://temporal.example:8233"


@pytest.fixture
async def locked(temporal_server: DevServer, tmp_path: Path) -> AsyncIterator[AgentEnvironment]:
    """Encrypts, within the codec of a setting."""
    key = f"first:{base64.b64encode(os.urandom(32)).decode()}"
    settings = settings_for(tmp_path, master_key=SecretStr(key))
    client = await connect(temporal_server.address, settings=settings)
    env = AgentEnvironment(client, settings)
    async with working(client, settings):
        yield env
        await env.end_sessions()
    await let_go(client)


@pytest.fixture
def of_codec(locked: AgentEnvironment, tmp_path: Path, cli_environment: dict[str, str]) -> dict[str, str]:
    """The variables of its process."""
    return cli_environment | {
        "LONGHAUL_DATA_DIR": str(locked.settings.data_dir),
        "LONGHAUL_MASTER_KEY": locked.settings.master_key.get_secret_value(),
        "LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)),
        "LONGHAUL_SERVE_ORIGINS": WEB_UI,
    }


@pytest.fixture
async def codec(tmp_path: Path, of_codec: dict[str, str]) -> AsyncIterator[Serving]:
    async with serving(tmp_path, of_codec, command=("codec", "serve")) as server:
        yield server


async def said(locked: AgentEnvironment, user: str) -> Session:
    """A session of that user, in which the word was said."""
    session = locked.session(AgentSpec(name="lamp", model=scripted([f"{WORD}, indeed."])), user=user)
    await session.reply(f"Say {WORD}")
    await until(lambda: is_listed(locked, session, user))
    return session


async def is_listed(locked: AgentEnvironment, session: Session, user: str) -> bool:
    return session.workflow_id in [card.workflow_id for card in await locked.app.sessions(user=user, closed=True)]


async def shown(locked: AgentEnvironment, session: Session, temporal_cli: Path, *more: str) -> str:
    """What `temporal workflow show` prints."""
    process = await asyncio.create_subprocess_exec(
        *(str(temporal_cli), "workflow", "show", "--workflow-id", session.workflow_id, "--output", "json"),
        *("--address", locked.client.service_client.config.target_host, *more),
        stdout=PIPE,
    )
    return (await process.communicate())[0].decode()


def texts_of(shown_history: str) -> str:
    """All payloads, out of their base64."""

    def within(value: Any) -> list[str]:
        match value:
            case {"data": str(data), "metadata": dict()}:
                return [base64.b64decode(data).decode("utf-8", "replace")]
            case dict():
                return [text for each in value.values() for text in within(each)]
            case list():
                return [text for each in value for text in within(each)]
            case _:
                return []

    return "\n".join(within(json.loads(shown_history)))


@pytest.mark.proves("X12", "X22")
async def test_temporals_command_line_shows_to_whom_a_token_names(
    locked: AgentEnvironment, codec: Serving, temporal_cli: Path
) -> None:
    session = await said(locked, "ana")
    await locked.end_sessions()  # of one that is open the command line waits for the next event
    at = ("--codec-endpoint", codec.url)

    closed = await shown(locked, session, temporal_cli)
    own, others, operators = [
        await shown(locked, session, temporal_cli, *at, "--codec-auth", f"Bearer {TOKENS[user]}")
        for user in ("ana", "bob", "eve")
    ]

    assert [WORD in texts_of(one) for one in (closed, own, others, operators)] == [False, True, False, True]


async def test_a_page_of_the_web_ui_may_ask_and_no_other(
    locked: AgentEnvironment, codec: Serving, of_codec: dict[str, str], tmp_path: Path
) -> None:
    session = await said(locked, "ana")
    history = (
        await (await Client.connect(locked.client.service_client.config.target_host))
        .get_workflow_handle(session.workflow_id)
        .fetch_history()
    )
    first = history.events[0].workflow_execution_started_event_attributes.input.payloads[0]
    sealed = {
        "metadata": {name: base64.b64encode(value).decode() for name, value in first.metadata.items()},
        "data": base64.b64encode(first.data).decode(),
    }
    of_page = {"Origin": WEB_UI, "X-Namespace": "default"}

    async with codec.client("ana") as ana:
        asks = {"Origin": WEB_UI, "Access-Control-Request-Method": "POST"}
        wanted = {"Access-Control-Request-Headers": "authorization,content-type,x-namespace"}
        preflight = await ana.options("/decode", headers={**asks, **wanted, "Authorization": ""})
        read = await ana.post("/decode", json={"payloads": [sealed]}, headers=of_page)
        below = await ana.post("/default/decode", json={"payloads": [sealed]}, headers=of_page)
        stranger = await ana.post("/decode", json={"payloads": [sealed]}, headers={"Origin": "http://evil.example"})
        elsewhere = await ana.post("/decode", json={"payloads": [sealed]}, headers={"X-Namespace": "other"})
        nobody = await ana.post("/decode", json={"payloads": [sealed]}, headers={"Authorization": ""})
        broken = await ana.post("/decode", json={"payloads": [{"data": 5}]})
        await locked.end_sessions()
        await session.stored.delete()
    # A process that has read the key looks again after 30 seconds.
    async with serving(tmp_path, of_codec, command=("codec", "serve")) as later, later.client("max") as operator:
        deleted = await operator.post("/decode", json={"payloads": [sealed]})

    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, WEB_UI)
    assert '"user_id":"ana"' in base64.b64decode(read.json()["payloads"][0]["data"]).decode()
    assert read.headers["access-control-allow-origin"] == WEB_UI
    assert below.json() == read.json()
    assert [one.status_code for one in (stranger, elsewhere, nobody, broken)] == [403, 422, 401, 400]
    assert "start one for that" in elsewhere.text
    assert "was deleted" in base64.b64decode(deleted.json()["payloads"][0]["data"]).decode()
