"""A death is noticed by the workers that are left, long before the server misses a heartbeat."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.workflows.activity_options import HEARTBEAT
from tests.e2e.crash.crash_stage import Job, Stage, call, says, until
from tests.e2e.processes import worker
from tests.limits import usual

pytestmark = [pytest.mark.server, pytest.mark.alone]

SOON = HEARTBEAT.total_seconds() / 4


@pytest.fixture
async def stage(temporal_server: DevServer, tmp_path: Path) -> Stage:
    return await Stage.on(temporal_server.address, tmp_path)


def job_at(stage: Stage, tool: str) -> Job:
    return stage.job(tool, [says("", call(tool)), says("all done")], [f"{tool}.before"])


async def held_again(job: Job, tool: str) -> None:
    async def seen() -> bool:
        return len(job.ledger("held")) > 1

    await until(seen, f"{tool} is run again")


async def test_workers_of_one_host_notice_at_once_and_a_once_call_has_an_unknown_outcome(stage: Stage) -> None:
    jobs = {tool: job_at(stage, tool) for tool in ("look", "put", "send")}
    look, put, send = jobs.values()
    async with worker(stage.worker()) as first:
        await asyncio.gather(*(job.start() for job in jobs.values()))
        await asyncio.gather(*(job.is_held(f"{tool}.before") for tool, job in jobs.items()))
        async with worker(stage.worker()):
            await first.kill()
            began = time.monotonic()
            await asyncio.gather(held_again(look, "look"), held_again(put, "put"), send.has_recorded("send"))
            took = time.monotonic() - began
            for job in (look, put):
                job.release()
            ends = [await job.finish() for job in jobs.values()]
            results = [(await job.results())[name].state for name, job in jobs.items()]
            for job in jobs.values():
                await job.replays()

    assert took < usual(SOON)
    assert {end.finished_reason for end in ends} == {FinishedReason.COMPLETED}
    assert results == [ToolResultState.SUCCESS, ToolResultState.SUCCESS, ToolResultState.UNKNOWN]
    assert [job.effects(name) for name, job in jobs.items()] == [1, 1, 0]


async def test_the_only_worker_of_a_host_notices_its_own_death_when_it_is_started_again(stage: Stage) -> None:
    look, send = job_at(stage, "look"), job_at(stage, "send")
    async with worker(stage.worker()) as first:
        await asyncio.gather(look.start(), send.start())
        await asyncio.gather(look.is_held("look.before"), send.is_held("send.before"))
        await first.kill()
    async with worker(stage.worker()):
        began = time.monotonic()
        await asyncio.gather(held_again(look, "look"), send.has_recorded("send"))

    assert time.monotonic() - began < usual(SOON)


@pytest.mark.redis
async def test_a_worker_on_another_host_notices_by_redis_and_leaves_once_calls_to_the_server(
    stage: Stage, redis_url: str, tmp_path: Path
) -> None:
    look, send = job_at(stage, "look"), job_at(stage, "send")
    hosts = [
        stage.worker(LONGHAUL_REDIS_URL=redis_url, LONGHAUL_DATA_DIR=str(tmp_path / host)) for host in ("one", "other")
    ]
    async with worker(hosts[0]) as first:
        await asyncio.gather(look.start(), send.start())
        await asyncio.gather(look.is_held("look.before"), send.is_held("send.before"))
        async with worker(hosts[1]):
            await first.kill()
            began = time.monotonic()
            await held_again(look, "look")
            took = time.monotonic() - began
            waiting = await send.underway("send")

    assert took < usual(SOON)
    assert waiting is not None
    assert waiting.attempt == 1
    assert not waiting.HasField("last_failure")


@pytest.mark.redis
async def test_a_worker_that_only_stalled_stops_the_calls_that_another_one_has_taken_over(
    stage: Stage, redis_url: str, tmp_path: Path
) -> None:
    look = job_at(stage, "look")
    hosts = [
        stage.worker(LONGHAUL_REDIS_URL=redis_url, LONGHAUL_DATA_DIR=str(tmp_path / host)) for host in ("one", "other")
    ]
    async with worker(hosts[0]) as first:
        await look.start()
        await look.is_held("look.before")
        async with worker(hosts[1]) as other:
            os.kill(first.pid, signal.SIGSTOP)
            await until(lambda: other.has_said("a worker died; its calls are given up"), "the other one misses it")
            os.kill(first.pid, signal.SIGCONT)
            await held_again(look, "look")
            await until(lambda: first.has_said("another worker took this one as dead"), "the first one is told")
            look.release()
            end = await look.finish()
            transcript = await look.transcript()

    assert end.finished_reason is FinishedReason.COMPLETED
    assert len([result for message in transcript for result in message.get_tool_results()]) == 1
