"""Signed webhooks against real sessions: each wakes the one that it is for, once."""

import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from longhaul.starter.client.session import Session
from longhaul.starter.serve.application import application
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import Caller, Tokens
from longhaul.starter.serve.webhooks import FILE, ID, MOST_BYTES, SIGNATURE, TIMESTAMP, signed
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
OTHER_SECRET = f"whsec_{base64.b64encode(OTHER_KEY).decode()}"
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx.AsyncClient]:
    """Of a server that wants tokens."""
    local = Caller(None, "nobody", frozenset())
    served = Served(stage.app, Tokens(()), local, frozenset(("here",)))
    transport = httpx.ASGITransport(application(served))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as found:
        yield found


def listed(stage: Stage, *lines: str) -> None:
    file = stage.settings.data_dir / FILE
    file.write_text("\n".join(lines))
    file.chmod(0o600)


def waiting(stage: Stage) -> Session:
    wait = calls("wait_for", event="deployed", timeout="30d")
    return stage.session(wait, {"text": "Deployed."}, wait, {"text": "Again."}, tools=("wait_for",), user="ana")


async def delivered(
    client: httpx.AsyncClient, body: Any, *, age: float = 0, hook: str = "ci", forged: str = "", key: bytes = KEY
) -> int:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    at, name = str(round(time.time() - age)), "msg_1"
    headers = {ID: name, TIMESTAMP: at, SIGNATURE: forged or signed(key, name, at, data)}
    answer = await client.post(f"/v1/webhooks/{hook}", content=data, headers=headers)
    return answer.status_code


@pytest.mark.proves("F4")
async def test_one_delivery_wakes_the_session_once_however_often_it_is_sent(
    stage: Stage, client: httpx.AsyncClient
) -> None:
    session = waiting(stage)
    listed(stage, f"ci {SECRET} ana {session.spec.name} {session.id} deployed")
    await session.reply("Wait")
    said = {"type": "deployed", "data": {"version": "1.2"}}

    assert await delivered(client, said) == 200

    async def woken() -> bool:
        return (await session.status()).status == "idle"

    await until(woken)
    assert await delivered(client, said) == 200  # tried again, signed again
    assert await delivered(client, {**said, "data": "other"}) == 409  # under the same id
    again = await session.reply("Wait once more")
    assert again.metadata["waiting_for"]
    (words,) = [text async for m in session.transcript() for _, text in results(m)]
    assert '"{\\"version\\":\\"1.2\\"}"' in words
    assert 'by "webhook ci"' in words


@pytest.mark.proves("F4")
async def test_nobody_else_is_let_in_and_nothing_else_is_woken(stage: Stage, client: httpx.AsyncClient) -> None:
    session = waiting(stage)
    listed(stage, f"ci {SECRET} ana {session.spec.name} {session.id} deployed", f"all {OTHER_SECRET} bob lamp *")
    await session.reply("Wait")
    said: dict[str, Any] = {"type": "deployed"}

    assert await delivered(client, said, forged=signed(b"x" * 32, "msg_1", "1", b"{}")) == 401
    assert await delivered(client, said, hook="cd") == 401
    assert await delivered(client, said, age=301) == 401
    assert await delivered(client, said, age=-301) == 401
    assert await delivered(client, {"type": "failed"}) == 403
    assert await delivered(client, {"type": ""}) == 422
    assert await delivered(client, b"deployed") == 400
    assert await delivered(client, b"\xff") == 400
    assert await delivered(client, {**said, "data": "x" * 10_001}) == 413
    assert await delivered(client, b"x" * (MOST_BYTES + 1)) == 413
    assert await delivered(client, said, hook="all") == 401
    assert await delivered(client, said, hook="all", key=OTHER_KEY) == 422
    assert await delivered(client, {**said, "session": session.id}, hook="all", key=OTHER_KEY) == 404  # it is Ana's
    assert await delivered(client, {**said, "session": "\0"}, hook="all", key=OTHER_KEY) == 422
    assert (await client.get("/v1/webhooks/ci")).status_code == 405
    listed(stage, "ci broken")
    assert await delivered(client, said) == 503
    assert (await session.status()).status == "waiting"


async def test_a_hook_for_many_wakes_the_one_that_its_signed_body_names(
    stage: Stage, client: httpx.AsyncClient
) -> None:
    session = waiting(stage)
    listed(stage, f"all {SECRET} ana {session.spec.name} *")
    await session.reply("Wait")

    assert await delivered(client, {"type": "deployed", "session": session.id}, hook="all") == 200

    async def woken() -> bool:
        return (await session.status()).status == "idle"

    await until(woken)
