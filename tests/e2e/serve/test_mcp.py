"""Longhaul as an MCP server, spoken to by the `mcp` package's client: over stdin and stdout, and by HTTP."""

import asyncio
import json
import logging
import re
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server import streamable_http

from longhaul.starter.serve import mcp_server  # noqa: F401  it says what is logged
from longhaul.starter.serve.mcp_tools import TOOLS
from tests.e2e.conftest import CLI
from tests.e2e.processes import ROOT
from tests.e2e.serve.test_sessions import WANTS_TO_EDIT, agent
from tests.e2e.serve.test_waits import lead
from tests.e2e.serving import TOKENS, serving, tokens_file
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

PAGE = (ROOT / "docs" / "people" / "mcp-server.md").read_text(encoding="utf-8")
TRANSPORTS = ("stdio", "http")
OF_OPERATIONS = {"interrupt", "stop_background", "pause", "resume"}
ALL = {"start_session", "send", "read", "status", "list_sessions", "list_inbox", "decide", *OF_OPERATIONS}


@pytest.fixture
def desk(tmp_path: Path, worker: int, cli_environment: dict[str, str]) -> dict[str, str]:
    """The settings of servers in this folder; it holds a greeting, and a worker is there."""
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    return cli_environment | {"LONGHAUL_SERVE_TOKENS": str(tokens_file(tmp_path)), "LONGHAUL_TRUST": "1"}


@asynccontextmanager
async def by_stdio(folder: Path, desk: dict[str, str], *flags: str) -> AsyncIterator[Client]:
    program, *words = CLI
    started = StdioServerParameters(command=program, args=[*words, "mcp", "serve", *flags], env=desk, cwd=folder)
    async with Client(started) as client:
        yield client


@asynccontextmanager
async def by_http(url: str, user: str = "ana", **further: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKENS[user]}"} if user else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=SURE_SECONDS) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), **further) as client,
    ):
        yield client


@asynccontextmanager
async def client_by(transport: str, folder: Path, desk: dict[str, str]) -> AsyncIterator[Client]:
    if transport == "stdio":
        async with by_stdio(folder, desk) as client:
            yield client
    else:
        async with serving(folder, desk) as one, by_http(one.url) as client:
            yield client


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    """What a call gives, which was no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The sentence of a call that was refused."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    (said,) = result.content
    return str(said.text)  # type: ignore[union-attr]


async def asked_in(client: Client, session: str) -> Any:
    """Its call in the inbox: the server's index is a moment late."""
    async with asyncio.timeout(SURE_SECONDS):
        while True:
            for one in (await told(client, "list_inbox", user="ana"))["calls"]:
                if one["session"]["session_id"] == session:
                    return one
            await asyncio.sleep(0.1)


async def test_a_read_that_waits_comes_back_where_a_sub_agent_waits(tmp_path: Path, desk: dict[str, str]) -> None:
    lead(tmp_path)
    async with client_by("http", tmp_path, desk) as client:
        started = await told(client, "start_session", agent="lamp", text="Go", wait=0)
        at = {"agent": "lamp", "session": started["session"]}

        read = await told(client, "read", **at, wait=60)

        calls = (await told(client, "status", **at))["calls"]
    assert [call["path"] for call in calls] == ["lamp › scribe › Write"] * 3
    assert "[sub-agents wait for an answer: write-amber lamp › scribe › Write, write-birch" in read["text"]
    assert not read["more"]


