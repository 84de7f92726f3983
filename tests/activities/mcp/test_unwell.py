"""Servers that say too much, have no time, change what they offer, or are used by nobody; and names that they don't
have."""

import asyncio
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities.mcp.allowed_servers import open_servers
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.tool import GivenUp, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.registry import AbsentTool, Toolbox
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.spec.mcp import CONNECTION, MCPClient
from tests.activities.mcp.serving import CLIENT, SECRETS, servers, serving, small, tools_of, used
from tests.activities.mcp.small import TOOLS
from tests.activities.process.pids import alive, until
from tests.activities.tools.calls import place_at
from tests.e2e.processes import ROOT
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

REFUSED_SECONDS = 25
"""Four tries, with pauses: each had waited as long as for an answer."""
KEEPING = {"mcp_config": small(), "is_stateful": True}


async def call(
    mcp: McpServers, name: str, last: str | None = None, session: str = "one", **arguments: Any
) -> ToolOutput:
    """As an activity of a session does. `last`: the connection of the call before."""

    async def run() -> ToolOutput:
        tool = (await tools_of(mcp)).get(f"mcp__harbour__{name}")
        assert tool is not None
        asked = ToolCall("call-7", arguments, place_at(ROOT), CallAnalysis(cwd=str(ROOT)), connection=last)
        return await tool.run(asked)

    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id=session)
    output: ToolOutput = await environment.run(run)
    return output


@pytest.mark.proves("X19")
@pytest.mark.parametrize("is_stateful", [False, True])
async def test_a_line_without_an_end_is_told_and_the_server_begins_again(is_stateful: bool) -> None:
    async with used(servers(small(), is_stateful=is_stateful)) as mcp:
        before = await call(mcp, "note", text="fog")
        last = before.metadata.get(CONNECTION)
        with pytest.raises(GivenUp, match=r"has answered with too much.*It may have done part of its work"):
            await call(mcp, "endless", last, megabytes=80)
        after = await call(mcp, "note", last, text="rain")

    assert str(after.output).endswith(": rain")
    assert str(after.output).startswith("[The MCP server 'harbour' restarted") == is_stateful


async def test_a_flood_of_notifications_and_broken_lines_leaves_the_answer_whole() -> None:
    async with used(servers(small())) as mcp:
        assert (await call(mcp, "babble", times=2_000)).output == "said"


async def test_a_listing_that_is_told_to_come_later_is_asked_for_again(tmp_path: Path) -> None:
    busy, port = tmp_path / "busy", free_port()
    busy.write_text("2")
    async with (
        serving("streamable-http", port, busy),
        used(servers({"url": f"http://127.0.0.1:{port}/mcp"})) as mcp,
    ):
        toolbox, told = await mcp.for_reply((CLIENT,))

    assert "mcp__harbour__add" in toolbox.names
    assert (told, busy.read_text()) == ((), "0")


@pytest.mark.proves("X19")
async def test_a_server_without_time_costs_its_own_tools_alone(tmp_path: Path) -> None:
    busy, port = tmp_path / "busy", free_port()
    busy.write_text("1000000")
    table = {"harbour": {"mcp_config": {"url": f"http://127.0.0.1:{port}/mcp"}}, "quay": {"mcp_config": small()}}
    async with (
        serving("streamable-http", port, busy),
        used(McpServers(open_servers(table, "", SECRETS), SECRETS)) as mcp,
    ):
        toolbox, told = await mcp.for_reply((CLIENT, MCPClient(name="quay")))

    assert "mcp__quay__add" in toolbox.names
    assert "mcp__harbour__add" not in toolbox.names
    assert told == (
        "the MCP server 'harbour' takes no calls now: HTTP 503. Its tools are missing until it can be reached.",
    )


async def test_a_list_from_before_is_kept_while_its_server_has_no_time(tmp_path: Path) -> None:
    busy, port = tmp_path / "busy", free_port()
    busy.write_text("0")
    async with (
        serving("streamable-http", port, busy),
        used(servers({"url": f"http://127.0.0.1:{port}/mcp"})) as mcp,
    ):
        listed, _ = await mcp.for_reply((CLIENT,))
        busy.write_text("1000000")
        # Nobody has this one: so it is looked for in a new list.
        kept = await mcp.beside(Toolbox(()), (CLIENT,), {"mcp__harbour__gone": ""})

    assert "mcp__harbour__add" in listed.names
    assert set(kept.names) == {*listed.names, "mcp__harbour__gone"}
    assert isinstance(kept.get("mcp__harbour__gone"), AbsentTool)


