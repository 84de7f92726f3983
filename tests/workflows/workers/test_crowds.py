"""Six hundred sessions, three hundred at a time, with clients of every kind: each history can be replayed."""

import asyncio
import os
import random
import signal
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from temporalio.client import WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Unavailable
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.processes import WorkerSettings, worker
from tests.replay.everything import unreplayable
from tests.workflows.conftest import TOOLS
from tests.workflows.workers.test_storms import halted, killed

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(3_600)]

SESSIONS, AT_ONCE = int(os.environ.get("CROWD", "600")), int(os.environ.get("CROWD_AT_ONCE", "300"))
STOCK = """#!/usr/bin/env bash
# The server with the settings that it comes with.
words=()
while (($#)); do
  case $1 in
    --dynamic-config-value|--sqlite-pragma) shift 2 ;;
    *) words+=("$1"); shift ;;
  esac
done
exec {temporal} "${{words[@]}}"
"""
LOST = (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError, Unavailable, Refused)
"""What a client may be told while a server begins again, or when its answer has been taken already."""


@pytest.mark.parametrize(("seed", "stock"), [(1, False), (2, False), (3, False), (4, False), (5, True)])
async def test_each_history_of_a_crowd_can_be_replayed(
    seed: int, stock: bool, temporal_cli: Path, tmp_path: Path
) -> None:
    """One worker halts now and then, one is killed again and again, and once the server."""
    chance = random.Random(seed)  # noqa: S311  no secret
    async with server_of(stock, temporal_cli, tmp_path) as server, app_on(server, tmp_path) as app:
        queue = WorkerSettings(address=server.address, task_queue="crowd", directory=app.settings.data_dir, tools=TOOLS)
        script = tmp_path / "script.jsonl"
        ask = '{"tool_calls": [{"name": "send", "input": {"to": "amber"}}]}\n'
        script.write_text(ask * 2 + '{"text": "sent"}\n')
        spec = {"name": "lamp", "model": f"scripted:{script}", "tools": ["send"], "stuck": {"enabled": False}}
        room = asyncio.Semaphore(AT_ONCE)
        ends: list[Msg] = []

        async def one(number: int) -> None:
            agent = AgentSpec.model_validate({**spec, "workspace": {"root": str(tmp_path)}})
            session = app.session(f"crowd-{number}", agent=agent)
            async with room:
                ends.append(await KINDS[number % len(KINDS)](session, chance))
                if len(ends) % 50 == 0:
                    print(f"{len(ends)} of {SESSIONS}", flush=True)

        async with worker(queue) as halting, worker(queue):
            troubles = [
                asyncio.create_task(each)
                for each in (halted(halting, 10_000), always_killed(queue), listed(app), once_killed(server))
            ]
            told = await asyncio.gather(*map(one, range(SESSIONS)), return_exceptions=True)
            for trouble in troubles:
                trouble.cancel()
            await asyncio.gather(*troubles, return_exceptions=True)
            os.kill(halting.pid, signal.SIGCONT)

        assert [repr(error) for error in told if error is not None] == []
        assert [end.finished_reason for end in ends] == ["completed"] * SESSIONS
        assert await unreplayable(app.client, "TaskQueue = 'crowd'") == {}


async def waits(session: Session, _chance: random.Random) -> Msg:
    message = await session.wait(await asked(session))
    while message.finished_reason is None:
        await answer_all(session)
        message = await session.wait(message.id)
    return message


async def follows(session: Session, _chance: random.Random) -> Msg:
    """Reads each event as it comes, and answers each question when it is told of it."""
    reply_id = await asked(session)
    async for event in session.follow():
        if event.type == "REQUIRE_USER_CONFIRM":
            await answer_all(session)
        elif event.type == "REPLY_END":
            return await session.wait(reply_id)
    raise AssertionError("a feed has no end")


async def asks(session: Session, chance: random.Random) -> Msg:
    """Reads again and again, in every way, while it answers."""
    reply_id = await asked(session)
    while True:
        await asyncio.sleep(chance.random())
        read: Callable[[], Awaitable[object]] = chance.choice(
            [session.status, session.pending, session.events, session.state, lambda: session.result(reply_id)]
        )
        with suppress(*LOST):
            await read()
        await answer_all(session)
        message = (await session.result(reply_id)).message
        if message is not None and message.finished_reason is not None:
            return message


async def tells(session: Session, chance: random.Random) -> Msg:
    """Sends letters of other kinds between its answers."""
    reply_id = await asked(session)
    while True:
        with suppress(*LOST):
            match chance.randrange(4):
                case 0:
                    await session.observe("It rains.")
                case 1:
                    await session.pause()
                case 2:
                    await session.configure(max_iters=chance.randrange(20, 30))
                case _:
                    await session.submit("more", request_id="more", when="now")
        await asyncio.sleep(chance.random())
        with suppress(*LOST):
            await session.resume()
        await answer_all(session)
        message = (await session.result(reply_id)).message
        if message is not None and message.finished_reason is not None:
            return message


async def asked(session: Session) -> str:
    """The id of the reply, for a request that is sent until it is taken: a crowd may keep its worker for a minute."""
    while True:
        with suppress(*LOST):
            return await session.submit("go", request_id="go")


KINDS = (waits, follows, asks, tells)


async def answer_all(session: Session) -> None:
    for call in await session.pending():
        answered = False
        while not answered:
            try:
                await session.confirm(call, allow=True, approver="ana")
                answered = True
            except Refused:
                answered = True  # by an update whose answer was lost
            except LOST:
                await asyncio.sleep(1)


async def listed(app: Longhaul) -> None:
    """Somebody looks at the whole list all the time."""
    while True:
        with suppress(*LOST):
            await app.inbox()
            await app.sessions()
        await asyncio.sleep(2)


async def always_killed(queue: WorkerSettings) -> None:
    while True:
        with suppress(RuntimeError):  # no server, no worker
            await killed(queue)


async def once_killed(server: DevServer) -> None:
    await asyncio.sleep(25)
    await server.kill()
    await asyncio.sleep(1)
    await server.start()


@asynccontextmanager
async def server_of(stock: bool, temporal: Path, folder: Path) -> AsyncIterator[DevServer]:
    if stock:
        script = folder / "temporal"
        script.write_text(STOCK.format(temporal=temporal))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        temporal = script
    settings = DevServerSettings(temporal=temporal, directory=folder / "server", search_attributes=SEARCH_ATTRIBUTES)
    async with DevServer(settings) as server:
        yield server


@asynccontextmanager
async def app_on(server: DevServer, folder: Path) -> AsyncIterator[Longhaul]:
    settings = Settings(task_queue="crowd", data_dir=folder / "data", tools=TOOLS)
    client = await connect(server.address, settings=settings)
    try:
        yield Longhaul(client, settings)
    finally:
        await let_go(client)
