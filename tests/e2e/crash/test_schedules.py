"""Schedules and sleeps while workers and the server are killed: each scheduled run asks once, each sleep ends once."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from longhaul.starter.client.schedule_cards import PastScheduledRun
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_stage import Stage, call, says, until
from tests.e2e.processes import worker

pytestmark = pytest.mark.server

MISSED = 10
"""Firings that were due while the server was down, one each second, at least."""


@pytest.fixture
async def falling_server(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[DevServer]:
    """A server of the test's own, to be killed."""
    settings = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    async with DevServer(settings) as server:
        yield server


@pytest.mark.proves("F4")
async def test_scheduled_runs_that_were_due_while_the_server_was_down_ask_once_each(
    falling_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(falling_server.address, tmp_path)
    job = stage.job("ebb-and-flow", [says(f"answer {number}") for number in range(200)])
    schedules = stage.app.schedules

    async def asked() -> list[PastScheduledRun]:
        return [one for one in await schedules.scheduled_runs("ebb") if one.state == "asked"]

    async with worker(stage.worker()) as first:
        await schedules.add(
            "ebb",
            "How high?",
            agent=job.session.spec,
            session=job.session.id,
            every=timedelta(seconds=1),
            overlap="queue",
        )

        async def has_asked() -> bool:
            return len(await asked()) >= 1

        await until(has_asked, "a scheduled run has asked")
        first_due = min(datetime.fromisoformat(one.at) for one in await asked())
        await first.kill()
        await falling_server.kill()
        down_at = datetime.now().astimezone()
        await until(lambda: passed(down_at, MISSED), "the server was down for some scheduled runs")
        await falling_server.start()
    async with worker(stage.worker()):

        async def has_caught_up() -> bool:
            status = await job.session.status()
            return status.model_calls >= 1 + MISSED

        await until(has_caught_up, "the scheduled runs that were missed have asked")
        await schedules.pause("ebb")

        handle = stage.app.client.get_schedule_handle("longhaul.schedule.ebb")

        async def each_has_asked_once() -> bool:
            found, status = await handle.describe(), await job.session.status()
            at_rest = not found.info.running_actions and (status.status, status.queued) == ("idle", 0)
            return at_rest and found.info.num_actions == status.model_calls

        await until(each_has_asked_once, "there is one answer for each scheduled run")
        described, status = await handle.describe(), await job.session.status()
        due = [one.scheduled_at for one in described.info.recent_actions]
        await schedules.remove("ebb")

    assert (status.refused, described.info.num_actions_missed_catchup_window) == (0, 0)
    assert {later - earlier for earlier, later in pairwise(due)} == {timedelta(seconds=1)}
    assert status.model_calls == described.info.num_actions == (max(due) - first_due).total_seconds() + 1


async def passed(since: datetime, seconds: float) -> bool:
    return (datetime.now().astimezone() - since).total_seconds() > seconds


@pytest.mark.proves("F4")
async def test_a_sleep_outlives_its_worker_and_the_server_and_ends_once(
    falling_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(falling_server.address, tmp_path)
    script = [
        says("rest", {"id": "nap", "name": "sleep", "input": {"for": 4}}),
        says("wait", {"id": "bell", "name": "wait_for", "input": {"event": "rung", "timeout": "2d"}}),
        says("put", call("put")),
        says("all done"),
    ]
    job = stage.job("sleeper", script)
    spec = job.session.spec
    spec = spec.model_copy(update={"tools": (*spec.tools, "sleep", "wait_for")})
    job.session = session = stage.app.session(job.session.id, agent=spec)

    async def sleeps(*call_ids: str) -> bool:
        return bool({*call_ids} & {one.call_id for one in await session.pending()})

    async with worker(stage.worker()) as first:
        await job.start()
        await until(lambda: sleeps("nap", "bell"), "it sleeps")
        await first.kill()
    await falling_server.kill()
    await falling_server.start()
    async with worker(stage.worker()):
        await until(lambda: sleeps("bell"), "it waits for the bell")
        assert await session.notify("rung", request_id="n1") is True
        assert await session.notify("rung", request_id="n1") is False
        final, results = await job.finish(), await job.results()

    assert final.get_text_content().endswith("all done")
    assert results.keys() >= {"nap", "bell", "put"}
    assert job.effects("put") == 1
