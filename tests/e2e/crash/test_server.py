"""A server that is killed and started again on its database: parked sessions and running batches go on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_stage import Stage, assert_well_formed, call, says
from tests.e2e.processes import worker

pytestmark = pytest.mark.server

SCRIPT = (
    says("three at once", call("look"), call("put"), call("send")),
    says("now sign", call("sign")),
    says("all done", expect={"messages": 7}),
)


@pytest.fixture
async def mortal_server(temporal_cli: Path, tmp_path: Path) -> AsyncIterator[DevServer]:
    """A server of the test's own, to be killed."""
    settings = DevServerSettings(
        temporal=temporal_cli, directory=tmp_path / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    async with DevServer(settings) as server:
        yield server


@pytest.mark.proves("S1")
async def test_a_parked_session_outlives_all_workers_and_the_server(mortal_server: DevServer, tmp_path: Path) -> None:
    stage = await Stage.on(mortal_server.address, tmp_path)
    job = stage.job("parked", SCRIPT)
    async with worker(stage.worker()) as first:
        await job.start()
        await job.is_waiting()
        before = await job.transcript()
        first.ask_to_stop()
        assert await first.wait() == 0

    await mortal_server.kill()
    await mortal_server.start()
    async with worker(stage.worker()):
        kept = await job.transcript()
        waiting = await job.session.pending()
        cards = await stage.app.sessions(status="waiting")
        await job.approve()
        final = await job.finish()

        assert kept == before
        assert [one.call_id for one in waiting] == ["sign"]
        assert [card.session_id for card in cards] == [job.session.id]
        assert final.finished_reason is FinishedReason.COMPLETED
        assert final.get_text_content().endswith("all done")
        assert {tool: job.effects(tool) for tool in ("look", "put", "send", "sign")} == {
            "look": 1,
            "put": 1,
            "send": 1,
            "sign": 1,
        }


@pytest.mark.proves("S7", "X13")
async def test_a_running_batch_outlives_the_server(mortal_server: DevServer, tmp_path: Path) -> None:
    stage = await Stage.on(mortal_server.address, tmp_path)
    held = ["look.before", "put.after", "send.after"]
    waiting, ending = stage.job("over-the-outage", SCRIPT, held), stage.job("within-the-outage", SCRIPT, held)
    async with worker(stage.worker()):
        for job in (waiting, ending):
            await job.start()
            for point in held:
                await job.is_held(point)

        await mortal_server.kill()
        ending.release()
        await mortal_server.start()
        waiting.release()
        for job in (waiting, ending):
            final = await job.finish()
            transcript, results = await job.transcript(), await job.results()

            assert final.finished_reason is FinishedReason.COMPLETED
            assert_well_formed(transcript)
            assert {result.state for result in results.values()} == {ToolResultState.SUCCESS}
            assert [len(job.ledger("began", tool)) for tool in ("put", "send", "sign")] == [1, 1, 1]
            assert [job.effects(tool) for tool in ("look", "put", "send", "sign")] == [1, 1, 1, 1]


async def test_a_paused_session_outlives_its_worker_and_the_server(mortal_server: DevServer, tmp_path: Path) -> None:
    """It is paused while a batch runs: what was under way comes to its end, and nothing more is started."""
    stage = await Stage.on(mortal_server.address, tmp_path)
    job = stage.job("paused", SCRIPT, ["look.before"])
    async with worker(stage.worker()) as first:
        await job.start()
        await job.is_held("look.before")
        await job.has_recorded("put", "send")
        await job.session.pause(why="the tide is high", by="ana")
        await first.kill()
    await mortal_server.kill()
    await mortal_server.start()
    job.release()
    async with worker(stage.worker()) as second:
        await job.has_recorded("look")
        await second.kill()
    await mortal_server.kill()
    await mortal_server.start()
    async with worker(stage.worker()):
        kept = await job.session.status()
        await job.session.resume(by="ben")
        final = await job.finish()

        assert (kept.status, kept.model_calls, kept.paused_by) == ("paused", 1, "ana")
        assert final.finished_reason is FinishedReason.COMPLETED
        assert [job.effects(tool) for tool in ("look", "put", "send", "sign")] == [1, 1, 1, 1]
        assert_well_formed(await job.transcript())
        await job.replays()
