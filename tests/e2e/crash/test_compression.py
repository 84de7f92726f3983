"""Workers that are killed while contexts are made shorter, or while sessions go on in a fresh history: nothing is lost
and nothing is kept twice. Five sessions run on each worker that is killed, and four workers are: all five compress at
each kill, or, where they continue as new, one of them has just done so and the others are wherever they are.
"""

import asyncio
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import PendingActivityState

from longhaul.agent.values.conversation.messages import Msg
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, assert_as_if_nothing_was, call, says, until
from tests.e2e.crash.crash_tools import HOLD, LEDGER
from tests.e2e.processes import WorkerProcess, WorkerSettings, worker
from tests.workflows.tools import page_text

pytestmark = [pytest.mark.server, pytest.mark.chaos]

JOBS, KILLS, ASKS = 5, 4, 8
COMPRESS = "longhaul.compress"
SMALL = {"context_length": 6_000, "max_output_tokens": 500}
ANSWERS = [f"Answer {number}. {page_text(number, 3_000)}" for number in range(ASKS)]
FIELDS = ("task_overview", "current_state", "important_discoveries", "next_steps", "context_to_preserve")
LOOKS = 20


def summary(delay_ms: float) -> dict[str, Any]:
    """A scripted summary in some 25 pieces."""
    written = {"name": "write_summary", "input": dict.fromkeys(FIELDS, "short and dry")}
    return {"for": "summary", "tool_calls": [written], "delay_ms": delay_ms}


SLOW = summary(2_000)
"""Still under way when its worker is killed, however slow this machine is."""


def hurry(job: Job) -> None:
    """From now on its summary takes no time."""
    script = Path(job.session.spec.model.removeprefix("scripted:"))
    script.write_text(script.read_text().replace(json.dumps(SLOW), json.dumps(summary(0))))


def talk(stage: Stage, name: str, *summaries: dict[str, Any], **more: Any) -> Job:
    """A session that compresses several times in eight requests."""
    return stage.job(name, [*map(says, ANSWERS), *summaries], model_config=SMALL, **more)


async def ask_all(job: Job) -> None:
    for number in range(ASKS):
        job.reply_id = await job.session.submit(f"Ask {number}", request_id=f"r-{number}")


def texts(messages: list[Msg]) -> Counter[str]:
    return Counter(message.get_text_content() for message in messages)


def offloaded(job: Job, directory: Path) -> list[Msg]:
    (file,) = [one for one in directory.rglob("context.jsonl") if job.session.id in str(one)]
    return [Msg.model_validate(json.loads(line)) for line in file.read_text("utf-8").splitlines()]


async def assert_kept_once(job: Job, directory: Path) -> None:
    """What left the context stands in the file once, and the rest in the context."""
    dropped = offloaded(job, directory)
    shown = [message async for message in job.session.context()][1:]
    assert dropped
    assert texts(dropped) + texts(shown) == texts(await job.transcript())


async def finish_beside(killed: list[Job], control: Job) -> None:
    """All of them to the end, and one that nobody has disturbed."""
    await ask_all(control)
    await asyncio.gather(*(job.finish() for job in (*killed, control)))


async def test_twenty_summaries_are_killed_while_they_are_written(temporal_server: DevServer, tmp_path: Path) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    settings = stage.one_directory()
    jobs = [talk(stage, f"talk-{number}", SLOW) for number in range(JOBS)]
    for kill in range(KILLS):
        async with worker(settings) as one:
            if not kill:
                await asyncio.gather(*map(ask_all, jobs))
            await until(partial(all_compress, jobs, kill + 1), f"all compress for the {kill + 1}. time")
            await asyncio.sleep(0.1 * kill)
            assert await all_compress(jobs, kill + 1)
            await one.kill()

    for job in jobs:
        hurry(job)
    async with worker(settings):
        control = talk(stage, "control", summary(0))
        await finish_beside(jobs, control)

        await assert_as_if_nothing_was(jobs, control, 2 * ASKS)
        for job in jobs:
            await assert_kept_once(job, settings.directory)


async def all_compress(jobs: list[Job], attempt: int) -> bool:
    """By this attempt; one whose worker is dead is not heard of for two seconds, and counts as running until then."""
    found = [await job.underway(COMPRESS) for job in jobs]
    started = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    return all(one is not None and one.state == started and one.attempt == attempt for one in found)


async def test_twenty_compressions_are_killed_behind_what_they_wrote(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    name = "tests.e2e.crash.crash_offloader:Held"
    settings = stage.one_directory(offloaders=name)
    jobs = [talk(stage, f"talk-{number}", offloader=name) for number in range(JOBS)]
    gate = settings.directory / HOLD / "offload"
    gate.parent.mkdir(parents=True)
    gate.touch()
    for kill in range(KILLS):
        async with worker(settings) as one:
            if not kill:
                await asyncio.gather(*map(ask_all, jobs))
            await all_have_written(jobs, settings, one)
            await one.kill()

    gate.unlink()
    async with worker(settings):
        control = talk(stage, "control", offloader=name)
        await finish_beside(jobs, control)

        await assert_as_if_nothing_was(jobs, control, 2 * ASKS)
        for job in jobs:
            await assert_kept_once(job, settings.directory)


async def all_have_written(jobs: list[Job], settings: WorkerSettings, one: WorkerProcess) -> None:
    """By this very worker, which stands behind its writing now."""

    async def seen() -> bool:
        file = settings.directory / LEDGER
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return {line["session"] for line in lines if line["worker"] == one.pid} == {job.session.id for job in jobs}

    await until(seen, "each session's dropped messages are written")


async def test_workers_are_killed_while_sessions_go_on_in_fresh_histories(
    impatient_server: str, tmp_path: Path
) -> None:
    stage = await Stage.on(impatient_server, tmp_path)
    settings = stage.one_directory()
    steps = [says(f"Step {number}", {**call("look"), "id": f"look-{number}"}) for number in range(LOOKS)]
    jobs = [stage.job(f"steps-{number}", [*steps, says("all done")]) for number in range(JOBS)]
    for kill in range(KILLS):
        async with worker(settings) as one:
            if not kill:
                await asyncio.gather(*(job.start() for job in jobs))
            await continued_as_new(jobs[kill])
            await asyncio.sleep(0.01 * kill)
            await one.kill()

    async with worker(settings):
        control = stage.job("control", [*steps, says("all done")])
        await control.start()
        await asyncio.gather(*(job.finish() for job in (*jobs, control)))

        await assert_as_if_nothing_was(jobs, control, 2 * LOOKS + 2)
        for job in jobs:
            assert set(await job.results()) == {f"look-{number}" for number in range(LOOKS)}
            await until(partial(has_runs, stage, job), f"{job.session.id} had {LOOKS} histories")


async def has_runs(stage: Stage, job: Job) -> bool:
    """Whether the session has gone on in so many fresh histories."""
    query = f"WorkflowId = '{job.session.workflow_id}'"
    return len([row async for row in stage.app.client.list_workflows(query)]) >= LOOKS


async def continued_as_new(job: Job) -> None:
    """The server has just started a new run of it, or it has come to its end before."""
    before = (await job.handle.describe()).run_id

    async def seen() -> bool:
        return (await job.handle.describe()).run_id != before or (await job.session.status()).status == "idle"

    await until(seen, f"{job.session.id} goes on in a fresh history")
