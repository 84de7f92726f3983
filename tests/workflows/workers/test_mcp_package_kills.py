"""The reference server from npm, killed and begun again, and workers that are killed around its calls. What it keeps of
a connection is whether updates were toggled."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.process.pids import alive, until
from tests.e2e.processes import running_with, worker
from tests.servers.local import free_port
from tests.workflows.conftest import Stage
from tests.workflows.operations import results
from tests.workflows.workers.test_mcp_faults import Relay, with_servers
from tests.workflows.workers.test_mcp_packages import everything, program, served_at

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

UNKNOWN, SUCCESS = ToolResultState.UNKNOWN, ToolResultState.SUCCESS
LONG, TOGGLE = "trigger-long-running-operation", "toggle-subscriber-updates"
WAITED = "Long running operation completed"
STARTED = "Started simulated resource updated notifications"
DONE = {"text": "Watched."}
EFFECTS = pytest.mark.parametrize(("effect", "state", "times"), [("once", UNKNOWN, 1), ("read", SUCCESS, 2)])


def copying(packages: Path, copy: Path) -> dict[str, Any]:
    """The server as a program whose input is copied. Each of its processes has the path of the copy in its words."""
    started = program(packages, "server-everything", "stdio")
    script = 'copy=$1; shift; exec 3<&0; exec "$@" "$copy.node" < <(exec tee -a "$copy" <&3) 3<&-'
    return {"command": "bash", "args": ["-c", script, "bash", str(copy), started["command"], *started["args"]]}


def started(asked: bytes | bytearray) -> int:
    return asked.count(f'"name":"{LONG}"'.encode())


def copied(copy: Path) -> bytes:
    return copy.read_bytes() if copy.exists() else b""


async def kill_node(copy: Path) -> None:
    """End the server alone: neither its leash nor what copies its input."""
    mark = f"{copy}.node"
    await until(lambda: len(running_with(mark)) == 1)  # one that was asked for its tools may just be leaving
    os.kill(running_with(mark)[0], signal.SIGKILL)


def port_of(config: dict[str, Any]) -> int:
    return int(config["url"].removesuffix("/mcp").rpartition(":")[2])


@asynccontextmanager
async def relayed(behind: int, port: int = 0) -> AsyncIterator[tuple[Relay, dict[str, Any]]]:
    relay = Relay(behind)
    async with await asyncio.start_server(relay.take, "127.0.0.1", port) as listener:
        try:
            yield relay, {"url": f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"}
        finally:
            relay.cut(0)


def each(names: list[str], tool: str, **arguments: Any) -> dict[str, Any]:
    """A line of a script: the tool of each of these servers at once."""
    return {"tool_calls": [{"name": f"mcp__{name}__{tool}", "input": arguments} for name in names]}


def watching(name: str, seconds: int = 2) -> list[dict[str, Any]]:
    toggle = each([name], TOGGLE)
    return [toggle, each([name], LONG, duration=seconds, steps=8), toggle, DONE]


def is_told_again(name: str, text: str) -> bool:
    return text.startswith(f"[The MCP server {name!r} restarted before this call")


def asking(names: list[str], *, asks: bool = False) -> dict[str, Any]:
    rules = [] if asks else [{"tool_name": f"mcp__{name}"} for name in names]
    return {"tools": (), "mcps": [{"name": name} for name in names], "permission": {"rules": rules}}


async def test_a_worker_that_is_killed_under_calls_leaves_nothing_and_each_costs_what_its_effect_class_says(
    mcp_packages: Path, unserved: Stage, tmp_path: Path
) -> None:
    """Four sessions at once, for a call that runs once waits half a minute for its worker."""
    copies = {"stdio-once": tmp_path / "one", "stdio-read": tmp_path / "two"}
    async with (
        everything(mcp_packages, "streamable-http") as direct,
        relayed(port_of(direct)) as (once, to_once),
        relayed(port_of(direct)) as (read, to_read),
    ):
        configs = {name: copying(mcp_packages, copy) for name, copy in copies.items()}
        configs |= {"http-once": to_once, "http-read": to_read}
        offered = {
            name: {"mcp_config": config, "is_stateful": True, "effects": {LONG: name.partition("-")[2]}}
            for name, config in configs.items()
        }

        def made() -> list[int]:
            return [*(started(copied(copy)) for copy in copies.values()), started(once.asked), started(read.asked)]

        async with worker(with_servers(unserved, offered)) as first:
            replying = [
                asyncio.create_task(unserved.session(*watching(name, 5), **asking([name])).reply("Watch."))
                for name in offered
            ]
            await until(lambda: made() == [1] * 4)
            theirs = [pid for copy in copies.values() for pid in running_with(str(copy))]
            await first.kill()
            await until(lambda: not any(map(alive, theirs)))
        async with unserved.another_worker():
            came = [results(await reply) for reply in replying]
        times = made()

    assert len(theirs) >= 6, "of each the leash, the server and what copies its input"
    assert times == [1, 2] * 2
    assert [[state for state, _ in each_of] for each_of in came] == [[SUCCESS, UNKNOWN, SUCCESS], [SUCCESS] * 3] * 2
    assert ["Outcome unknown" in text for _, (_, text), _ in came] == [True, False] * 2
    assert [WAITED in text for _, (_, text), _ in came] == [False, True] * 2
    assert all(STARTED in text for first, _, last in came for _, text in (first, last)), "what was toggled is forgotten"
    told = [[is_told_again(name, text) for _, text in each_of] for name, each_of in zip(offered, came, strict=True)]
    assert told == [[False, False, True], [False, True, False]] * 2, "once, with the first result of the new one"


async def test_a_worker_that_is_killed_between_two_calls_leaves_nothing_and_the_next_call_runs_once(
    mcp_packages: Path, unserved: Stage, tmp_path: Path
) -> None:
    copy = tmp_path / "asked"
    async with everything(mcp_packages, "streamable-http") as direct, relayed(port_of(direct)) as (relay, config):
        configs = {"stdio": copying(mcp_packages, copy), "http": config}
        offered = {name: {"mcp_config": one, "is_stateful": True} for name, one in configs.items()}
        names = list(offered)
        session = unserved.session(
            each(names, TOGGLE), each(names, LONG, duration=1, steps=2), DONE, **asking(names, asks=True)
        )
        async with worker(with_servers(unserved, offered)) as first:
            waiting = await session.reply("Watch.")
            for call in await session.pending():
                await session.confirm(call, allow=True)
            await session.wait(waiting.id)
            decided = await session.pending()
            theirs = running_with(str(copy))
            await first.kill()
            await until(lambda: not any(map(alive, theirs)))
        async with unserved.another_worker():
            for call in decided:
                await session.confirm(call, allow=True)
            done = await session.wait(waiting.id)
        made = [started(copied(copy)), started(relay.asked)]

    came = results(done)
    assert len(theirs) >= 3
    assert [text.startswith(STARTED) for _, text in came[:2]] == [True] * 2
    assert ([state for state, _ in came[2:]], made) == ([SUCCESS] * 2, [1, 1])
    assert [is_told_again(name, text) for name, (_, text) in zip(names, came[2:], strict=True)] == [True] * 2


@EFFECTS
async def test_a_program_that_is_killed_costs_the_call_under_way_what_its_effect_class_says(
    effect: str, state: ToolResultState, times: int, mcp_packages: Path, unserved: Stage, tmp_path: Path
) -> None:
    copy = tmp_path / "asked"
    harbour = {"mcp_config": copying(mcp_packages, copy), "is_stateful": True, "effects": {LONG: effect}}
    with_servers(unserved, {"harbour": harbour})
    session = unserved.session(*watching("harbour"), each(["harbour"], TOGGLE), DONE, **asking(["harbour"]))
    async with unserved.another_worker():
        replying = asyncio.create_task(session.reply("Watch."))
        await until(lambda: started(copied(copy)) == 1)
        await kill_node(copy)
        done = await replying
        await kill_node(copy)
        ((_, later),) = results(await session.reply("Watch on."))

    _, (ended, said), (again, after) = results(done)
    assert (ended, started(copied(copy))) == (state, times)
    assert ("was lost while the call was under way" in said, WAITED in said) == (
        state is UNKNOWN,
        state is SUCCESS,
    )
    assert (again, STARTED in after) == (SUCCESS, True)
    assert [is_told_again("harbour", text) for text in (said, after)] == [effect == "read", effect == "once"]
    assert (is_told_again("harbour", later), STARTED in later) == (True, True), "it was killed between two calls"
    assert running_with(str(copy)) == [], "none is left of any"


@EFFECTS
async def test_an_address_that_is_gone_under_a_call_costs_what_its_effect_class_says(
    effect: str, state: ToolResultState, times: int, mcp_packages: Path, unserved: Stage
) -> None:
    port = free_port()
    harbour = {"mcp_config": {"url": f"http://127.0.0.1:{port}/mcp"}, "is_stateful": True, "effects": {LONG: effect}}
    with_servers(unserved, {"harbour": harbour})
    session = unserved.session(*watching("harbour"), **asking(["harbour"]))
    async with (
        everything(mcp_packages, "streamable-http") as one,
        everything(mcp_packages, "streamable-http") as other,
        unserved.another_worker(),
    ):
        async with relayed(port_of(one), port) as (first, _):
            replying = asyncio.create_task(session.reply("Watch."))
            # Whoever has heard an event of an answer asks for the rest of it after a second. Nobody is there then.
            await until(lambda: b"notifications/progress" in first.told)
        await asyncio.sleep(1.5)
        async with relayed(port_of(other), port) as (second, _):
            done = await replying

    _, (ended, said), (again, after) = results(done)
    assert (ended, started(first.asked + second.asked)) == (state, times)
    assert ("was lost while the call was under way" in said, WAITED in said) == (
        state is UNKNOWN,
        state is SUCCESS,
    )
    assert (again, STARTED in after) == (SUCCESS, True)
    assert [is_told_again("harbour", text) for text in (said, after)] == [effect == "read", effect == "once"]


async def test_a_server_that_is_restarted_at_its_address_between_two_calls_begins_again(
    mcp_packages: Path, unserved: Stage
) -> None:
    """It answers 400 to a session that it does not know, and not 404."""
    port = free_port()
    config = {"url": f"http://127.0.0.1:{port}/mcp"}
    offered = {
        f"{kind}-{effect}": {"mcp_config": config, "is_stateful": kind == "kept", "effects": {TOGGLE: effect}}
        for kind in ("kept", "loose")
        for effect in ("once", "read")
    }
    with_servers(unserved, offered)
    names = list(offered)
    session = unserved.session(*[each(names, TOGGLE), DONE] * 2, **asking(names))
    async with unserved.another_worker():
        async with served_at(port, mcp_packages):
            before = results(await session.reply("Watch."))
        async with served_at(port, mcp_packages):
            after = results(await session.reply("Watch on."))

    assert [(state, text.startswith(STARTED)) for state, text in before] == [(SUCCESS, True)] * 4
    assert [(state, STARTED in text) for state, text in after] == [(SUCCESS, True)] * 4
    told = [is_told_again(name, text) for name, (_, text) in zip(names, after, strict=True)]
    assert told == [True, True, False, False]
