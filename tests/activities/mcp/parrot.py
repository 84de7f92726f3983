"""A real MCP server that says again whatever credential it is sent, in each place where a server may say something:
`python -m tests.activities.mcp.parrot sse|streamable-http PORT FILE`. The file has a line of each request by POST.
"""

import logging
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("harbour")


class Listening:
    """In front of the server; what it is sent first stands in the descriptions of the tools."""

    def __init__(self, served: ASGIApp, heard: Path) -> None:
        self._served, self._heard = served, heard
        self._has_tools = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            credential = dict(scope["headers"]).get(b"authorization", b"").decode()
            if not self._has_tools:
                offer(credential)
                self._has_tools = True
            if scope["method"] == "POST":
                with self._heard.open("a", encoding="utf-8") as lines:
                    lines.write(f"{credential}\n")
        await self._served(scope, receive, send)


def offer(credential: str) -> None:
    async def result(ctx: Context[Any]) -> dict[str, str]:
        await ctx.report_progress(1, 2, f"on behalf of {credential}")
        return {"owner": credential}

    def fail() -> str:
        raise ToolError(f"no room for {credential}")

    def refuse() -> str:
        raise MCPError(code=types.INVALID_PARAMS, message=f"not with {credential}", data={"got": credential})

    async def log(ctx: Context[Any]) -> str:
        await ctx.session.send_log_message("error", {"got": credential}, related_request_id=ctx.request_id)
        return "logged"

    for tool in (result, fail, refuse, log):
        server.add_tool(tool, description=f"It acts for {credential}.")


def main() -> None:
    transport, port, heard = sys.argv[1:]
    logging.disable()
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    uvicorn.run(Listening(app, Path(heard)), port=int(port), log_level="critical")


if __name__ == "__main__":
    main()
