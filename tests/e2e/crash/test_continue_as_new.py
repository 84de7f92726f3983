"""Workers that are killed inside a continue-as-new, exactly: when it was decided and not said, or begun and not yet
used."""

import asyncio
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.e2e.crash.crash_stage import Job, Stage, assert_as_if_nothing_was, call, says, until
from tests.e2e.processes import WorkerProcess, worker
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

LOOKS = 12
STEPS = [says(f"Step {number}", {**call("look"), "id": f"look-{number}"}) for number in range(LOOKS)]
KILLED = -9


async def dies_rolling_over(stage: Stage, job: Job, moment: str) -> None:
    """One worker serves the session until it dies inside a continue-as-new of it; `after` one, there is a new run."""
    before = (await job.handle.describe()).run_id
    mortal = await WorkerProcess.start(stage.one_directory(program=("tests.e2e.mortal_worker", moment)))
    async with asyncio.timeout(SURE_SECONDS):
        assert await mortal.wait() == KILLED
    assert ((await job.handle.describe()).run_id != before) == (moment == "after")


@pytest.mark.proves("S13")
@pytest.mark.parametrize(
    "kills", [2, pytest.param(20, marks=[pytest.mark.chaos, pytest.mark.timeout(400)])], ids=["twice", "twenty times"]
)
async def test_a_session_whose_continue_as_new_are_killed_says_what_it_would_have_said(
    impatient_server: str, tmp_path: Path, kills: int
) -> None:
    stage = await Stage.on(impatient_server, tmp_path)
    job, control = (stage.job(name, [*STEPS, says("all done")]) for name in ("killed", "control"))
    # Its answer comes from the first worker.
    asking = asyncio.create_task(job.start())
    await until(job.is_known, "the session is started")
    for moment in islice(cycle(("before", "after")), kills):
        await dies_rolling_over(stage, job, moment)

    async with worker(stage.one_directory()):
        await asking
        await control.start()
        await asyncio.gather(job.finish(), control.finish())

        await assert_as_if_nothing_was([job], control, 2 * LOOKS + 2)
        assert set(await job.results()) == {f"look-{number}" for number in range(LOOKS)}
