"""A worker that is killed while it writes a session down loses nothing, and writes nothing twice or wrongly."""

import asyncio
from pathlib import Path

import pytest

from longhaul.agent.entries import AnyEntry
from longhaul.agent.incarnation.history import messages
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.segments import Segments
from longhaul.stores.state.open_store import open_store
from tests.e2e.crash.crash_stage import Job, Stage, says, until
from tests.e2e.processes import WorkerSettings, worker

pytestmark = pytest.mark.server


@pytest.mark.proves("E2", "S17")
@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=[pytest.mark.chaos])], ids=["three", "twenty"])
async def test_kills_in_a_checkpoint(temporal_server: DevServer, tmp_path: Path, kills: int) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("checkpoint", [says(f"Answer {number}. " + "x" * 20_000) for number in range(kills + 1)])
    one = WorkerSettings(
        address=stage.address, task_queue=stage.app.settings.task_queue, directory=tmp_path / "workers"
    )
    for number in range(kills):
        async with worker(one) as running:
            await job.session.submit(f"Ask {number}", request_id=f"r-{number}")
            await until(lambda: model_has_answered(job, number + 1), "the model has answered")  # noqa: B023  at once
            # It is written down in the task that comes with the answer, which takes some tens of milliseconds.
            await asyncio.sleep(0.06 * number / kills)
            await running.kill()

    async with worker(one):
        await job.session.reply("Ask at last", request_id="r-last")

        async def saved() -> bool:
            status = await job.session.status()
            return status.saved_seq >= status.seq and status.checkpoint_error == ""

        await until(saved, "all of it is saved")
        status = await job.session.status()
        told = await job.transcript()

    segments = Segments(open_blobs("", data_dir=one.directory))
    entries: list[AnyEntry] = [entry for segment in status.segments for entry in await segments.read(segment)]
    asked = [f"Ask {number}" for number in range(kills)] + ["Ask at last"]
    sealed = [message for _, message in messages(entries)]
    assert [message.get_text_content() for message in told if message.role == "user"] == asked
    assert sealed == told
    assert len(told) == 2 * (kills + 1)
    await job.replays()
    assert (status.quarantine, status.incarnation) == ("", 1)
    record = await open_store("file", data_dir=one.directory).get_session(None, "crash", job.session.id)
    assert record is not None
    assert record.seq >= status.saved_seq
    assert [message.get_text_content() for message in record.state.context[-2:]] == [
        "Ask at last",
        told[-1].get_text_content(),
    ]


async def model_has_answered(job: Job, times: int) -> bool:
    """As the server knows, whatever the session has made of it."""
    events = (await job.handle.fetch_history()).events
    return sum(event.HasField("activity_task_completed_event_attributes") for event in events) > times
