"""Serves over HTTP what a program offers that is an MCP server: `python -m tests.activities.mcp.bridge PORT PROGRAM …`.

So people reach a server that knows stdin and stdout alone. Arguments and results go through as they are.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.server.lowlevel import Server


def bridge(program: list[str]) -> Server[Client]:
    @asynccontextmanager
    async def running(server: Server[Client]) -> AsyncIterator[Client]:
        started = StdioServerParameters(command=program[0], args=program[1:])
        async with Client(started, mode="legacy", cache=None) as client:
            yield client

    async def listed(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        found = await ctx.lifespan_context.list_tools(cursor=params.cursor if params else None)
        return types.ListToolsResult(tools=found.tools, next_cursor=found.next_cursor)

    async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        request = types.CallToolRequest(
            params=types.CallToolRequestParams(name=params.name, arguments=params.arguments)
        )
        answer: types.CallToolResult = await ctx.lifespan_context.session.send_request(request, types.CallToolResult)
        return answer

    return Server("bridge", lifespan=running, on_list_tools=listed, on_call_tool=called)


if __name__ == "__main__":
    uvicorn.run(bridge(sys.argv[2:]).streamable_http_app(), port=int(sys.argv[1]), log_level="error")