@pytest.mark.proves("X20")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_session_is_started_looked_at_decided_on_and_read(  # noqa: PLR0915  one life
    transport: str, tmp_path: Path, desk: dict[str, str]
) -> None:
    agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."}, {"text": "You are welcome."})
    ask = {"agent": "lamp", "text": "Greet", "request_id": f"r-{uuid4().hex}", "wait": 60}
    async with client_by(transport, tmp_path, desk) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        started = await told(client, "start_session", **ask)
        again = await told(client, "start_session", **ask)
        at = {"agent": "lamp", "session": started["session"]}
        (waiting,) = (await told(client, "status", **at))["calls"]
        paused = await told(client, "pause", **at, why="the tide")
        why = (await told(client, "status", **at))["status"]["paused_why"]
        resumed = await told(client, "resume", **at)
        decision = {**at, "call_id": "edit-7", "decision": "allow"}
        unseen = await refused(client, "decide", **decision)
        empty = await refused(client, "decide", **decision, digest="")
        other = await refused(client, "decide", **decision, digest="0" * 64)
        before = (tmp_path / "greeting.txt").read_text()
        asked = await told(client, "read", **at, wait=60)
        await told(client, "decide", **decision, digest=waiting["digest"])
        done = await told(client, "read", **at, since=asked["next"], wait=60)
        thanked = await told(client, "send", **at, text="Thanks", wait=60)
        last = await told(client, "read", **at, since=done["next"])
        nothing = await told(client, "read", **at, since=last["next"])

    assert (paused, why, resumed) == ({"changed": True}, "the tide", {"session": started["session"]})
    assert names == ALL
    assert (started["status"], started["text"]) == ("waiting", "I will greet the moon.")
    assert [call["tool"] for call in started["calls"]] == ["Edit"]
    assert (again["session"], again["reply_id"]) == (started["session"], started["reply_id"])
    assert "digest" in unseen
    assert "digest" in empty
    assert other
    assert before == "hello world\n"
    assert asked["text"].startswith("I will greet the moon.\n")
    assert asked["text"].endswith("[waits for a person: edit-7 Edit]")
    assert "[edit-7: success]" in done["text"]
    assert done["text"].endswith("Done.\n\n[reply ended, completed]")
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"
    assert (thanked["status"], thanked["text"], thanked["finished_reason"]) == (
        "finished",
        "You are welcome.",
        "completed",
    )
    assert last["text"] == "You are welcome.\n\n[reply ended, completed]"
    assert (nothing["text"], nothing["next"]) == ("", last["next"])


@pytest.mark.timeout(180)
async def test_what_a_sub_agent_asks_is_told_and_decided_at_its_lead(tmp_path: Path, desk: dict[str, str]) -> None:
    task = {"id": "t1", "name": "Agent", "input": {"agent": "scout", "task": "Greet the moon"}}
    script = tmp_path / "scout.jsonl"
    script.write_text("\n".join(json.dumps(line) for line in (WANTS_TO_EDIT, {"text": "Greeted."})))
    below = f'[agents.scout]\nmodel = "scripted:{script}"\ntools = ["Edit"]\n'
    agent(tmp_path, {"tool_calls": [task]}, {"text": "Done."}, more=below)

    async with by_stdio(tmp_path, desk) as client:
        started = await told(client, "start_session", agent="lamp", text="Go", wait=60)
        at = {"agent": "lamp", "session": started["session"]}
        (listed,) = (await told(client, "status", **at))["calls"]
        await told(client, "decide", **at, call_id="edit-7", decision="allow", digest=listed["digest"])
        thanked = await told(client, "send", **at, text="Well?", wait=60)

    assert (started["status"], [call["path"] for call in started["calls"]]) == ("waiting", ["lamp › scout › Edit"])
    assert listed == started["calls"][0]
    assert thanked["status"] == "finished"
    assert (tmp_path / "greeting.txt").read_text() == "hello moon\n"


@pytest.mark.proves("X20")
async def test_what_one_client_begins_waits_for_another_one_when_its_server_is_gone(
    tmp_path: Path, desk: dict[str, str]
) -> None:
    agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."}, name="lantern")
    async with serving(tmp_path, desk) as first, by_http(first.url) as client:
        started = await told(client, "start_session", agent="lantern", text="Greet", wait=60)
        await first.kill()
    at = {"agent": "lantern", "session": started["session"], "user": "ana"}
    async with by_stdio(tmp_path, desk) as client:
        asked = await asked_in(client, started["session"])
        denial = {"call_id": asked["call"]["call_id"], "decision": "deny", "reason": "Not the moon."}
        await told(client, "decide", **at, **denial)
        done = await told(client, "read", **at, wait=60)

    assert done["text"].endswith("Done.\n\n[reply ended, completed]")
    assert (tmp_path / "greeting.txt").read_text() == "hello world\n"


