"""A worker that is killed, or asked to stop, at every point of a job: what was done stays done, and is told truly."""

import asyncio
from dataclasses import dataclass

import pytest

from agent.messages import FinishedReason, Msg, ToolResultBlock, ToolResultState
from starter.provision.dev_server import DevServer
from tests.e2e.crash_stage import Job, Stage, assert_well_formed, bash, call, says, until
from tests.e2e.processes import running_with, worker

pytestmark = [pytest.mark.server, pytest.mark.timeout(150)]

THREE_AT_ONCE = says("three at once", call("look"), call("put"), call("send"))
THEN_SIGN = says("now sign", call("sign"))
SCRIPT = (THREE_AT_ONCE, THEN_SIGN, says("all done", expect={"messages": 7}))
SLOW_END = (THREE_AT_ONCE, THEN_SIGN, says("all done" + "." * 240, delay_ms=100))

HELD_IN_BATCH = ("look.before", "look.after", "put.before", "put.after", "send.before", "send.after")
HELD_IN_MODEL_CALL = ("look.examine", "sign.examine")
HELD_AFTER_APPROVAL = ("sign.before", "sign.after")
POINTS = ("prepare", *HELD_IN_MODEL_CALL, *HELD_IN_BATCH, "parked", *HELD_AFTER_APPROVAL, "last model call", "finished")


@dataclass(frozen=True)
class Told:
    """How a job ended."""

    job: Job
    final: Msg
    transcript: list[Msg]
    results: dict[str, ToolResultBlock]


async def bring_to(point: str, job: Job) -> None:
    """Start the job and return when it stands at its point, with all that it did before recorded."""
    await job.start()
    if point == "prepare":
        await job.is_not_here("longhaul.prepare_reply")
    elif point in HELD_IN_MODEL_CALL:
        await job.is_held(point)
    elif point in HELD_IN_BATCH:
        await job.is_held(point)
        await job.has_recorded(*({"look", "put", "send"} - {tool_of(point)}))
    else:
        await job.is_waiting()
        await bring_beyond_approval(point, job)


async def bring_beyond_approval(point: str, job: Job) -> None:
    if point in HELD_AFTER_APPROVAL:
        await job.approve()
        await job.is_held(point)
    elif point == "last model call":
        await job.approve()
        await job.has_recorded("sign")
        await job.is_running("longhaul.call_model")
    elif point == "finished":
        await job.finish()


def tool_of(point: str) -> str:
    return point.partition(".")[0]


async def tell(job: Job, *, asked_again: bool = False) -> Told:
    if asked_again:
        await job.start("and now?")
    final = await job.finish()
    await job.replays()
    return Told(job, final, await job.transcript(), await job.results())


async def all_survive_a_kill(stage: Stage) -> dict[str, Told]:
    """One worker with a job at each point, and one with a command in the shell, is killed; another one takes over."""
    jobs = {point: stage.job(point, SLOW_END if point == "last model call" else SCRIPT, [point]) for point in POINTS}
    jobs["shell"] = stage.job("shell", [says("wait", bash("sleep 60.0417; touch X")), says("all done")])
    absent = jobs["prepare"].root.rename(stage.directory / "not-there-yet")
    async with worker(stage.worker()) as first:
        await jobs["shell"].start()
        await asyncio.gather(*(bring_to(point, jobs[point]) for point in POINTS))
        await until(lambda: exists("sleep 60.0417"), "the command runs")
        await first.kill()
    await until(lambda: gone("60.0417"), "the command died with its worker", seconds=5)
    absent.rename(jobs["prepare"].root)
    for job in jobs.values():
        job.release()
    await jobs["parked"].approve()
    async with worker(stage.worker()):
        told = await asyncio.gather(*(tell(job, asked_again=point == "finished") for point, job in jobs.items()))
    return dict(zip(jobs, told, strict=True))


async def all_survive_a_stop(stage: Stage) -> dict[str, Told]:
    """A worker is asked to stop while it runs three calls; the next one stands ready."""
    jobs = {
        "send": stage.job("send", [says("", call("send")), says("all done")], ["send.before"]),
        "look": stage.job("look", [says("", call("look")), says("all done")], ["look.before"]),
        "shell": stage.job("shell", [says("", bash("echo so far; sleep 90.0418; touch X")), says("all done")]),
    }
    async with worker(stage.worker()) as first:
        await asyncio.gather(*(job.start() for job in jobs.values()))
        await asyncio.gather(jobs["send"].is_held("send.before"), jobs["look"].is_held("look.before"))
        await until(lambda: exists("sleep 90.0418"), "the command runs")
        first.ask_to_stop()
        async with worker(stage.worker()):
            jobs["send"].release()
            assert await first.wait() == 0
            assert await gone("90.0418")
            jobs["look"].release()
            told = await asyncio.gather(*(tell(job) for job in jobs.values()))
    return dict(zip(jobs, told, strict=True))