@pytest.mark.alone
async def test_a_call_that_a_server_of_the_older_transport_does_not_take_is_told_at_once(tmp_path: Path) -> None:
    busy, port = tmp_path / "busy", free_port()
    busy.write_text("0")
    async with (
        serving("sse", port, busy),
        used(servers({"url": f"http://127.0.0.1:{port}/sse"}, effects={"add": "read"})) as mcp,
    ):
        first = await call(mcp, "add", a=1, b=2)
        busy.write_text("1000000")
        with pytest.raises(ToolError, match=r"(?s)503 Service Unavailable.*Nothing was done"):
            async with asyncio.timeout(REFUSED_SECONDS):
                await call(mcp, "add", a=2, b=2)

    assert first.output == "3"


async def test_a_reply_in_its_midst_goes_on_with_the_list_from_before_and_is_never_left_without_one(
    tmp_path: Path,
) -> None:
    busy, port = tmp_path / "busy", free_port()
    busy.write_text("0")
    harbour = {"url": f"http://127.0.0.1:{port}/mcp"}
    async with serving("streamable-http", port, busy), used(servers(harbour)) as mcp, used(servers(harbour)) as other:
        listed, _ = await mcp.for_reply((CLIENT,))
        busy.write_text("1000000")
        kept, told = await mcp.for_reply((CLIENT,), ("harbour",), is_under_way=True)
        with pytest.raises(ApplicationError, match="takes no calls now: HTTP 503"):
            await other.for_reply((CLIENT,), ("harbour",), is_under_way=True)

    assert kept.names == listed.names
    assert told == ("the MCP server 'harbour' offers other tools now, and gave no list of them: the old one counts",)


async def test_what_a_server_says_it_has_changed_is_there_with_the_next_reply() -> None:
    port = free_port()
    async with (
        serving("streamable-http", port),
        used(servers({"url": f"http://127.0.0.1:{port}/mcp"}, is_stateful=True)) as mcp,
    ):
        before, _ = await mcp.for_reply((CLIENT,))
        after = before
        async with asyncio.timeout(SURE_SECONDS):
            # Said again and again: who has only just connected may not listen yet.
            while "mcp__harbour__grown" not in after.names:
                await call(mcp, "grow")
                after, _ = await mcp.for_reply((CLIENT,))
        grown = await call(mcp, "grown")

    assert set(after.names) - set(before.names) == {"mcp__harbour__grown"}
    assert grown.output == "new"


async def test_a_server_that_keeps_state_ends_when_nobody_uses_it_and_the_next_call_is_told() -> None:
    async with used(McpServers(open_servers({"harbour": KEEPING}, "", SECRETS), SECRETS, idle_seconds=0.2)) as mcp:
        first = await call(mcp, "note", text="fog")
        pid = int(str(first.output).partition(":")[0])
        await until(lambda: not alive(pid))
        second = await call(mcp, "note", first.metadata[CONNECTION], text="rain")

    assert re.fullmatch(r"\[The MCP server 'harbour' restarted before this call.*\]\n\d+: rain", str(second.output))


@pytest.mark.parametrize("is_stateful", [False, True])
async def test_a_call_that_outlives_the_time_that_a_server_is_kept_unused_has_its_answer(is_stateful: bool) -> None:
    table = {"harbour": {"mcp_config": small(), "is_stateful": is_stateful}}
    async with used(McpServers(open_servers(table, "", SECRETS), SECRETS, idle_seconds=1.0)) as mcp:
        first = await call(mcp, "note", text="fog")
        second = await call(mcp, "doze", first.metadata.get(CONNECTION), seconds=1.5)

    assert second.output == "awake"


@pytest.mark.proves("X19")
@pytest.mark.parametrize("last", [None, "the one of another worker"])
async def test_calls_that_are_made_together_share_one_server(last: str | None) -> None:
    async with used(McpServers(open_servers({"harbour": KEEPING}, "", SECRETS), SECRETS)) as mcp:
        await tools_of(mcp)
        outputs = await asyncio.gather(*(call(mcp, "note", last, text=text) for text in ("fog", "rain", "sun")))
        kept = await call(mcp, "note", outputs[0].metadata[CONNECTION], text="ice")

    said = [str(output.output).rpartition("]\n") for output in outputs]
    assert {text.partition(":")[0] for *_, text in said} == {str(kept.output).partition(":")[0]}
    assert all(note.startswith("[The MCP server 'harbour' restarted") == (last is not None) for note, *_ in said)
    assert set(str(kept.output).partition(": ")[2].split(", ")) == {"fog", "rain", "sun", "ice"}


