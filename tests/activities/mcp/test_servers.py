"""Tools of real MCP servers, by each transport: listed, called, refused, lost, given up."""

import asyncio
import os
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.process.program_output import told_to
from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.activities.shell.environment_variables import INHERITED
from longhaul.activities.tool import GivenUp, ToolError, ToolOutput
from longhaul.activities.tools.registry import AbsentTool, Toolbox
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock
from longhaul.agent.values.conversation.tools import Effect
from tests.activities.mcp.serving import CLIENT, PATHS, servers, serving, small, stdio, tools_of, used
from tests.activities.process.pids import until
from tests.activities.tools.calls import place_at, use
from tests.e2e.processes import ROOT
from tests.limits import usual
from tests.servers.local import free_port

SMALL = Path(__file__).with_name("small.py")
BASE_PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")
"""Outside of this project's environment: a sandbox shows one folder of Python's."""
TRANSPORTS = ("stdio", "streamable-http", "sse")
Addresses = dict[str, str]


@pytest.fixture(scope="module")
async def addresses() -> AsyncIterator[Addresses]:
    """Of one real server for each transport that has one."""
    ports = {transport: free_port() for transport in PATHS}
    async with serving("sse", ports["sse"]), serving("streamable-http", ports["streamable-http"]):
        yield {transport: f"http://127.0.0.1:{ports[transport]}{path}" for transport, path in PATHS.items()}


def harbour(transport: str, addresses: Addresses) -> McpServers:
    return servers(small() if transport == "stdio" else {"url": addresses[transport]})


async def call(mcp: McpServers, name: str, **arguments: object) -> ToolOutput:
    tool = (await tools_of(mcp)).get(f"mcp__harbour__{name}")
    assert tool is not None

    async def used_so() -> ToolOutput:
        return await use(tool, place_at(ROOT), **arguments)

    output: ToolOutput = await ActivityEnvironment().run(used_so)
    return output


def blocks(output: ToolOutput) -> tuple[TextBlock | DataBlock, ...]:
    assert isinstance(output.output, tuple)
    return output.output


@pytest.mark.proves("X19")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_tools_are_listed_and_called(transport: str, addresses: Addresses) -> None:
    told: list[str] = []
    async with used(servers(stdio()) if transport == "stdio" else harbour(transport, addresses)) as mcp:
        toolbox = await tools_of(mcp)
        with told_to(told.append):
            there = await call(mcp, "told")

    assert {"mcp__harbour__add", "mcp__harbour__slow"} < set(toolbox.names)
    add = toolbox.descriptor("mcp__harbour__add")
    assert add is not None
    assert (add.description, add.effect, add.read_only) == ("Add two numbers.", Effect.ONCE, False)
    assert add.input_schema["required"] == ["a", "b"]
    assert (there.output, told) == ("there", ["half way (1 of 2)\n"])


@pytest.mark.proves("X19")
async def test_each_kind_of_content_has_its_block(addresses: Addresses) -> None:
    names = ("picture", "resources", "weather", "refused", "broken")
    async with used(harbour("streamable-http", addresses)) as mcp:
        outputs = {name: await call(mcp, name) for name in names}

    dot, image, sound = blocks(outputs["picture"])
    assert dot == TextBlock(text="A dot:")
    assert isinstance(image, DataBlock)
    assert isinstance(sound, DataBlock)
    assert (image.source.media_type, sound.source.media_type) == ("image/png", "audio/wav")
    text, chart, link = blocks(outputs["resources"])
    assert text == TextBlock(text="[resource tide://now]\nlow")
    assert chart == DataBlock(source=Base64Source(data="JVBERi0=", media_type="application/pdf"), name="tide://chart")
    assert link == TextBlock(text="[resource table: tide://table (of the week)]")
    assert outputs["weather"].metadata == {"structured_content": {"wind": 7}}
    assert '"wind": 7' in str(outputs["weather"].output)
    assert (outputs["refused"].output, outputs["refused"].failed) == ("no oil", True)
    assert (outputs["broken"].output, outputs["broken"].failed) == ("Error executing tool broken", True)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_long_answer_comes_whole_or_is_told(transport: str, addresses: Addresses) -> None:
    async with used(harbour(transport, addresses)) as mcp:
        if transport == "sse":
            with pytest.raises(GivenUp, match=r"answered with too much.*It may have done part of its work"):
                await call(mcp, "long", megabytes=10)
        else:
            assert (await call(mcp, "long", megabytes=10)).output == "x" * 10_000_000


async def test_a_program_sees_nothing_of_the_worker_but_what_it_was_given() -> None:
    async with used(servers(small(KEEPER="[secret TIDE_TOKEN]"))) as mcp:
        seen = str((await call(mcp, "environment")).output)

    assert "PYTEST_CURRENT_TEST" in os.environ
    assert seen.endswith("KEEPER=tide-token-moss")
    assert set(seen.split()[:-1]) <= {*INHERITED, "SHELL", "TERM", "LC_CTYPE", "LC_ALL", "PWD", "KEEPER"}


