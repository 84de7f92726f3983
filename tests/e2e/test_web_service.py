"""The example of a web service: watch, lose the connection and the service, decide, go on."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from longhaul.starter.dev_server.processes import bound_to_parent, tail
from tests.e2e.conftest import Cli
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
QUESTION = {"text": "Write down the tide", "request_id": "q-1"}
STORY: tuple[dict[str, Any], ...] = (
    {"text": "I write it down, in all its length.", "delay_ms": 100},
    {"tool_calls": [{"name": "Write", "input": {"file_path": "tide.txt", "content": "low\n"}}]},
    {"text": "It stands in tide.txt."},
)


@asynccontextmanager
async def service(cli: Cli, model: str) -> AsyncIterator[httpx.AsyncClient]:
    """Killed at the end, as a crash would."""
    port = str(free_port())
    log = cli.folder / "service.log"
    with log.open("ab") as sink:
        process = await asyncio.create_subprocess_exec(
            *bound_to_parent(
                [
                    sys.executable,
                    "-m",
                    "uvicorn",
                    "--app-dir",
                    str(ROOT / "examples"),
                    "--port",
                    port,
                    "web_service:app",
                ]
            ),
            env=cli.environment | {"CLERK_MODEL": model},
            stderr=sink,
            stdout=sink,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(
            base_url=url, headers={"X-User": "ana"}, timeout=SURE_SECONDS, trust_env=False
        ) as web:
            async with asyncio.timeout(SURE_SECONDS):
                while not await is_up(web):
                    assert process.returncode is None, tail(log)
                    await asyncio.sleep(0.1)
            yield web
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def is_up(web: httpx.AsyncClient) -> bool:
    try:
        return (await web.get("/openapi.json")).is_success
    except httpx.TransportError:
        return False


async def told(web: httpx.AsyncClient, chat: str, *, until: str = "") -> list[dict[str, Any]]:
    """The events of the answer; the connection is cut behind the first of the type `until`."""
    events: list[dict[str, Any]] = []
    async with web.stream("POST", f"/chats/{chat}/ask", json=QUESTION) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
                if events[-1]["type"] == until:
                    break
    return events


@pytest.mark.proves("F1")
async def test_a_page_watches_comes_back_decides_and_sees_the_end(cli: Cli, worker: int) -> None:
    assert worker
    speech, *rest = STORY
    model = cli.script({**speech, **rest[0]}, rest[1])
    async with service(cli, model) as web:
        started = await told(web, "tide", until="TEXT_BLOCK_DELTA")
        assert started[-1]["delta"]
    async with service(cli, model) as web:
        asked = await told(web, "tide")
        again = await told(web, "tide")
        (call,) = again[-1]["value"]["previews"]
        answer = {"call_id": call, "decision": "allow"}
        digest = again[-1]["value"]["previews"][call]["digest"]
        stale = await web.post("/chats/tide/decide", json={**answer, "digest": "another"})
        taken = await web.post("/chats/tide/decide", json={**answer, "digest": digest})
        ended = await told(web, "tide")
        elsewise = await web.post("/chats/tide/ask", json={**QUESTION, "text": "Something else"})

    assert [events[-1]["type"] for events in (asked, again, ended)] == ["REQUIRE_USER_CONFIRM"] * 2 + ["REPLY_END"]
    assert "".join(event.get("delta", "") for event in asked).startswith(str(speech["text"]))
    assert (stale.status_code, taken.status_code, elsewise.status_code) == (409, 204, 409)
    assert "q-1" in elsewise.json()["detail"]
    assert "".join(e["delta"] for e in ended if e["type"] == "TEXT_BLOCK_DELTA") == f"{speech['text']}{rest[1]['text']}"
