"""Two workers that are replaced one after the other, every five seconds, while twenty sessions keep them busy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_full import Verdict, full_job, play
from tests.e2e.crash.crash_stage import Stage
from tests.e2e.processes import WorkerProcess

pytestmark = [pytest.mark.server, pytest.mark.chaos, pytest.mark.timeout(600)]

SESSIONS, SECONDS, EVERY_SECONDS = 20, 180.0, 5.0


@asynccontextmanager
async def replaced_in_turn(stage: Stage, statuses: list[int]) -> AsyncIterator[None]:
    """Two workers; the older one gets SIGTERM as soon as its successor polls. Their exit statuses are put down."""
    settings = stage.worker(LONGHAUL_GRACEFUL_SHUTDOWN_TIMEOUT="10")
    standing = [await WorkerProcess.start(settings) for _ in range(2)]
    leaving = list[asyncio.Task[None]]()

    async def leave(one: WorkerProcess) -> None:
        one.ask_to_stop()
        statuses.append(await one.wait())

    async def replace() -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            standing.append(await WorkerProcess.start(settings))
            leaving.append(asyncio.create_task(leave(standing.pop(0))))

    replacing = asyncio.create_task(replace())
    try:
        yield
        assert not replacing.done(), replacing
    finally:
        replacing.cancel()
        await asyncio.gather(*leaving)
        for one in standing:
            await one.kill()


async def keep_busy(stage: Stage, name: str, verdicts: list[Verdict]) -> None:
    """One session after the other."""
    end = asyncio.get_running_loop().time() + SECONDS
    while asyncio.get_running_loop().time() < end:
        verdicts.append(await play(full_job(stage, name)))


@pytest.mark.proves("E4")
async def test_sessions_notice_nothing_of_workers_that_are_replaced_every_five_seconds(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    verdicts, statuses = list[Verdict](), list[int]()

    async with replaced_in_turn(stage, statuses):
        await asyncio.gather(*(keep_busy(stage, f"busy{number}", verdicts) for number in range(SESSIONS)))

    print(f"\n{len(verdicts)} sessions, {len(statuses)} workers replaced")
    assert [verdict for verdict in verdicts if not verdict.holds] == []
    assert [verdict for verdict in verdicts if verdict.unknown_outcomes] == [], "a shutdown in order leaves no doubt"
    assert len(verdicts) >= SESSIONS
    assert len(statuses) >= SECONDS / EVERY_SECONDS / 3
    assert set(statuses) == {0}