@pytest.mark.proves("X20")
async def test_a_tokens_scopes_and_user_hold_here_too(tmp_path: Path, desk: dict[str, str]) -> None:
    agent(tmp_path, WANTS_TO_EDIT, {"text": "Done."}, name="torch")
    async with serving(tmp_path, desk) as one:
        async with by_http(one.url) as ana:
            started = await told(ana, "start_session", agent="torch", text="Greet", wait=60)
        at = {"agent": "torch", "session": started["session"]}
        async with by_http(one.url, "bob") as bob:
            unseen = [
                await refused(bob, "read", **at),
                await refused(bob, "send", **at, text="Mine"),
                await refused(bob, "decide", **at, call_id="edit-7", decision="deny"),
                await refused(bob, "status", **at, user="ana"),
            ]
        async with by_http(one.url, "eve") as eve:
            names = {tool.name for tool in (await eve.list_tools()).tools}
            seen = await told(eve, "status", **at, user="ana")
            denied = await refused(eve, "decide", **at, user="ana", call_id="edit-7", decision="deny")
            mute = await refused(eve, "start_session", agent="torch", text="Greet")
        async with by_http(one.url) as ana:
            await told(ana, "interrupt", **at)
        async with httpx2.AsyncClient() as nobody:
            answers = [
                await nobody.post(f"{one.url}/mcp", json={}),
                await nobody.post(f"{one.url}/mcp", json={}, headers={"Authorization": "Bearer lh_zoe"}),
                await nobody.get(f"{one.url}/mcp"),
                await nobody.post(f"{one.url}/mcp", json={}, headers={"Host": "evil.example"}),
                await nobody.post(f"{one.url}/mcp", json={}, headers={"Origin": "https://evil.example"}),
            ]
            long = await nobody.post(
                f"{one.url}/mcp", content=b"x" * 3_000_000, headers={"Authorization": f"Bearer {TOKENS['ana']}"}
            )

    assert [f"there is no open session {started['session']!r}" in sentence for sentence in unseen] == [
        True,
        False,
        True,
        True,
    ]
    assert unseen[1].startswith(f"session: there is no session {started['session']!r} of agent 'torch'")
    assert names == {"read", "status", "list_sessions", "list_inbox"}
    assert [call["call_id"] for call in seen["calls"]] == ["edit-7"]
    assert denied == "decide: this needs a token with the scope 'approve'"
    assert mute == "start_session: this needs a token with the scope 'answer'"
    assert [answer.status_code for answer in answers] == [401, 401, 405, 421, 403]
    assert long.status_code == 413


async def test_what_is_asked_for_wrongly_is_told_with_its_field(tmp_path: Path, desk: dict[str, str]) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("reed", {}, "there is no tool 'reed'; did you mean 'read'?"),
        ("read", {}, "session: Field required"),
        ("read", {"session": "nobody", "sinse": 1}, "sinse: Extra inputs are not permitted"),
        ("read", {"session": "nobody", "since": -1}, "since: Input should be greater than or equal to 0"),
        ("read", {"session": "nobody", "wait": 61}, "wait: Input should be less than or equal to 60"),
        ("read", {"session": "nobody"}, "there is no open session 'nobody' of agent 'longhaul'"),
        ("read", {"session": "x" * 700}, "session: it: a name of 700 characters is too long"),
        ("read", {"session": "nobody", "user": "an\0a"}, "user: it: 'an\\x00a' is not text that can be stored"),
        ("send", {"session": "nobody", "text": "Hi"}, "session: there is no session 'nobody' of agent 'longhaul'"),
        ("start_session", {"text": "Hi", "agent": "../lamp"}, "agent: there is no agent '../lamp'"),
        ("start_session", {"text": ""}, "text: String should have at least 1 character"),
        ("decide", {"session": "nobody", "call_id": "c", "decision": "maybe"}, "decision: Input should be"),
    ]
    async with by_stdio(tmp_path, desk) as client:
        said = [await refused(client, tool, **arguments) for tool, arguments, _ in wrong]

    assert [sentence for sentence, (*_, expected) in zip(said, wrong, strict=True) if expected not in sentence] == []


