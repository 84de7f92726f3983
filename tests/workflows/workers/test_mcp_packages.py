"""MCP servers of the protocol's own makers, each used by a session."""

import asyncio
import base64
import gzip
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.entries import Prepared
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, ToolResultBlock, ToolResultState
from tests.activities.mcp.serving import answers, serving, stdio
from tests.e2e.processes import ROOT
from tests.servers.local import free_port
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, recorded, results

pytestmark = pytest.mark.server


def program(packages: Path, name: str, *arguments: str) -> dict[str, Any]:
    return {"command": "node", "args": [str(packages / name / "dist" / "index.js"), *arguments]}


@asynccontextmanager
async def everything(packages: Path, transport: str) -> AsyncIterator[dict[str, Any]]:
    """How the server that has one tool of each kind is reached; it is there."""
    if transport == "stdio":
        yield program(packages, "server-everything", "stdio")
        return
    async with served_at(free_port(), packages) as config:
        yield config


@asynccontextmanager
async def served_at(port: int, packages: Path) -> AsyncIterator[dict[str, Any]]:
    started = program(packages, "server-everything", "streamableHttp")
    async with answering(port, started["command"], *started["args"], PORT=str(port)) as config:
        yield config


@asynccontextmanager
async def answering(port: int, *command: str, **environment: str) -> AsyncIterator[dict[str, Any]]:
    """A program that serves MCP at this port; it is there."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await answers(port)
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        await process.wait()


@pytest.mark.proves("A7", "X19")
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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
async def test_every_tool_of_the_reference_server_is_called_and_comes_back(
    transport: str, mcp_packages: Path, unserved: Stage
) -> None:
    asked: dict[str, dict[str, Any]] = {
        "echo": {"message": "fog"},
        "get-annotated-message": {"messageType": "error", "includeImage": True},
        "get-env": {},
        "get-resource-links": {"count": 2},
        "get-resource-reference": {"resourceType": "Text", "resourceId": 1},
        "get-structured-content": {"location": "Chicago"},
        "get-sum": {"a": 2, "b": 3},
        "get-tiny-image": {},
        "gzip-file-as-resource": {"name": "fog.gz", "data": "data:text/plain;base64,Zm9n", "outputType": "resource"},
        "toggle-simulated-logging": {},
        "toggle-subscriber-updates": {},
        "trigger-long-running-operation": {"duration": 0.2, "steps": 2},
    }
    asking: dict[str, dict[str, Any]] = {
        "trigger-elicitation-request": {},
        "trigger-url-elicitation": {"url": "https://harbour.example/"},
        "simulate-research-query": {"topic": "fog"},
    }
    async with everything(mcp_packages, transport) as config:
        offered = {"every": {"mcp_config": config, "is_stateful": True}}
        unserved.settings = unserved.settings.model_copy(update={"mcp": offered})
        came, files, listed = await called(unserved, "every", {**asked, **asking})

    assert listed == {*asked, *asking}
    failed = {name: state for name, (state, _) in came.items() if state is not ToolResultState.SUCCESS}
    assert failed == {"simulate-research-query": ToolResultState.ERROR}, "it runs as a task of the server alone"
    (packed,) = files["gzip-file-as-resource"]
    assert isinstance(packed.source, Base64Source)
    assert packed.source.media_type == "application/gzip"
    assert gzip.decompress(base64.b64decode(packed.source.data)) == b"fog"


@asynccontextmanager
async def files_of(packages: Path, transport: str, area: Path) -> AsyncIterator[dict[str, Any]]:
    """How the server of files is reached. It is a program; by HTTP it is behind a bridge."""
    started = program(packages, "server-filesystem", str(area))
    if transport == "stdio":
        yield started
        return
    port = free_port()
    bridge = (sys.executable, "-m", "tests.activities.mcp.bridge", str(port))
    async with answering(port, *bridge, started["command"], *started["args"]) as config:
        yield config


@pytest.mark.timeout(120)
@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
async def test_every_tool_of_the_file_server_is_called_and_comes_back(
    transport: str, mcp_packages: Path, unserved: Stage, tmp_path: Path
) -> None:
    area = tmp_path / "area"
    area.mkdir()
    (area / "log.txt").write_text("low tide\n")
    log, folder = str(area / "log.txt"), str(area)
    asked: dict[str, dict[str, Any]] = {
        "read_file": {"path": log},
        "read_text_file": {"path": log, "head": 1},
        "read_media_file": {"path": log},
        "read_multiple_files": {"paths": [log, log]},
        "write_file": {"path": str(area / "new.txt"), "content": "high tide"},
        "edit_file": {"path": log, "edits": [{"oldText": "low", "newText": "ebb"}]},
        "create_directory": {"path": str(area / "quay")},
        "list_directory": {"path": folder},
        "list_directory_with_sizes": {"path": folder},
        "directory_tree": {"path": folder},
        "move_file": {"source": str(area / "new.txt"), "destination": str(area / "quay" / "new.txt")},
        "search_files": {"path": folder, "pattern": "**/*.txt"},
        "get_file_info": {"path": log},
        "list_allowed_directories": {},
    }
    async with files_of(mcp_packages, transport, area) as config:
        offered = {"files": {"mcp_config": config, "is_stateful": True}}
        unserved.settings = unserved.settings.model_copy(update={"mcp": offered})
        came, _, listed = await called(unserved, "files", asked)

    assert listed == set(asked)
    assert {name: state for name, (state, _) in came.items() if state is not ToolResultState.SUCCESS} == {}
    assert (area / "quay" / "new.txt").read_text() == "high tide"
    assert "ebb tide" in (area / "log.txt").read_text()
    assert "quay/new.txt" in came["search_files"][1]


@pytest.mark.proves("X19")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("transport", ["stdio", "streamable-http"])
async def test_every_tool_of_a_server_in_python_is_called_and_comes_back(transport: str, unserved: Stage) -> None:
    asked: dict[str, dict[str, Any]] = {
        "add": {"a": 2, "b": 3},
        "note": {"text": "fog"},
        "picture": {},
        "resources": {},
        "weather": {},
        "broken": {},
        "refused": {},
        "told": {},
        "long": {"megabytes": 1},
        "grow": {},
    }
    async with AsyncExitStack() as opened:
        config, port = stdio(), free_port()
        if transport == "streamable-http":
            await opened.enter_async_context(serving(transport, port))
            config = {"url": f"http://127.0.0.1:{port}/mcp"}
        unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": {"mcp_config": config}}})
        came, files, listed = await called(unserved, "harbour", asked)

    assert listed - set(asked) == {"slow", "linger", "moor", "hire", "guess", "divine"}, "they wait, or ask somebody"
    failed = {name for name, (state, _) in came.items() if state is not ToolResultState.SUCCESS}
    assert failed == {"broken", "refused"}
    assert (came["add"][1], came["told"][1], came["refused"][1]) == ("5", "there", "no oil")
    assert came["note"][1].endswith(": fog")
    assert [len(files[name]) for name in ("picture", "resources")] == [2, 1]


def attached(result: ToolResultBlock) -> list[DataBlock]:
    return [] if isinstance(result.output, str) else [part for part in result.output if isinstance(part, DataBlock)]


async def called(
    stage: Stage, server: str, asked: dict[str, dict[str, Any]]
) -> tuple[dict[str, tuple[ToolResultState, str]], dict[str, list[DataBlock]], set[str]]:
    """Each of these tools by one session, whose person allows each call: what came of it, its files, and which tools
    there are."""
    session = stage.session(
        {"tool_calls": [{"name": f"mcp__{server}__{name}", "input": given} for name, given in asked.items()]},
        {"text": "All of it."},
        tools=(),
        mcps=[{"name": server}],
        permission={"mode": "default"},
    )
    async with stage.another_worker():
        reply = await session.reply("Try all of it.")
        waiting = await session.pending()
        for call in waiting:
            await session.confirm(call, allow=True)
        reply = await session.wait(reply.id)
        entries = await recorded(stage, session)
    assert len(waiting) == len(asked)
    tools = next(entry.tools for entry in entries if isinstance(entry, Prepared) and entry.tools)
    return (
        dict(zip(asked, results(reply), strict=True)),
        {name: attached(result) for name, result in zip(asked, reply.get_tool_results(), strict=True)},
        {tool.name.removeprefix(f"mcp__{server}__") for tool in tools},
    )
