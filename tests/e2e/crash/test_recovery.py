"""How long a session stands still when its worker is killed while another one stands by."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, call, says, until
from tests.e2e.processes import worker
from tests.limits import usual

pytestmark = [pytest.mark.server, pytest.mark.alone]

LOOSE_LIMIT_SECONDS = 8
"""The floor is the sticky timeout (1 s), or the model's heartbeat timeout (2 s) and a retry; a busy machine adds."""


def held_times(job: Job, count: int) -> Callable[[], "asyncio.Future[bool]"]:
    async def seen() -> bool:
        return len(job.ledger("held")) >= count

    return lambda: asyncio.ensure_future(seen())


@pytest.mark.proves("S1")
async def test_an_idle_sessions_next_model_request_comes_soon_after_a_kill(
    temporal_server: DevServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("idle", [says("ready"), says("", call("look")), says("done")], ["look.examine"])
    async with worker(stage.worker()) as first:
        await job.start()
        await job.finish()
        async with worker(stage.worker()):
            await first.kill()
            killed = time.monotonic()

            await job.start("go on")
            await until(held_times(job, 1), "the next model request")
            took = time.monotonic() - killed
            job.release()
            final = await job.finish()

    print(f"\nidle, worker killed, asked at once: next model request after {took:.2f} s")
    record_property("idle_recovery_seconds", round(took, 2))
    assert took <= usual(LOOSE_LIMIT_SECONDS)
    assert final.finished_reason is FinishedReason.COMPLETED


@pytest.mark.proves("S2")
async def test_a_model_call_is_made_again_soon_after_a_kill(
    temporal_server: DevServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("thinking", [says("", call("look")), says("done")], ["look.examine"])
    async with worker(stage.worker()) as first:
        await job.start()
        await job.is_held("look.examine")
        async with worker(stage.worker()):
            await first.kill()
            killed = time.monotonic()

            await until(held_times(job, 2), "the second attempt of the model call")
            took = time.monotonic() - killed
            job.release()
            final = await job.finish()

    print(f"\nin a model call, worker killed: next model request after {took:.2f} s")
    record_property("model_call_recovery_seconds", round(took, 2))
    assert took <= usual(LOOSE_LIMIT_SECONDS)
    assert final.finished_reason is FinishedReason.COMPLETED
    assert len(job.ledger("began")) == 1
