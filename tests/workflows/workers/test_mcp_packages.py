"""MCP servers of the protocol's own makers, each used by a session."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.mcp.serving import answers, free_port
from tests.workflows.conftest import Stage
from tests.workflows.letters import calls, results

pytestmark = pytest.mark.server


def program(packages: Path, name: str, *arguments: str) -> dict[str, Any]:
    return {"command": "node", "args": [str(packages / name / "dist" / "index.js"), *arguments]}


@asynccontextmanager
async def everything(packages: Path, transport: str) -> AsyncIterator[dict[str, Any]]:
    """How the server that has one tool of each kind is reached; it is there."""
    if transport == "stdio":
        yield program(packages, "server-everything", "stdio")
        return
    port, started = free_port(), program(packages, "server-everything", "streamableHttp")
    process = await asyncio.create_subprocess_exec(
        started["command"],
        *started["args"],
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await answers(port)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        await process.wait()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("transport", "is_stateful"), [("stdio", True), ("streamable-http", True), ("streamable-http", False)]
)
async def test_a_session_uses_each_kind_of_tool_of_the_reference_server(
    transport: str, is_stateful: bool, mcp_packages: Path, unserved: Stage
) -> None:
    async with everything(mcp_packages, transport) as config:
        offered = {"every": {"mcp_config": config, "is_stateful": is_stateful}}
        unserved.settings = unserved.settings.model_copy(update={"mcp": offered})
        session = unserved.session(
            calls("mcp__every__echo", message="fog"),
            calls("mcp__every__get-sum", a=2, b=3),
            calls("mcp__every__get-structured-content", location="Chicago"),
            calls("mcp__every__get-resource-links", count=2),
            calls("mcp__every__get-tiny-image"),
            calls("mcp__every__trigger-long-running-operation", duration=1, steps=2),
            {"text": "All of it."},
            tools=(),
            mcps=[{"name": "every"}],
            permission={"rules": [{"tool_name": "mcp__every"}]},
        )
        async with unserved.another_worker():
            done = await session.reply("Try everything.")

    came = results(done)
    assert [state for state, _ in came] == [ToolResultState.SUCCESS] * 6
    assert [text for _, text in came[:2]] == ["Echo: fog", "The sum of 2 and 3 is 5."]
    assert '"conditions"' in came[2][1]
    assert "[resource " in came[3][1]
    assert came[5][1] == "Long running operation completed. Duration: 1 seconds, Steps: 2."


@pytest.mark.timeout(120)
async def test_a_session_writes_and_reads_by_the_file_server_as_it_is_let(
    mcp_packages: Path, unserved: Stage, tmp_path: Path
) -> None:
    area = tmp_path / "area"
    area.mkdir()
    (area / "log.txt").write_text("low tide\n")
    offered = {"files": {"mcp_config": program(mcp_packages, "server-filesystem", str(area))}}
    unserved.settings = unserved.settings.model_copy(update={"mcp": offered})
    session = unserved.session(
        calls("mcp__files__read_text_file", path=str(area / "log.txt")),
        calls("mcp__files__write_file", path=str(area / "new.txt"), content="high tide"),
        calls("mcp__files__read_text_file", path="/etc/hostname"),
        {"text": "Written."},
        tools=(),
        mcps=[{"name": "files"}],
        permission={"rules": [{"tool_name": "mcp__files__read_text_file"}]},
    )
    async with unserved.another_worker():
        waiting = await session.reply("Note the tide.")
        (call,) = await session.pending()
        there = (area / "new.txt").exists()
        await session.confirm(call, allow=True)
        done = await session.wait(waiting.id)

    (read, before), (wrote, _), (outside, refused) = results(done)
    assert (call.tool, there) == ("mcp__files__write_file", False)
    assert (read, before) == (ToolResultState.SUCCESS, "low tide\n")
    assert (wrote, (area / "new.txt").read_text()) == (ToolResultState.SUCCESS, "high tide")
    assert outside is ToolResultState.ERROR
    assert "outside allowed directories" in refused
