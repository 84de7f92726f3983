"""A session that a build of other rules has worked on can't be replayed by this one: one command brings it back."""

import asyncio
import json
import sys
from typing import Any

import pytest
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.starter.client.wire import Refused
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, call, says, until
from tests.e2e.processes import WorkerSettings, environment, worker

pytestmark = pytest.mark.server


async def longhaul(stage: Stage, settings: WorkerSettings, *words: str) -> tuple[int, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "longhaul.starter.cli.main", *words, "--json"],
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        cwd=stage.directory,
    )
    assert process.stdout is not None
    said = await process.stdout.read()
    return await process.wait(), json.loads(said) if said else {}


async def test_a_session_that_nobody_can_replay_goes_on_from_its_checkpoint_and_tells_what_ran(
    temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path_factory.mktemp("rescue"))
    ours = stage.one_directory()
    odd = stage.one_directory(program=("tests.e2e.odd_build", "worker"), further={"ODD_BUILD": "1"})
    slow = {**says("all done"), "delay_ms": 60_000}
    job = stage.job("rescued", [says("noted"), says("", call("send")), slow])
    async with worker(ours):
        with pytest.raises(Refused, match="the session answers"):
            await started(job)
        await job.start("Pay the bill")
        await job.has_recorded("send")
        await job.is_running("longhaul.call_model")
    async with worker(odd):
        await until(lambda: fails(job), "no build of these rules can go on with it")
        code, rescued = await longhaul(stage, odd, "rescue", job.session.id)
        status = await job.session.status()
        await job.session.resume(by="ana")
        context = [message async for message in job.session.context()]

    assert code == 0
    assert [(ran["tool"], ran["how"]) for ran in rescued["ran"]] == [("send", "ended")]
    assert rescued["quarantine"] == status.quarantine
    assert status.quarantine.startswith("restored from the checkpoint of entry ")
    assert any("send" in str(message) and "Check before you repeat any" in str(message) for message in context)
    assert job.effects("send") == 1


async def started(job: Job) -> None:
    """With a first reply that is written down; then it is tried to be rescued."""
    await job.session.reply("Note that")

    async def written_down() -> bool:
        status = await job.session.status()
        return status.saved_seq >= status.seq

    await until(written_down, "the first reply is written down")
    await job.session.rescue(by="ana")


async def fails(job: Job) -> bool:
    try:
        await job.handle.query("status")
    except WorkflowQueryFailedError:
        return True
    except RPCError:
        return False
    return False