@pytest.mark.proves("X19")
@pytest.mark.parametrize(
    ("agents", "operators", "told", "missing"),
    [
        ({"enable_tools": ("ad", "note")}, {}, "no tool 'ad', which its enable_tools names; did you mean 'add'?", ()),
        ({}, {"enable_tools": ("ad", "note")}, "no tool 'ad', which its enable_tools names; did you mean 'add'?", ()),
        ({}, {"effects": {"nte": "read"}}, "no tool 'nte', which its effects names; did you mean 'note'?", ()),
        (
            {"disable_tools": ("note", "ends")},
            {},
            "no tool 'ends', which its disable_tools names; did you mean 'end'? 'end' is left out too.",
            ("note", "end"),
        ),
        (
            {},
            {"disable_tools": ("sloow",)},
            "no tool 'sloow', which its disable_tools names; did you mean 'slow'? 'slow' is left out too.",
            ("slow",),
        ),
        (
            {"disable_tools": ("harpoon",)},
            {},
            "no tool 'harpoon', which its disable_tools names; it has: " + ", ".join(sorted(set(TOOLS) - {"grown"})),
            (),
        ),
    ],
)
async def test_a_name_that_is_no_tool_of_the_server_is_told(
    agents: dict[str, Any], operators: dict[str, Any], told: str, missing: tuple[str, ...]
) -> None:
    async with used(servers(small(), **operators)) as mcp:
        toolbox, sentences = await mcp.for_reply((MCPClient(name="harbour", **agents),))
        again = (await mcp.for_reply((MCPClient(name="harbour", **agents),)))[1]

    assert sentences == again == (f"the MCP server 'harbour' has {told}",)
    assert not {f"mcp__harbour__{name}" for name in missing} & set(toolbox.names)
    assert "mcp__harbour__note" in toolbox.names or "note" in missing


async def test_of_many_names_that_are_no_tools_the_first_are_told() -> None:
    async with used(servers(small())) as mcp:
        names = tuple(f"harpoon{number}" for number in range(9))
        _, sentences = await mcp.for_reply((MCPClient(name="harbour", disable_tools=names),))

    assert len(sentences) == 6
    assert sentences[-1] == "4 more names are no tools of it"


async def test_names_that_are_right_are_not_spoken_of() -> None:
    client = MCPClient(name="harbour", enable_tools=("add", "note"), disable_tools=("note",))
    async with used(servers(small(), effects={"add": "read"})) as mcp:
        toolbox, sentences = await mcp.for_reply((client,))

    assert (toolbox.names, sentences) == (("mcp__harbour__add",), ())


async def test_of_a_server_that_says_too_much_of_its_tools_the_rest_is_told() -> None:
    async with used(servers(small(MANY="500", WORDS=" at noon" * 200))) as mcp:
        toolbox, (told,) = await mcp.for_reply((CLIENT,))
        few = MCPClient(name="harbour", enable_tools=("add", "tide_499"))
        named, untold = await mcp.for_reply((few,))

    left = 500 + len(TOOLS) - 1 - len(toolbox.names)
    assert 0 < left < 500
    assert told == (
        f"the MCP server 'harbour' says more than 500,000 characters of its tools: the last {left} are left out; name "
        "those that are needed in enable_tools"
    )
    assert (named.names, untold) == (("mcp__harbour__add", "mcp__harbour__tide_499"), ())


async def test_calls_of_one_session_share_a_program_that_keeps_nothing_and_other_sessions_do_not() -> None:
    async with used(servers(small())) as mcp:
        first, second = [str((await call(mcp, "note", text=text)).output) for text in ("fog", "rain")]
        elsewhere = str((await call(mcp, "note", session="two", text="sun")).output)
        together = await asyncio.gather(*(call(mcp, "note", text="hail") for _ in range(2)))

    pid, _, notes = second.partition(": ")
    assert (first, notes) == (f"{pid}: fog", "fog, rain")
    assert elsewhere.endswith(": sun")
    assert len({str(one.output).partition(":")[0] for one in together} - {pid}) == 1, "no call waits for another one"


async def test_a_program_that_ended_between_two_calls_is_started_again_and_nothing_is_said() -> None:
    async with used(servers(small())) as mcp:
        pid = int(str((await call(mcp, "note", text="fog")).output).partition(":")[0])
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid))
        after = await call(mcp, "note", text="rain")

    assert re.fullmatch(r"\d+: rain", str(after.output))