@pytest.mark.proves("X19")
@pytest.mark.skipif(bool(bwrap_problem()), reason="there is no bubblewrap")
@pytest.mark.parametrize("sandbox", [True, False])
async def test_a_program_in_a_sandbox_sees_and_writes_its_folder_and_nothing_of_others(
    sandbox: bool, tmp_path: Path
) -> None:
    own, others = tmp_path / "own", tmp_path / "others"
    own.mkdir()
    others.mkdir()
    (others / "seen").touch()
    shutil.copy(SMALL, own)

    async def sees(grown: Path) -> bool:
        """Whether it sees that file; one that it does not see it makes."""
        env = {"GROWN": str(grown)}
        program = {"command": BASE_PYTHON, "args": ["-S", "small.py"], "cwd": str(own), "env": env}
        reads = [sys.base_prefix] if sandbox else []
        async with used(servers(program, sandbox=sandbox, sandbox_reads=reads)) as mcp:
            names = (await tools_of(mcp)).names
            assert "mcp__harbour__grow" in names
            if "mcp__harbour__grown" not in names and grown != others / "seen":
                await call(mcp, "grow")
            return "mcp__harbour__grown" in names

    assert not await sees(own / "made")
    assert (own / "made").exists()
    assert await sees(others / "seen") == (not sandbox)
    assert not await sees(tmp_path / "made")
    assert (tmp_path / "made").exists() == (not sandbox)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_interrupted_call_is_given_up_by_the_server_too(
    transport: str, addresses: Addresses, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    async with used(harbour(transport, addresses)) as mcp:
        calling = asyncio.create_task(call(mcp, "slow", path=str(mark)))
        await until(lambda: mark.exists() and mark.read_text() == "started")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await until(lambda: mark.read_text() == "given up")


@pytest.mark.proves("X19")
@pytest.mark.parametrize(("effect", "error"), [("once", GivenUp), ("idempotent", ToolError)])
async def test_a_server_that_ends_under_a_call_is_told_by_the_calls_effect(effect: str, error: type[Exception]) -> None:
    async with used(servers(small(), effects={"end": effect})) as mcp:
        with pytest.raises(error, match="was lost while the call was under way"):
            await call(mcp, "end")
        four = await call(mcp, "add", a=2, b=2)

    assert four.output == "4"


@pytest.mark.proves("X19")
async def test_a_server_that_is_down_costs_its_own_tools_alone_and_is_there_again_when_it_answers() -> None:
    port = free_port()
    mcp = servers({"url": f"http://127.0.0.1:{port}/mcp"})
    try:
        toolbox, told = await mcp.for_reply((CLIENT,))
        absent = (await mcp.beside(Toolbox(()), (CLIENT,), {"mcp__harbour__add": "abc"})).get("mcp__harbour__add")
        async with serving("streamable-http", port):
            again, nothing = await _newest(mcp)
            three = await call(mcp, "add", a=1, b=2)
        kept, silent = await mcp.for_reply((CLIENT,))
    finally:
        await mcp.close()

    assert toolbox.names == ()
    assert isinstance(absent, AbsentTool)
    assert (await absent.examine({}, place_at(ROOT))).arguments_error.endswith("Nothing was done")
    assert len(told) == 1
    assert "'harbour' can't be reached" in told[0]
    assert told[0].endswith("Its tools are missing until it can be reached.")
    assert ("mcp__harbour__add" in again.names, nothing, three.output) == (True, (), "3")
    assert (kept.names, silent) == (again.names, ())


async def test_a_server_that_says_nothing_is_waited_for_no_longer_than_the_bound() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    mcp = servers({"url": f"http://127.0.0.1:{port}/mcp", "timeout": 0.5}, execution_timeout=0.5)
    began = time.monotonic()
    try:
        _, told = await mcp.for_reply((CLIENT,))
        asked = time.monotonic()
        _, at_once = await mcp.for_reply((CLIENT,))
    finally:
        await mcp.close()
        listener.close()

    assert (len(told), at_once) == (1, told)
    assert asked - began < usual(25)
    assert time.monotonic() - asked < asked - began


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exec no-such-program-of-ours", "not found"),
        ("echo tide-token-moss >&2; exit 3", r"\[secret TIDE_TOKEN\]"),
        ("echo '{\"jsonrpc\": 5}'; exit 3", "can't be reached"),
    ],
)
async def test_a_program_that_is_no_server_is_told_with_its_last_words(command: str, why: str) -> None:
    mcp = servers({"command": "sh", "args": ["-c", command]})
    try:
        _, told = await mcp.for_reply((CLIENT,))
    finally:
        await mcp.close()

    assert len(told) == 1
    (sentence,) = told
    assert re.search(why, sentence)
    assert "tide-token-moss" not in sentence


async def test_a_changed_tool_is_not_run_as_the_one_that_was_decided_on(tmp_path: Path) -> None:
    grown = tmp_path / "grown"
    mcp = servers(small(GROWN=str(grown)))
    try:
        before = await tools_of(mcp)
        digest = before.descriptor("mcp__harbour__add").digest  # type: ignore[union-attr]
        grown.touch()
        changed = await mcp.beside(Toolbox(()), (CLIENT,), {"mcp__harbour__add": "another digest"})
        same = await mcp.beside(Toolbox(()), (CLIENT,), {"mcp__harbour__add": digest, "mcp__harbour__gone": ""})
    finally:
        await mcp.close()

    assert "mcp__harbour__grown" not in before.names
    assert "mcp__harbour__grown" in same.names
    assert isinstance(changed.get("mcp__harbour__add"), AbsentTool)
    assert isinstance(same.get("mcp__harbour__gone"), AbsentTool)
    assert not isinstance(same.get("mcp__harbour__add"), AbsentTool)


async def _newest(mcp: McpServers) -> tuple[Toolbox, tuple[str, ...]]:
    """When a server that was down is asked again."""
    async with asyncio.timeout(30):
        while True:
            found, told = await mcp.for_reply((CLIENT,))
            if found.names:
                return found, told
            await asyncio.sleep(0.05)
