"""A server that takes its key in the query of its address: a mark is recorded, and the key goes there alone."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send
from temporalio.testing import ActivityEnvironment

from longhaul import AgentSpec, HttpMCPConfig, MCPClient
from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import NotOffered, open_servers
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.plain.errors import what_is_wrong
from tests.activities.mcp.canned import CannedServer, canned
from tests.activities.mcp.serving import used
from tests.activities.tools.calls import place_at, use
from tests.e2e.cli.test_mcp_list import listed

KEY = "tide-token-moss"
"""As `listed` has it."""
ODD_KEY = "moss & ebb/flood=7?"
MARK = "key=[secret TIDE_TOKEN]"


@dataclass
class KeyedServer(CannedServer):
    """It answers only who has the key in the query."""

    key: str = KEY
    leads_to: str = ""
    """Where it sends everybody who asks at its own address."""
    queries: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        self.queries.append(request.url.query)
        if self.leads_to and request.url.path == "/mcp":
            await RedirectResponse(f"{self.leads_to}?{request.url.query}")(scope, receive, send)
        elif request.query_params.get("key") != self.key:
            await Response("who are you?", 401)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


@asynccontextmanager
async def asked(url: str, allow: str = "", key: str = KEY) -> AsyncIterator[McpServers]:
    """Of a worker whose operator has the server, or allows agents to describe it."""
    secrets = WorkerSecrets({"TIDE_TOKEN": key})
    tables = {} if allow else {"quay": {"mcp_config": {"url": url}}}
    async with used(McpServers(open_servers(tables, allow, secrets), secrets)) as servers:
        yield servers


async def answer(servers: McpServers, client: MCPClient) -> str:
    toolbox = await servers.beside(Toolbox(()), (client,), {"mcp__quay__note": ""})
    tool = toolbox.get("mcp__quay__note")
    assert tool is not None

    async def used_so() -> str:
        return str((await use(tool, place_at(Path("/")))).output)

    output: str = await ActivityEnvironment().run(used_so)
    return output


@pytest.mark.parametrize("key", [KEY, ODD_KEY])
async def test_the_operators_server_is_given_the_key_in_its_query(key: str) -> None:
    async with canned(KeyedServer(key=key)) as server, asked(f"{server.url}?{MARK}&version=2", key=key) as servers:
        said = await answer(servers, MCPClient(name="quay"))

    assert said == "noted"
    assert all(query.startswith("key=") and query.endswith("&version=2") for query in server.queries)


async def test_an_agent_describes_it_where_the_operator_lets_the_key_go_there() -> None:
    async with canned(KeyedServer()) as server:
        client = MCPClient(name="quay", mcp_config=HttpMCPConfig(url=f"{server.url}?{MARK}"))
        async with asked("", allow=f"TIDE_TOKEN={server.url}") as servers:
            said = await answer(servers, client)

    assert said == "noted"
    assert "[secret TIDE_TOKEN]" in client.model_dump_json()


@pytest.mark.parametrize("allow", ["none=https://quay.example/mcp", "OTHER=https://quay.example/mcp"])
def test_no_other_entry_of_the_operators_list_lets_the_key_go_there(allow: str) -> None:
    offered = open_servers({}, allow, WorkerSecrets({"TIDE_TOKEN": KEY, "OTHER": "other-token-moss"}))
    client = MCPClient(name="quay", mcp_config=HttpMCPConfig(url=f"https://quay.example/mcp?{MARK}"))

    with pytest.raises(NotOffered, match=r"lists `TIDE_TOKEN=https://quay\.example/mcp` in LONGHAUL_MCP_ALLOW"):
        offered.server(client)


async def test_it_follows_to_the_same_address_with_a_slash_and_keeps_the_key() -> None:
    async with canned(KeyedServer()) as server, asked(f"{server.url}?{MARK}") as servers:
        server.leads_to = f"{server.url}/"
        said = await answer(servers, MCPClient(name="quay"))

    assert said == "noted"


@pytest.mark.parametrize("where", ["another port", "another path"])
async def test_a_server_that_leads_elsewhere_is_not_followed_with_the_key(where: str) -> None:
    async with (
        canned(KeyedServer()) as elsewhere,
        canned(KeyedServer()) as server,
        asked(f"{server.url}?{MARK}") as all_,
    ):
        server.leads_to = elsewhere.url if where == "another port" else server.url.replace("/mcp", "/other")
        toolbox, told = await all_.for_reply((MCPClient(name="quay"),))

    assert toolbox.names == ()
    assert "which leads to" in told[0]
    assert KEY not in told[0]
    assert (elsewhere.queries, server.elsewhere) == ([], [])


async def test_neither_the_log_nor_what_is_told_of_a_failure_has_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx2", "mcp"):
        caplog.set_level(logging.INFO, logger=name)  # as a worker's own

    async with canned(KeyedServer(key="another key")) as server, asked(f"{server.url}?{MARK}") as servers:
        _, told = await servers.for_reply((MCPClient(name="quay"),))

    written = "\n".join(
        record.getMessage() for record in caplog.records if record.name.startswith(("httpx", "longhaul"))
    )
    assert "can't be reached" in told[0]
    assert "HTTP Request: POST" in written
    assert KEY not in written + told[0]


async def test_mcp_list_shows_the_mark_and_not_the_key(tmp_path: Path) -> None:
    async with canned(KeyedServer()) as server:
        servers = {"quay": {"mcp_config": {"url": f"{server.url}?{MARK}"}}}
        done = await asyncio.to_thread(listed, tmp_path, servers)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"quay ({server.url}?{MARK}): 1 tool\n")
    assert KEY not in done.stdout + done.stderr


ADDRESS = "https://quay.example/mcp"
ACCEPTED = [
    "version=2", "readOnly=true&tools=web_search_exa,crawling", "project_ref=abcdefghijklmnopqrst", "max_tokens=500",
    "features=database%2Cdocs", "workspace=0f8fad5b-d9cb-469f-a165-70867728950e", "profile=able-cat-4711", "empty=",
    MARK, "tavilyApiKey=[secret TIDE_TOKEN]&version=2", "auth=Bearer%20[secret TIDE_TOKEN]",
]  # fmt: skip
KEYS = [
    "key=moss", "api_key=moss", "apiKey=moss", "exaApiKey=moss", "x-api-key=moss", "TOKEN=moss", "access_token=moss",
    "clientSecret=moss", "sig=moss", "password=moss", "code=sk-moss4711moss4711moss",
    "k=0123456789abcdef0123456789abcdef",
    "key=[secret TIDE_TOKEN]0123456789abcdef0123", "v=2&t%6Fken=moss",
]  # fmt: skip
UNREADABLE = ["", "key", "key=[secret TWO WORDS]", "[secret TIDE_TOKEN]=1", "a=b#c", "a=b c", "a=ü", "a=b&&c=d"]


@pytest.mark.parametrize("query", ACCEPTED)
def test_settings_and_marks_are_accepted_in_a_query(query: str) -> None:
    assert HttpMCPConfig(url=f"{ADDRESS}?{query}").url == f"{ADDRESS}?{query}"


def refusals(query: str) -> list[str]:
    """What everybody who may give the address is told."""
    url = f"{ADDRESS}?{query}"
    told = []
    for given in (
        lambda: HttpMCPConfig(url=url),
        lambda: MCPClient.model_validate({"name": "quay", "mcp_config": {"url": url}}),
        lambda: AgentSpec.model_validate({"mcps": [{"name": "quay", "mcp_config": {"url": url}}]}),
    ):
        with pytest.raises(ValidationError) as refused:
            given()
        told += [str(refused.value), what_is_wrong(refused.value)]
    return told


@pytest.mark.parametrize("query", KEYS)
def test_a_key_that_is_written_out_is_refused_without_repeating_it_and_with_what_to_write(query: str) -> None:
    for told in refusals(query):
        assert "in its query holds a key" in told
        assert "=[secret NAME]`" in told
        assert not any(text in told for text in ("moss", "0123456789abcdef"))


@pytest.mark.parametrize("query", UNREADABLE)
def test_a_query_that_can_t_be_read_is_refused_with_its_form(query: str) -> None:
    for told in refusals(query):
        assert "write NAME=VALUE&NAME=VALUE" in told


def test_the_operator_is_told_the_same_by_the_command_line(tmp_path: Path) -> None:
    servers: dict[str, Any] = {"quay": {"mcp_config": {"url": f"{ADDRESS}?key=moss4711"}}}

    done = listed(tmp_path, servers)

    assert done.returncode == 2
    assert "write `key=[secret NAME]`" in done.stderr
    assert "moss4711" not in done.stdout + done.stderr


def test_a_credential_in_a_header_is_not_repeated_either() -> None:
    with pytest.raises(ValidationError) as refused:
        HttpMCPConfig(url=ADDRESS, headers={"Authorization": "Bearer moss4711"})

    assert "moss4711" not in json.dumps([str(refused.value), what_is_wrong(refused.value)])