async def test_a_client_is_given_no_more_than_its_scopes(tmp_path: Path, desk: dict[str, str]) -> None:
    async with by_stdio(tmp_path, desk, "--scopes", "read,answer") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        denied = await refused(client, "decide", session="nobody", call_id="c", decision="allow")

    assert names == ALL - {"decide", "pause", "resume"}
    assert denied == "decide: this needs a token with the scope 'approve'"


async def test_it_ends_when_its_client_leaves(tmp_path: Path, desk: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *CLI,
        *("mcp", "serve"),
        env=desk,
        cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(SURE_SECONDS):
        out, err = await process.communicate(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')

    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["id"] == 1


UNREADABLE = {
    "a lone surrogate": rb'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\ud800"}}',
    "deep": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ' + b"[" * 2_000 + b"]" * 2_000 + b"}}",
    "no JSON": b"ping",
}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_cannot_be_read_is_answered_too(tmp_path: Path, desk: dict[str, str], transport: str) -> None:
    ping = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}'
    asked = [*UNREADABLE.values(), ping]
    if transport == "stdio":
        process = await asyncio.create_subprocess_exec(
            *(*CLI, "mcp", "serve"), env=desk, cwd=tmp_path, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(line + b"\n" for line in asked)
        async with asyncio.timeout(SURE_SECONDS):
            # Who leaves before it is answered is not answered.
            answers = [json.loads(await process.stdout.readline()) for _ in asked]
            assert await process.communicate(b"") == (b"", b"")
        assert process.returncode == 0
    else:
        headers = {
            "Authorization": f"Bearer {TOKENS['ana']}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        async with serving(tmp_path, desk) as one, httpx2.AsyncClient(headers=headers, timeout=SURE_SECONDS) as http:
            answers = [(await http.post(f"{one.url}/mcp", content=body)).json() for body in asked]

    assert [(one["id"], one["error"]["code"]) for one in answers[:-1]] == [(None, -32700)] * len(UNREADABLE)
    assert all(one["error"]["message"].startswith("Parse error: ") for one in answers[:-1])
    assert (answers[-1]["id"], answers[-1]["result"]) == (7, {})


async def test_requests_by_http_leave_nothing_in_the_log_but_warnings(tmp_path: Path, desk: dict[str, str]) -> None:
    async with serving(tmp_path, desk) as one:
        async with by_http(one.url) as client:
            await client.list_tools()
        log = one.log.read_text("utf-8")

    assert [line for line in log.splitlines() if " mcp" in line] == []
    assert logging.getLogger(streamable_http.__name__).getEffectiveLevel() == logging.WARNING


@pytest.mark.timeout(120)
async def test_the_configuration_of_the_page_begins_a_session(tmp_path: Path, desk: dict[str, str]) -> None:
    agent(tmp_path, WANTS_TO_EDIT, name="longhaul")
    (block,) = re.findall(r'^\{"mcpServers".*$', PAGE, re.MULTILINE)
    said = json.loads(block)["mcpServers"]["longhaul"]
    program, *words = CLI
    server = StdioServerParameters(command=program, args=[*words, *said["args"]], env=desk, cwd=tmp_path)
    async with Client(server) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        started = await told(client, "start_session", text="Greet", wait=60)
        sessions = await told(client, "list_sessions", session=started["session"])
        everyones = await told(client, "list_sessions")
        ended = await told(client, "interrupt", session=started["session"])

    assert said["command"] == "longhaul"
    assert names == ALL - {"decide", "pause", "resume"}
    assert (started["status"], started["text"]) == ("waiting", "I will greet the moon.")
    assert all(row["session_id"] == started["session"] for row in sessions["sessions"])
    assert len(everyones["sessions"]) >= len(sessions["sessions"])
    assert ended == {"interrupted": started["reply_id"]}


def test_the_page_has_each_tool_with_its_scope() -> None:
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| `([a-z]+)` \|", PAGE, re.MULTILINE)
    told_there = {name: scope for names, scope in rows for name in re.findall(r"`([a-z_]+)`", names)}

    assert told_there == {tool.name: tool.scope for tool in TOOLS.values()}
