"""A real MCP server for the tests: `python -m tests.activities.mcp.server stdio|sse|streamable-http [PORT]`.

A file that the variable BUSY names holds how many requests by HTTP are still answered with 503.
"""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import uvicorn
from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    InputRequiredResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.activities.mcp.small import started

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("harbour")
kept: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def note(text: str) -> str:
    """Keep a text, and say all that are kept."""
    kept.append(text)
    return f"{os.getpid()}: {', '.join(kept)}"


@server.tool(structured_output=False)
def picture() -> list[Any]:
    return ["A dot:", Image(data=PIXEL, format="png"), Audio(data=b"RIFFtide", format="wav")]


@server.tool(structured_output=False)
def resources() -> CallToolResult:
    return CallToolResult(
        content=[
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="tide://now", text="low")),
            EmbeddedResource(
                type="resource",
                resource=BlobResourceContents(uri="tide://chart", blob="JVBERi0=", mime_type="application/pdf"),
            ),
            ResourceLink(type="resource_link", name="table", uri="tide://table", description="of the week"),
        ]
    )


@server.tool()
def weather() -> dict[str, int]:
    return {"wind": 7}


@server.tool()
def broken() -> str:
    raise ValueError("the lamp is out")


@server.tool(structured_output=False)
def refused() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="no oil")], is_error=True)


@server.tool()
async def slow(path: str) -> str:
    """Say so in a file, and go on until the call is given up."""
    mark = Path(path)
    await asyncio.to_thread(mark.write_text, "started")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        mark.write_text("given up")  # noqa: ASYNC240  nothing may be waited for here
        raise
    return "done"


@server.tool()
async def linger(path: str) -> str:
    """The first of its calls ends with its server alone."""
    times = await asyncio.to_thread(started, path)
    if times == 1:
        await asyncio.sleep(600)
    return f"begun {times} times"


@server.tool()
async def told(ctx: Context[Any]) -> str:
    await ctx.report_progress(1, 2, "half way")
    return "there"


@server.tool()
def long(megabytes: int) -> str:
    return "x" * megabytes * 1_000_000


@server.tool()
async def grow(ctx: Context[Any]) -> str:
    """One more tool from now on."""
    server.add_tool(lambda: "new", name="grown", description="It was not there before.")
    await ctx.session.send_tool_list_changed()
    return "grown"


class Berth(BaseModel):
    name: str


def berth() -> Elicit[Berth]:
    return Elicit("Which berth?", Berth)


@server.tool()
def moor(where: Annotated[Berth, Resolve(berth)]) -> str:
    """It needs to know where, which a person has to say."""
    return f"moored at {where.name}"


class Crew(BaseModel):
    hands: Annotated[int, Field(ge=1, le=9)]
    watch: Literal["port", "starboard"] = "port"
    sings: bool = False


@server.tool()
async def hire(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask twice: for the crew, and then at an address."""
    if ctx.input_responses is None:
        form = ElicitRequestFormParams(message="Whom?", requested_schema=Crew.model_json_schema())
        return InputRequiredResult(input_requests={"crew": ElicitRequest(params=form)}, request_state="first")
    if ctx.request_state == "first":
        crew = ctx.input_responses["crew"].model_dump(mode="json", include={"action", "content"})
        url = ElicitRequestURLParams(message="Sign.", url="https://harbour.example/sign?crew=9")
        return InputRequiredResult(input_requests={"sign": ElicitRequest(params=url)}, request_state=json.dumps(crew))
    return f"{ctx.request_state} signed: {cast(ElicitResult, ctx.input_responses['sign']).action}"


@server.tool()
async def guess(ctx: Context[Any]) -> str | InputRequiredResult:
    """It wants a model to be asked."""
    params = CreateMessageRequestParams(messages=[], max_tokens=10)
    return InputRequiredResult(input_requests={"model": CreateMessageRequest(params=params)})


@server.tool()
async def divine(times: int, ctx: Context[Any]) -> str | InputRequiredResult:
    """It has a model asked, one time after the other."""
    before = json.loads(ctx.request_state or "[]")
    if ctx.input_responses is not None:
        answer = cast(CreateMessageResult, ctx.input_responses["model"])
        before.append(f"{len(before) + 1}: {cast(TextContent, answer.content).text}")
    if len(before) == times:
        return ", ".join(before)
    words = TextContent(type="text", text=f"{len(before) + 1}: how deep?")
    params = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=words)], max_tokens=40, system_prompt="You know the sea."
    )
    asked = CreateMessageRequest(params=params)
    return InputRequiredResult(input_requests={"model": asked}, request_state=json.dumps(before))


class Busy:
    """In front of the server, as a proxy is."""

    def __init__(self, served: ASGIApp, left: Path) -> None:
        self._served, self._left = served, left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (left := int(self._left.read_text())):
            self._left.write_text(str(left - 1))
            await Response("later", 503)(scope, receive, send)
        else:
            await self._served(scope, receive, send)


def main() -> None:
    transport, *port = sys.argv[1:]
    print("flood " * 20_000, file=sys.stderr, flush=True)
    if transport == "stdio":
        server.run(transport="stdio")
    elif busy := os.environ.get("BUSY"):
        app = server.sse_app() if transport == "sse" else server.streamable_http_app()
        uvicorn.run(Busy(app, Path(busy)), port=int(port[0]), log_level="error")
    else:
        server.run(transport=cast(Any, transport), port=int(port[0]))


if __name__ == "__main__":
    main()
