"""Real MCP servers as processes, and what it takes to use their tools without a session."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import open_servers
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.values.spec.mcp import MCPClient
from tests.e2e.processes import ROOT
from tests.e2e.warm_cli import MCP_SERVER
from tests.e2e.warm_process import WarmProcess

SECRETS = WorkerSecrets({"TIDE_TOKEN": "tide-token-moss"})
CLIENT = MCPClient(name="harbour")
START_SECONDS = 60.0
PATHS = {"streamable-http": "/mcp", "sse": "/sse"}


def stdio() -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", MCP_SERVER, "stdio"], "cwd": str(ROOT)}


def small(**env: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", str(Path(__file__).with_name("small.py"))], "env": env}


def servers(config: dict[str, Any], **further: Any) -> McpServers:
    table = {"harbour": {"mcp_config": config, **further}}
    return McpServers(open_servers(table, "", SECRETS), SECRETS)


async def tools_of(mcp: McpServers) -> Toolbox:
    return await mcp.beside(Toolbox(()), (CLIENT,))


@asynccontextmanager
async def serving(transport: str, port: int, busy: Path | None = None) -> AsyncIterator[WarmProcess]:
    """A server that answers on the port; it is killed at the end. `busy` holds how many requests get 503 first."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"BUSY": str(busy)} if busy else {})}
    with Path(os.devnull).open("wb") as nowhere:  # noqa: ASYNC230  it never waits
        process = await WarmProcess.program((MCP_SERVER, transport, str(port)), environment, ROOT, nowhere.fileno())
    try:
        await answers(port)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def answers(port: int) -> None:
    """Wait until somebody listens there."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


@asynccontextmanager
async def used(mcp: McpServers) -> AsyncIterator[McpServers]:
    try:
        yield mcp
    finally:
        await mcp.close()
