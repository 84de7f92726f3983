"""Who answers 404 to a call: the server that knows no such session, the server that knows no such method, or somebody
in front of it, before or after the call was handed on. Only what the first of them says means that nothing was done."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import mcp_types as types
import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from temporalio.testing import ActivityEnvironment

from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.tool import GivenUp, ToolError
from tests.activities.mcp.serving import PATHS, answers, servers, tools_of, used
from tests.activities.tools.calls import place_at, use
from tests.e2e.processes import ROOT
from tests.servers.local import free_port

Fault = Literal["none", "forgotten", "busy", "handed on", "handed on, in JSON", "not handed on", "unanswered"]
NEVER_HELD = b"0123456789abcdef0123456789abcdef"


class Mooring(BaseModel):
    name: str


class Front:
    """In front of a server, as a proxy is: the first call of `note` meets the fault, or the answer to a question."""

    def __init__(self, served: ASGIApp, fault: Fault) -> None:
        self._served = served
        self._fault: Fault = fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._served(scope, receive, send)
            return
        first = await receive()
        pieces = [first]

        async def again() -> Message:
            return pieces.pop() if pieces else await receive()

        fault: Fault = "none"
        if b'"tools/call"' in first["body"] and b'"note"' in first["body"]:
            fault = self._fault
            self._fault = "none"
        if self._fault == "unanswered" and b'"action"' in first["body"]:
            fault = "busy"
        if fault == "forgotten":
            headers = [(name, NEVER_HELD if name == b"mcp-session-id" else value) for name, value in scope["headers"]]
            scope = {**scope, "headers": headers}
        if fault in {"none", "forgotten"}:
            await self._served(scope, again, send)
            return
        if fault not in {"not handed on", "busy"}:
            await self._served(scope, again, _unheard)
        no_route: Response = PlainTextResponse("no route", 404)
        if fault == "busy":
            no_route = PlainTextResponse("later", 503, {"retry-after": "1"})
        if fault == "handed on, in JSON":
            no_route = JSONResponse({"error": "no route"}, 404)
        await no_route(scope, receive, send)


async def _unheard(message: Message) -> None:
    """What the server answers comes to nobody."""


@asynccontextmanager
async def reached(
    noted: list[str], fault: Fault, transport: str, refusing: asyncio.Barrier | None = None
) -> AsyncIterator[dict[str, Any]]:
    """`refusing`: `refuse` meets the test there twice, when it has done its work and before it says that it fails."""
    server = MCPServer("harbour")

    @server.tool()
    def note(text: str) -> str:
        noted.append(text)
        return "noted"

    @server.tool()
    async def wonder(text: str, ctx: Context[Any]) -> str:
        """It asks somebody, and goes on without an answer."""
        noted.append(text)
        with suppress(TimeoutError):
            await asyncio.wait_for(ctx.elicit("Which berth?", Mooring), 2)
        return "noted"

    @server.tool()
    def disown(text: str) -> str:
        """What it calls knows no such method: it says so after a part of its work."""
        noted.append(text)
        raise MCPError(code=types.METHOD_NOT_FOUND, message="the lamp knows no such method")

    @server.tool()
    async def refuse(text: str) -> str:
        noted.append(text)
        assert refusing is not None
        await refusing.wait()
        await refusing.wait()
        raise MCPError(code=types.INTERNAL_ERROR, message="the lamp is broken")

    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    port = free_port()
    serving = uvicorn.Server(
        uvicorn.Config(Front(app, fault), port=port, log_level="critical", timeout_graceful_shutdown=1)
    )
    task = asyncio.create_task(serving.serve())
    try:
        await answers(port)
        yield {"url": f"http://127.0.0.1:{port}{PATHS[transport]}"}
    finally:
        serving.should_exit = True
        await task


async def call(mcp: McpServers, name: str, text: str) -> str:
    tool = (await tools_of(mcp)).get(f"mcp__harbour__{name}")
    assert tool is not None

    async def used_so() -> str:
        return str((await use(tool, place_at(ROOT), text=text)).output)

    output: str = await ActivityEnvironment().run(used_so)
    return output


@pytest.mark.parametrize("effect", ["once", "idempotent"])
async def test_a_server_that_knows_no_such_session_has_done_nothing_and_is_called_again(effect: str) -> None:
    noted: list[str] = []
    async with (
        reached(noted, "forgotten", "streamable-http") as config,
        used(servers(config, is_stateful=True, effects={"note": effect})) as mcp,
    ):
        assert (await call(mcp, "note", "fog")).endswith(
            "restarted before this call: what it had kept for this session "
            "(open pages, logins, working folders) is gone.]\nnoted"
        )

    assert noted == ["fog"]


@pytest.mark.proves("X19")
@pytest.mark.parametrize(
    ("fault", "transport", "is_stateful", "times"),
    [
        ("handed on", "streamable-http", True, 1),
        ("handed on", "streamable-http", False, 1),
        ("handed on, in JSON", "streamable-http", True, 1),
        ("handed on, in JSON", "streamable-http", False, 1),
        ("not handed on", "sse", True, 0),
        ("not handed on", "streamable-http", True, 0),
        ("not handed on", "streamable-http", False, 0),
    ],
)
async def test_where_anybody_may_have_answered_a_call_that_runs_once_is_not_made_again(
    fault: Fault, transport: str, is_stateful: bool, times: int
) -> None:
    noted: list[str] = []
    async with (
        reached(noted, fault, transport) as config,
        used(servers(config, is_stateful=is_stateful, effects={"note": "once"})) as mcp,
    ):
        with pytest.raises(GivenUp, match=r"HTTP 404.*It may have done part of its work"):
            await call(mcp, "note", "fog")
        assert noted == ["fog"] * times
        assert (await call(mcp, "note", "rain")).endswith("noted")

    assert noted == [*["fog"] * times, "rain"]


@pytest.mark.parametrize("is_stateful", [True, False])
async def test_there_one_that_may_run_twice_is_made_again(is_stateful: bool) -> None:
    noted: list[str] = []
    async with (
        reached(noted, "handed on", "streamable-http") as config,
        used(servers(config, is_stateful=is_stateful, effects={"note": "idempotent"})) as mcp,
    ):
        assert (await call(mcp, "note", "fog")).endswith("noted")

    assert noted == ["fog", "fog"]


@pytest.mark.parametrize("effect", ["once", "idempotent"])
@pytest.mark.parametrize("is_stateful", [True, False])
async def test_what_a_server_itself_does_not_know_is_its_answer_whatever_the_status(
    is_stateful: bool, effect: str
) -> None:
    noted: list[str] = []
    async with (
        reached(noted, "none", "streamable-http") as config,
        used(servers(config, is_stateful=is_stateful, effects={"disown": effect})) as mcp,
    ):
        with pytest.raises(ToolError, match="answered with an error: the lamp knows no such method"):
            await call(mcp, "disown", "fog")

    assert noted == ["fog"], "it is told, and not asked again"


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_what_comes_of_one_call_is_not_taken_for_what_has_come_of_another_beside_it(transport: str) -> None:
    """The one is put off by 503 while the other, which runs once, has done its work and says that it fails."""
    noted: list[str] = []
    refusing = asyncio.Barrier(2)
    async with (
        reached(noted, "busy", transport, refusing) as config,
        used(servers(config, is_stateful=True, effects={"note": "once", "refuse": "once"})) as mcp,
    ):
        refused = asyncio.create_task(call(mcp, "refuse", "fog"))
        await refusing.wait()
        put_off = asyncio.create_task(call(mcp, "note", "rain"))
        await asyncio.sleep(0.1)  # it is told 503, and waits before it is made again
        await refusing.wait()
        with pytest.raises(ToolError, match="answered with an error: the lamp is broken"):
            await refused
        assert (await put_off).endswith("noted")

    assert noted == ["fog", "rain"]


async def test_an_answer_that_a_server_does_not_take_says_nothing_of_the_call_that_has_asked() -> None:
    noted: list[str] = []
    async with (
        reached(noted, "unanswered", "streamable-http") as config,
        used(servers(config, is_stateful=True, effects={"wonder": "once"})) as mcp,
    ):
        assert (await call(mcp, "wonder", "fog")).endswith("noted")

    assert noted == ["fog"], "503 was for the answer"
