"""Longhaul as an MCP server, for one caller: over stdin and stdout, or for one request by HTTP. It keeps nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import mcp_types as types
from anyio.abc import ObjectReceiveStream
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.text import did_you_mean
from longhaul.starter.serve.mcp_tools import TOOLS, OfferedTool, SessionText, ToolRequest, seconds_for
from longhaul.starter.serve.problems import Problem, problem_of
from longhaul.starter.serve.request_checks import check_fields
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import Caller
from longhaul.starter.visible import harmless

logging.getLogger("mcp.server").setLevel(logging.WARNING)
"""Each request by HTTP begins and ends a session of the package, which says so in three lines."""

INSTRUCTIONS = (
    "Longhaul runs agents whose sessions outlive crashes, redeploys and long waits. Start one with start_session, "
    "and return with read and the number that it gave, even days later. A call that needs approval waits in "
    "list_inbox: show it to the person you work for before you decide."
)


def server_for(served: Served, caller: Caller) -> "Server[dict[str, object]]":
    """Offers what the caller's scopes are good for."""

    async def listed(
        context: "ServerRequestContext[dict[str, object]]", params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values() if tool.scope in caller.scopes])

    async def called(
        context: "ServerRequestContext[dict[str, object]]", params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        del context
        try:
            return await _called(served, caller, params)
        except Exception as error:  # noqa: BLE001  as by HTTP: a sentence for whoever asked, and the log has the rest
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=harmless(problem_of(error).detail))], is_error=True
            )

    return Server("longhaul", version=_version(), instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called)


async def _called(served: Served, caller: Caller, params: types.CallToolRequestParams) -> types.CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise Problem("not-found", f"there is no tool {params.name[:100]!r}; {did_you_mean(params.name, TOOLS)}")
    if tool.scope not in caller.scopes:
        raise Problem("forbidden", f"{tool.name}: this needs a token with the scope {tool.scope!r}")
    given = tool.arguments.model_validate(params.arguments or {})
    check_fields(tool.fields, caller, given)
    async with asyncio.timeout(seconds_for(given)):
        answer = await tool.handler(ToolRequest(served, caller, given))
    said = f"{answer.text}\n[since: {answer.next}]" if isinstance(answer, SessionText) else answer.model_dump_json()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=said)], structured_content=answer.model_dump(mode="json")
    )


def _described(tool: OfferedTool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=tool.reads, destructive_hint=tool.decides, open_world_hint=not tool.reads
    )
    schema = tool.arguments.model_json_schema()
    return types.Tool(name=tool.name, description=tool.does, input_schema=schema, annotations=hints)


def _version() -> str:
    try:
        return version("longhaul-agents")
    except PackageNotFoundError:
        return ""


async def serve_lines(server: "Server[dict[str, object]]") -> None:
    """Over stdin and stdout, until the client closes them."""
    async with stdio_server() as (heard, said):
        readable = _Readable(heard.receive, said.send, heard.aclose)
        await server.run(readable, said, server.create_initialization_options())


@dataclass(frozen=True)
class _Readable(ObjectReceiveStream[SessionMessage | Exception]):
    """What can be read of a client's lines; the rest is answered as it is come upon. Taken in by a task of its own, the
    end would be heard before the last answer is given, and the package cancels what is under way then."""

    hear: Callable[[], Awaitable[SessionMessage | Exception]]
    say: Callable[[SessionMessage], Awaitable[None]]
    close: Callable[[], Awaitable[None]]

    async def receive(self) -> SessionMessage | Exception:
        while isinstance(one := await self.hear(), Exception):
            # It is answered as by HTTP: the package leaves a line that it can't read without an answer,
            # and its client waits for ever.
            why = what_is_wrong(one) if isinstance(one, ValidationError) else str(one)
            said = types.ErrorData(code=types.PARSE_ERROR, message=f"Parse error: {harmless(why)}")
            unreadable = SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=said))
            await self.say(unreadable)
        return one

    async def aclose(self) -> None:
        await self.close()


async def answer(served: Served, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
    """One request by Streamable HTTP, whose next one may come to another process."""
    manager = StreamableHTTPSessionManager(server_for(served, caller), json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)
