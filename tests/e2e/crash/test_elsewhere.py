"""Workers that differ: what one can't do is left alone, and done by another one."""

from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, call, says
from tests.e2e.processes import worker

pytestmark = pytest.mark.server

SIGNED = (says("sign", call("sign")), says("all done"))


async def parked(stage: Stage) -> Job:
    """A session whose next step is a `once` call, and no worker."""
    job = stage.job("parked", SIGNED)
    async with worker(stage.worker()):
        await job.start()
        await job.is_waiting()
    await job.approve()
    return job


async def test_a_once_call_that_one_worker_lacks_is_run_once_by_another(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = await parked(stage)

    async with worker(stage.worker(tools="")):
        await job.is_not_here("sign")
        async with worker(stage.worker()) as able:
            final = await job.finish()
            results = await job.results()

            assert final.finished_reason is FinishedReason.COMPLETED
            assert results["sign"].state is ToolResultState.SUCCESS
            (began,) = job.ledger("began")
            assert began["worker"] == able.pid
            assert began["attempt"] > 1


async def test_a_call_is_looked_at_by_a_worker_that_has_its_tool(temporal_server: DevServer, tmp_path: Path) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("idle", [says("ready"), says("", call("send")), says("all done")])
    async with worker(stage.worker()):
        await job.start()
        await job.finish()

    async with worker(stage.worker(tools="")):
        await job.start("again")
        await job.is_not_here("longhaul.prepare_reply")
        async with worker(stage.worker()):
            final = await job.finish()

            assert final.get_text_content().endswith("all done")
            assert job.effects("send") == 1


@pytest.mark.proves("E12")
async def test_a_worker_that_sees_another_workspace_touches_nothing(temporal_server: DevServer, tmp_path: Path) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = await parked(stage)
    ours, theirs = job.root.with_name("ours"), job.root
    job.root.rename(ours)
    (theirs / ".longhaul").mkdir(parents=True)
    (theirs / ".longhaul" / "workspace").write_text("0123456789abcdef")

    async with worker(stage.worker()):
        await job.is_not_here("sign")
        found_in_theirs = sorted(str(path.relative_to(theirs)) for path in theirs.rglob("*"))
        theirs.rename(job.root.with_name("theirs"))
        ours.rename(job.root)
        final = await job.finish()

        assert found_in_theirs == [".longhaul", ".longhaul/workspace"]
        assert final.finished_reason is FinishedReason.COMPLETED
        assert job.effects("sign") == 1
