"""Sessions at once on a worker that halts and goes on: a worker that has never seen them can replay each history."""

import asyncio
import os
import signal

import pytest

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.processes import WorkerProcess, WorkerSettings, worker
from tests.replay.everything import unreplayable
from tests.workflows.conftest import Stage

pytestmark = pytest.mark.server

SESSIONS = 20
STOPS = 4
MANY, AT_ONCE = 2_000, 100
LONGER_THAN_STICKY_SECONDS = 1.3
"""A query that a worker does not take within a second is given out again, with the whole history."""


async def test_each_history_of_a_storm_can_be_replayed(unserved: Stage) -> None:
    asks = {"tool_calls": [{"name": "send", "input": {"to": "amber"}}]}
    sessions = [unserved.session(asks, asks, asks, {"text": "sent"}) for _ in range(SESSIONS)]

    async with worker(settings_on(unserved)) as process:
        halting = asyncio.create_task(halted(process))
        ends = await asyncio.gather(*[approved(session) for session in sessions])
        await halting

    assert [end.finished_reason for end in ends] == ["completed"] * SESSIONS
    assert await unreplayable(unserved.client, f"TaskQueue = '{unserved.settings.task_queue}'") == {}


@pytest.mark.chaos
@pytest.mark.timeout(3_600)
async def test_each_history_of_two_thousand_sessions_can_be_replayed_whatever_befell_their_workers(
    unserved: Stage,
) -> None:
    """Waves of sessions over three workers: one halts now and then, one is killed again and again."""
    asks = {"tool_calls": [{"name": "send", "input": {"to": "amber"}}]}
    model = unserved.script(asks, asks, {"text": "sent"})
    settings = settings_on(unserved)

    async with worker(settings) as halting, worker(settings):
        troubles = [asyncio.create_task(halted(halting, 10_000)), asyncio.create_task(killed(settings))]
        for wave in range(MANY // AT_ONCE):
            spec = unserved.agent(model=model)
            sessions = [unserved.app.session(f"wave-{wave}-{number}", agent=spec) for number in range(AT_ONCE)]
            ends = await asyncio.gather(*[approved(session) for session in sessions])
            assert [end.finished_reason for end in ends] == ["completed"] * AT_ONCE
        for trouble in troubles:
            trouble.cancel()
        await asyncio.gather(*troubles, return_exceptions=True)
        os.kill(halting.pid, signal.SIGCONT)

    assert await unreplayable(unserved.client, f"TaskQueue = '{unserved.settings.task_queue}'") == {}


def settings_on(stage: Stage) -> WorkerSettings:
    return stage.worker_settings


async def killed(settings: WorkerSettings) -> None:
    while True:
        async with worker(settings):
            await asyncio.sleep(4)


async def approved(session: Session) -> Msg:
    """Asked for something, with each of its calls allowed, while somebody else looks again and again."""
    looking = asyncio.create_task(looked(session))
    try:
        message = await session.reply("go")
        while message.finished_reason is None:
            for call in await session.pending():
                try:
                    await session.confirm(call, allow=True, approver="ana")
                except Refused:
                    continue  # it was taken when it was sent first
            message = await session.wait(message.id)
        return message
    finally:
        looking.cancel()


async def looked(session: Session) -> None:
    while True:
        await asyncio.sleep(1)
        await session.status()


async def halted(process: WorkerProcess, times: int = STOPS) -> None:
    """Now and then for longer than its own queue keeps a query."""
    for _ in range(times):
        await asyncio.sleep(1.5)
        os.kill(process.pid, signal.SIGSTOP)
        await asyncio.sleep(LONGER_THAN_STICKY_SECONDS)
        os.kill(process.pid, signal.SIGCONT)
