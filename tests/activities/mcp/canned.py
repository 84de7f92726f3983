"""A server over HTTP whose first answers to a call are given, byte for byte; from then on it answers as it should."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tests.activities.mcp.serving import answers
from tests.servers.local import free_port

CALLED = "@"
"""Stands in a body for the id of the call that it answers."""
TOOL = {"name": "note", "inputSchema": {"type": "object"}}


@dataclass(frozen=True)
class Canned:
    """One answer by HTTP."""

    status: int
    content_type: str = ""
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class CannedServer:
    """`calls` counts those that have come, `resumed` the streams that were asked for again."""

    first: list[Canned] = field(default_factory=list)
    stream: Canned = Canned(405)
    """What each GET is answered with."""
    held: dict[int, float] = field(default_factory=dict)
    """Seconds by the number of a stream that was asked for again: so long it is open."""
    last: tuple[int, Canned] | None = None
    """The stream of that number, instead of `stream`."""
    calls: int = 0
    streams: int = 0
    resumed: int = 0
    pages: bool = False
    """From now on there is a page in the place of every answer."""
    is_gone_after: int | None = None
    """So many calls come, and then there are pages alone."""
    elsewhere: list[str] = field(default_factory=list)
    """Paths beside its own that were asked."""
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        if not request.url.path.startswith("/mcp"):
            self.elsewhere.append(request.url.path)
        if request.method != "POST":
            await self._streamed(request)(scope, receive, send)
            return
        asked = json.loads(await request.body())
        if self.pages or self.calls == self.is_gone_after:
            await Response("<html>", media_type="text/html")(scope, receive, send)
            return
        if asked["method"] == "tools/call":
            self.calls += request.url.path == "/mcp"
            if self.first:
                await _written(self.first.pop(0), asked["id"])(scope, receive, send)
                return
        await _answer(asked)(scope, receive, send)

    def _streamed(self, request: Request) -> Response:
        if request.method != "GET" or self.stream.status != 200:
            return Response(status_code=405)
        self.streams += 1
        self.resumed += "last-event-id" in request.headers
        number = self.resumed
        said = self.last[1] if self.last and self.last[0] == number else self.stream

        async def spoken() -> AsyncIterator[str]:
            await asyncio.sleep(self.held.get(number, 0))
            yield said.body

        return StreamingResponse(spoken(), media_type=said.content_type)


def _written(canned: Canned, called: object) -> Response:
    headers = {**canned.headers, **({"content-type": canned.content_type} if canned.content_type else {})}
    return Response(canned.body.replace(CALLED, json.dumps(called)), canned.status, headers)


def _answer(asked: dict[str, object]) -> Response:
    match asked["method"]:
        case "initialize":
            params: dict[str, object] = asked["params"]  # type: ignore[assignment]
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "canned", "version": "1"}}
            result = {"protocolVersion": params["protocolVersion"], **about}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": "noted"}]}
        case "ping":
            result = {}
        case _ if "id" not in asked:
            return Response(status_code=202)
        case _:
            error = {"code": -32601, "message": "Method not found"}
            return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "error": error}, 404)
    headers = {"mcp-session-id": "0123456789abcdef"} if asked["method"] == "initialize" else {}
    return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": result}, headers=headers)


Served = TypeVar("Served", bound=CannedServer)


@asynccontextmanager
async def canned(server: Served) -> AsyncIterator[Served]:
    """It listens until the block ends."""
    port = free_port()
    serving = uvicorn.Server(
        uvicorn.Config(server, port=port, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    )
    task = asyncio.create_task(serving.serve())
    try:
        await answers(port)
        server.url = f"http://127.0.0.1:{port}/mcp"
        yield server
    finally:
        serving.should_exit = True
        await task