async def exists(text: str) -> bool:
    return bool(running_with(text))


async def gone(text: str) -> bool:
    return not running_with(text)


@pytest.fixture(scope="module")
async def stories(
    temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Told], dict[str, Told]]:
    """What came of the jobs of a killed worker and of a stopped one: side by side, for both take half a minute."""
    stages = [await Stage.on(temporal_server.address, tmp_path_factory.mktemp(name)) for name in ("killed", "stopped")]
    killed, stopped = await asyncio.gather(all_survive_a_kill(stages[0]), all_survive_a_stop(stages[1]))
    return killed, stopped


@pytest.fixture
def killed(stories: tuple[dict[str, Told], dict[str, Told]]) -> dict[str, Told]:
    return stories[0]


@pytest.fixture
def stopped(stories: tuple[dict[str, Told], dict[str, Told]]) -> dict[str, Told]:
    return stories[1]


@pytest.mark.parametrize("point", POINTS)
def test_a_job_survives_the_kill_of_its_worker_at_any_point(killed: dict[str, Told], point: str) -> None:
    told = killed[point]

    assert told.final.finished_reason is FinishedReason.COMPLETED
    answers = [message.get_text_content() for message in told.transcript if "all done" in message.get_text_content()]
    assert len(answers) == 1
    assert_well_formed(told.transcript)
    assert set(told.results) == {"look", "put", "send", "sign"}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("tool", ["look", "put", "send", "sign"])
def test_each_call_of_a_killed_worker_runs_as_often_as_its_effect_class_says(
    killed: dict[str, Told], point: str, tool: str
) -> None:
    job = killed[point].job
    repeatable = tool in ("look", "put")
    lost = point.startswith(f"{tool}.") and not point.endswith("examine")

    began = job.ledger("began", tool)

    assert len(began) == (2 if lost and repeatable else 1)
    assert {line["call"] for line in began} == {tool}
    assert (
        job.effects(tool)
        == {
            (False, False): 1,
            (False, True): 1,
            (True, True): 2 if point.endswith("after") else 1,
            (True, False): 1 if point.endswith("after") else 0,
        }[lost, repeatable]
    )


@pytest.mark.parametrize("point", POINTS)
def test_only_a_lost_once_call_of_a_killed_worker_is_of_unknown_outcome(killed: dict[str, Told], point: str) -> None:
    lost = {tool_of(point)} & {"send", "sign"} if point.endswith(("before", "after")) else set()

    unknown = {name for name, result in killed[point].results.items() if result.state is ToolResultState.UNKNOWN}
    successes = {name for name, result in killed[point].results.items() if result.state is ToolResultState.SUCCESS}

    assert unknown == lost
    assert successes == {"look", "put", "send", "sign"} - lost
    for name in lost:
        told_to_model = killed[point].results[name].get_text()
        assert told_to_model.startswith("Outcome unknown")
        assert "the worker that ran it was lost" in told_to_model


def test_a_shell_command_dies_with_its_killed_worker_and_the_model_is_told(killed: dict[str, Told]) -> None:
    told = killed["shell"]

    assert told.results["Bash"].state is ToolResultState.UNKNOWN
    assert told.results["Bash"].get_text().startswith("Outcome unknown")
    assert not (told.job.root / "X").exists()
    assert told.final.get_text_content().endswith("all done")


def test_a_stopped_worker_lets_a_once_call_end(stopped: dict[str, Told]) -> None:
    told = stopped["send"]

    assert told.results["send"].state is ToolResultState.SUCCESS
    assert len(told.job.ledger("began")) == told.job.effects("send") == 1


def test_a_read_that_a_stopped_worker_could_not_end_is_done_by_another_one(stopped: dict[str, Told]) -> None:
    told = stopped["look"]

    first, second = told.job.ledger("began")
    assert told.results["look"].state is ToolResultState.SUCCESS
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["worker"] != second["worker"]
    assert told.job.effects("look") == 1


def test_a_shell_command_that_a_stopped_worker_cuts_short_is_told_truly(stopped: dict[str, Told]) -> None:
    told = stopped["shell"]

    assert told.results["Bash"].state is ToolResultState.UNKNOWN
    assert "its worker was shut down" in told.results["Bash"].get_text()
    assert not (told.job.root / "X").exists()
    assert told.final.get_text_content().endswith("all done")
