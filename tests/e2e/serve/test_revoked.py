"""`longhaul serve`: what streams and requests that wait come to whose token is taken out meanwhile."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from longhaul.starter.serve.request_checks import LOOK_SECONDS
from tests.e2e.serve.test_sessions import SLOWLY, agent
from tests.e2e.serving import TOKENS, Reader, serving, tokens_file
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("left", ["", " read"], ids=["no line", "fewer scopes"])
async def test_a_stream_ends_when_its_token_is_taken_out(
    tmp_path: Path, worker: int, cli_environment: dict[str, str], busy: bool, left: str
) -> None:
    assert worker
    file = tokens_file(tmp_path)
    text = "It is a long, long way to the lighthouse. " * 10
    session = agent(tmp_path, {"text": text, **SLOWLY} if busy else {"text": "There."})
    environment = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(file), "LONGHAUL_TRUST": "1"}
    ana, quiet, page = Reader(), Reader(), Reader()

    async with (
        serving(tmp_path, environment) as server,
        server.client() as client,
        server.client("eve") as other,
        httpx.AsyncClient(base_url=server.url, timeout=SURE_SECONDS, trust_env=False) as browser,
    ):
        browser.cookies.set("longhaul_token", TOKENS["ana"])
        await client.post(f"{session}/messages", json={"messages": "How far?"})
        reading = asyncio.create_task(ana.read(client, f"{session}/events", params={"deltas": "true"}))
        watching = asyncio.create_task(quiet.read(other, f"{session}/events?user=ana"))
        looking = asyncio.create_task(page.read(browser, session.replace("/v1/sessions", "/console/s") + "/events"))
        async with asyncio.timeout(SURE_SECONDS), ana.news, page.news:
            await ana.news.wait_for(lambda: len(ana.live) > 2 if busy else len(ana.recorded) > 5)
            await page.news.wait_for(lambda: page.recorded)
        without(file, "ana", left)
        async with asyncio.timeout(SURE_SECONDS):
            last, last_of_page = await asyncio.gather(reading, looking)
        refused = await client.post(f"{session}/messages", json={"messages": "And now?"})
        still_read = not watching.done()
        watching.cancel()

    assert last is not None
    assert last_of_page is not None
    assert (last_of_page.kind, last_of_page.data["why"]) == ("end", "unauthorized")
    assert (last.kind, last.data["why"], last.data["next"]) == ("end", "unauthorized", max(ana.recorded, default=0) + 1)
    assert refused.status_code == (403 if left else 401)
    assert still_read
    assert busy is all(frame.data.get("type") != "REPLY_END" for frame in ana.frames)


def without(file: Path, user: str, left: str = "") -> None:
    """Take the token of that user out, or leave it these scopes."""
    lines = file.read_text().splitlines()
    (own,) = [line for line in lines if f" {user} " in line]
    rest = [line for line in lines if line != own]
    file.write_text("\n".join([*rest, f"{own.rpartition(' ')[0]}{left}" if left else ""]))


def mcp_call(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    return {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, "headers": headers}


async def until_queued(client: httpx.AsyncClient, session: str, count: int) -> None:
    async with asyncio.timeout(SURE_SECONDS):
        while (await client.get(f"{session}/status")).json()["queued"] < count:  # noqa: ASYNC110  another process does it
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("left", ["", " read"], ids=["no line", "fewer scopes"])
async def test_requests_that_wait_end_when_their_token_is_taken_out(
    tmp_path: Path, worker: int, cli_environment: dict[str, str], left: str
) -> None:
    """Long before the reply does that they wait for; and what they had asked for is done."""
    assert worker
    file = tokens_file(tmp_path)
    text = "It is a long, long way to the lighthouse. " * 100
    session = agent(tmp_path, {"text": text, **SLOWLY}, {"text": "Still far."})
    environment = cli_environment | {"LONGHAUL_SERVE_TOKENS": str(file), "LONGHAUL_TRUST": "1"}
    at = {"agent": "lamp", "session": session.rpartition("/")[2]}

    async with (
        serving(tmp_path, environment) as server,
        server.client() as client,
        server.client("bob") as bob,
        server.client("max") as operator,
    ):
        asked = await client.post(f"{session}/messages", json={"messages": "How far?"})
        waiting = [
            client.post(f"{session}/messages?wait=60", json={"messages": "And now?", "request_id": "now"}),
            client.post("/mcp", **mcp_call("send", **at, text="And then?", wait=60)),
            client.post("/mcp", **mcp_call("read", **at, wait=60)),
        ]
        other = asyncio.create_task(bob.post(f"{session}/messages?wait=60", json={"messages": "Bob asks."}))
        tasks = [asyncio.create_task(one) for one in waiting]
        await until_queued(client, session, 2)
        await asyncio.sleep(2 * LOOK_SECONDS)  # they are looked after, and none ends for it
        early = [task.done() for task in tasks]
        without(file, "ana", left)
        async with asyncio.timeout(SURE_SECONDS):
            answers = await asyncio.gather(*tasks)
        of_others = other.done()
        other.cancel()
        status = (await operator.get(f"{session}/status?user=ana")).json()
        reply = (await operator.get(f"{session}/result/{asked.json()['reply_id']}?user=ana")).json()

    assert early == [False, False, False]
    assert [answer.status_code for answer in answers] == ([403] if left else [401]) + [401, 401]
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
    assert all("is not undone" in answer.json()["detail"] for answer in answers)
    assert not of_others
    assert reply["status"] == "working"
    assert status["queued"] == 2


async def test_the_first_token_closes_every_server_that_was_open_and_none_opens_again(  # noqa: PLR0915  one life
    tmp_path: Path, worker: int, cli_environment: dict[str, str]
) -> None:
    """Two servers of one data directory, their pages, `/mcp` and the streams that are open from before."""
    assert worker
    session = agent(tmp_path, {"text": "There."})
    page = session.replace("/v1/sessions", "/console/s")
    environment = cli_environment | {"LONGHAUL_DATA_DIR": str(tmp_path / "data"), "LONGHAUL_TRUST": "1"}
    environment.pop("LONGHAUL_SERVE_TOKENS", None)
    streams = [Reader(), Reader(), Reader()]
    async with (
        serving(tmp_path, environment) as one,
        serving(tmp_path, environment) as other,
        httpx.AsyncClient(base_url=one.url, timeout=SURE_SECONDS, trust_env=False) as here,
        httpx.AsyncClient(base_url=other.url, timeout=SURE_SECONDS, trust_env=False) as there,
    ):
        await here.post(f"{session}/messages?wait=30", json={"messages": "How far?"})
        before = [await asked(client, session, page) for client in (here, there)]
        paths = ((here, f"{session}/events"), (there, f"{session}/events"), (here, f"{page}/events"))
        reading = [asyncio.create_task(one.read(*at)) for one, at in zip(streams, paths, strict=True)]
        async with asyncio.timeout(SURE_SECONDS):
            for stream in streams:
                async with stream.news:
                    await stream.news.wait_for(partial(getattr, stream, "recorded"))
        token = await made_token(tmp_path, environment)
        after = [await asked(client, session, page) for client in (here, there)]
        async with asyncio.timeout(SURE_SECONDS):
            ends = await asyncio.gather(*reading)
        with_it = {"Authorization": f"Bearer {token}"}
        let_in = [(await client.get("/v1/sessions", headers=with_it)).status_code for client in (here, there)]
        file = tmp_path / "data" / "serve-tokens"
        file.write_text("")
        without_lines = [(await client.get("/v1/sessions", headers=with_it)).status_code for client in (here, there)]
        file.unlink()
        without_file = [(await client.get("/v1/sessions", headers=with_it)).status_code for client in (here, there)]

    assert before == [[200, 200, 200]] * 2
    assert after == [[401, 401, 303]] * 2
    assert [end.data["why"] for end in ends if end] == ["unauthorized"] * 3
    assert (let_in, without_lines, without_file) == ([200, 200], [401, 401], [503, 503])
    said = one.log.read_text()
    assert "open to everybody who can log in to this machine" in said
    assert f"closes it at once ({file})" in said


async def asked(client: httpx.AsyncClient, session: str, page: str) -> list[int]:
    """Without a token: a route, a tool, a page."""
    at = {"agent": "lamp", "session": session.rpartition("/")[2]}
    got = [await client.get(f"{session}/status"), await client.post("/mcp", **mcp_call("status", **at))]
    return [answer.status_code for answer in (*got, await client.get(page))]


async def made_token(folder: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, "-P", "-m", "longhaul.starter.cli.main", "serve", "token", "--user", "ana"]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE
    )
    return (await process.communicate())[0].decode().strip()


async def test_a_server_with_a_token_says_nothing_of_being_open(
    tmp_path: Path, cli_environment: dict[str, str]
) -> None:
    environment = cli_environment | {"LONGHAUL_DATA_DIR": str(tmp_path / "data")}
    await made_token(tmp_path, environment)
    async with (
        serving(tmp_path, environment) as server,
        httpx.AsyncClient(base_url=server.url, timeout=SURE_SECONDS, trust_env=False) as client,
    ):
        answered = await client.get("/v1/sessions")

    assert answered.status_code == 401
    assert "open to" not in server.log.read_text()
