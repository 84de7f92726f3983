"""Calls of MCP servers' tools while workers and servers are killed: before a call, in its midst, behind it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.mcp.canned import Canned, CannedServer, canned
from tests.activities.mcp.serving import serving, small
from tests.activities.process.pids import until
from tests.e2e.processes import WorkerSettings, worker
from tests.servers.local import free_port
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

UNKNOWN, SUCCESS = ToolResultState.UNKNOWN, ToolResultState.SUCCESS
STARTED_AGAIN = "[The MCP server 'harbour' restarted before this call"
AGENT: dict[str, Any] = {"tools": (), "mcps": [{"name": "harbour"}]}
UNASKED: dict[str, Any] = {**AGENT, "permission": {"rules": [{"tool_name": "mcp__harbour"}]}}
TRANSPORTS = ("stdio", "streamable-http")


def with_servers(stage: Stage, offered: dict[str, Any]) -> WorkerSettings:
    """The same servers for workers of this process and for those in one of their own."""
    stage.settings = stage.settings.model_copy(update={"mcp": offered})
    return WorkerSettings(
        address=stage.address,
        task_queue=stage.settings.task_queue,
        directory=stage.settings.data_dir,
        tools="",
        further={"LONGHAUL_MCP": json.dumps(offered)},
    )


@asynccontextmanager
async def reached(transport: str) -> AsyncIterator[dict[str, Any]]:
    if transport == "stdio":
        yield small()
        return
    port = free_port()
    async with serving(transport, port):
        yield {"url": f"http://127.0.0.1:{port}/mcp"}


class Relay:
    """The address of a server that is restarted in no time: what listens there is in front of this one or that.
    `asked`: all that was said to them, `told`: all that they said."""

    def __init__(self, port: int) -> None:
        self.behind, self.asked, self.told = port, bytearray(), bytearray()
        self._open: set[asyncio.StreamWriter] = set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            from_it, to_it = await asyncio.open_connection("127.0.0.1", self.behind)
            self._open |= {writer, to_it}
            await asyncio.gather(self._carry(reader, to_it, self.asked), self._carry(from_it, writer, self.told))
        writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytearray) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                said += piece
                writer.write(piece)
                await writer.drain()
        writer.close()

    def cut(self, port: int) -> None:
        """The server is gone, and another one there."""
        self.behind = port
        for writer in self._open:
            writer.close()


@pytest.mark.proves("X19")
@pytest.mark.parametrize(("effect", "state", "times"), [("once", UNKNOWN, 1), ("idempotent", SUCCESS, 2)])
@pytest.mark.parametrize(("transport", "is_stateful"), [("stdio", True), ("streamable-http", False)])
async def test_a_worker_that_is_killed_under_a_call_costs_what_its_effect_class_says(  # noqa: PLR0913, PLR0917  a table
    transport: str,
    is_stateful: bool,
    effect: str,
    state: ToolResultState,
    times: int,
    unserved: Stage,
    tmp_path: Path,
) -> None:
    mark = tmp_path / "mark"
    session = unserved.session(
        calls("mcp__harbour__note", text="fog"),
        calls("mcp__harbour__linger", path=str(mark)),
        calls("mcp__harbour__note", text="rain"),
        {"text": "Noted."},
        **UNASKED,
    )
    async with reached(transport) as config:
        settings = with_servers(
            unserved, {"harbour": {"mcp_config": config, "is_stateful": is_stateful, "effects": {"linger": effect}}}
        )
        async with worker(settings) as first:
            replying = asyncio.create_task(session.reply("Note the weather."))
            await until(lambda: mark.exists() and mark.read_text() == "x")
            await first.kill()
        async with unserved.another_worker():
            done = await replying

    (_, noted), (ended, said), (again, rain) = results(done)
    assert (ended, len(mark.read_text())) == (state, times)
    assert ("Outcome unknown" in said, said.endswith("begun 2 times")) == (state is UNKNOWN, state is SUCCESS)
    assert (again, done.get_text_content()) == (SUCCESS, "Noted.")
    anew = [text for text in (said, rain) if text.startswith(STARTED_AGAIN)]
    assert len(anew) == is_stateful, "told once, with the first result of the new one"
    kept = rain.partition(": ")[2].endswith("fog, rain")
    assert kept == (transport == "streamable-http"), noted


async def test_a_call_that_was_decided_on_under_a_killed_worker_runs_once_on_the_next_one(unserved: Stage) -> None:
    settings = with_servers(unserved, {"harbour": {"mcp_config": small(), "is_stateful": True}})
    session = unserved.session(
        calls("mcp__harbour__note", text="fog"), calls("mcp__harbour__note", text="rain"), {"text": "Noted."}, **AGENT
    )
    async with worker(settings) as first:
        waiting = await session.reply("Note the weather.")
        await session.confirm((await session.pending())[0], allow=True)
        await session.wait(waiting.id)
        (call,) = await session.pending()
        await first.kill()
    async with unserved.another_worker():
        await session.confirm(call, allow=True)
        done = await session.wait(waiting.id)

    (_, fog), (state, rain) = results(done)
    assert fog.endswith(": fog")
    assert (state, rain.startswith(STARTED_AGAIN), rain.endswith(": rain")) == (SUCCESS, True, True)


@pytest.mark.proves("X19")
@pytest.mark.parametrize(("effect", "state", "times"), [("once", UNKNOWN, 1), ("idempotent", SUCCESS, 2)])
@pytest.mark.parametrize("is_stateful", [True, False])
async def test_a_server_that_is_killed_under_a_call_and_restarted_costs_what_the_effect_class_says(
    is_stateful: bool, effect: str, state: ToolResultState, times: int, unserved: Stage, tmp_path: Path
) -> None:
    mark, ports = tmp_path / "mark", (free_port(), free_port())
    relay = Relay(ports[0])
    listener = await asyncio.start_server(relay.take, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    harbour = {"mcp_config": {"url": url}, "is_stateful": is_stateful, "effects": {"linger": effect}}
    with_servers(unserved, {"harbour": harbour})
    session = unserved.session(
        calls("mcp__harbour__note", text="fog"),
        calls("mcp__harbour__linger", path=str(mark)),
        calls("mcp__harbour__note", text="rain"),
        {"text": "Noted."},
        **UNASKED,
    )
    async with (
        serving("streamable-http", ports[0]) as server,
        serving("streamable-http", ports[1]),
        listener,
        unserved.another_worker(),
    ):
        replying = asyncio.create_task(session.reply("Note the weather."))
        await until(lambda: mark.exists() and mark.read_text() == "x")
        server.kill()
        relay.cut(ports[1])
        done = await replying

    _, (ended, said), (again, rain) = results(done)
    assert (ended, len(mark.read_text())) == (state, times)
    assert ("was lost while the call was under way" in said, said.endswith("begun 2 times")) == (
        state is UNKNOWN,
        state is SUCCESS,
    )
    assert (again, rain.partition(": ")[2]) == (SUCCESS, "rain") if not is_stateful else rain.endswith(": rain")
    assert [text.startswith(STARTED_AGAIN) for text in (said, rain)].count(True) == is_stateful


async def test_a_server_that_has_forgotten_its_session_between_two_calls_begins_again(unserved: Stage) -> None:
    ports = (free_port(), free_port())
    relay = Relay(ports[0])
    listener = await asyncio.start_server(relay.take, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    with_servers(unserved, {"harbour": {"mcp_config": {"url": url}, "is_stateful": True}})
    fog, rain = (calls("mcp__harbour__note", text=text) for text in ("fog", "rain"))
    session = unserved.session(fog, {"text": "Noted."}, rain, {"text": "Noted too."}, **UNASKED)
    async with (
        serving("streamable-http", ports[0]) as server,
        serving("streamable-http", ports[1]),
        listener,
        unserved.another_worker(),
    ):
        before = results(await session.reply("Note the fog."))
        server.kill()
        relay.cut(ports[1])
        done = await session.reply("Note the rain.")

    (_, first), (state, second) = *before, *results(done)
    assert first.endswith("fog")
    assert (state, done.get_text_content()) == (SUCCESS, "Noted too.")
    assert second.startswith(STARTED_AGAIN)
    assert second.endswith(": rain")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_result_of_10_mb_is_cut_for_the_model_and_whole_in_its_file(transport: str, unserved: Stage) -> None:
    session = unserved.session(calls("mcp__harbour__long", megabytes=10), {"text": "Enough."}, **UNASKED)
    async with reached(transport) as config:
        with_servers(unserved, {"harbour": {"mcp_config": config}})
        async with unserved.another_worker():
            done = await session.reply("Fetch all of it.")

    (file,) = (unserved.settings.data_dir / "offload").resolve().rglob("tool_result-*.txt")
    ((state, shown),) = results(done)
    assert (state, done.get_text_content()) == (SUCCESS, "Enough.")
    assert len(shown) < 50_000
    assert str(file) in shown
    whole = file.read_text("utf-8")
    assert (len(whole), set(whole)) == (10_000_000, {"x"})


@pytest.mark.parametrize("effect", ["once", "idempotent"])
async def test_a_page_in_the_place_of_an_answer_says_nothing_of_the_call(effect: str, unserved: Stage) -> None:
    page = Canned(200, "text/html", "<html>Sign in</html>")
    session = unserved.session(calls("mcp__harbour__note", text="fog"), {"text": "Noted."}, **UNASKED)
    async with canned(CannedServer([page])) as server:
        with_servers(unserved, {"harbour": {"mcp_config": {"url": server.url}, "effects": {"note": effect}}})
        async with unserved.another_worker():
            done = await session.reply("Note the weather.")
            unknown_outcomes = (await session.status()).unknown_outcomes

    ((state, said),) = results(done)
    if effect == "once":
        assert (state, unknown_outcomes, server.calls) == (UNKNOWN, 1, 1)
        assert "gave no answer that can be read: HTTP 200 with 'text/html'. It may have done part of its work" in said
    else:
        assert (state, unknown_outcomes, server.calls, said) == (SUCCESS, 0, 2, "noted")
