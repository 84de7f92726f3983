"""A worker that is killed, or asked to stop, at every point of a job: what was done stays done, and is told truly."""

import asyncio
import signal
import socket
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, Msg, ToolResultBlock, ToolResultState
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, assert_well_formed, bash, call, says, until
from tests.e2e.processes import WorkerProcess, a_while, running_with, worker

pytestmark = pytest.mark.server

THREE_AT_ONCE = says("three at once", call("look"), call("put"), call("send"))
THEN_SIGN = says("now sign", call("sign"))
SCRIPT = (THREE_AT_ONCE, THEN_SIGN, says("all done", expect={"messages": 7}))
SLOW_END = (THREE_AT_ONCE, THEN_SIGN, says("all done" + "." * 240, delay_ms=100))

HELD_IN_BATCH = ("look.before", "look.after", "put.before", "put.after", "send.before", "send.after")
HELD_IN_MODEL_CALL = ("look.examine", "sign.examine")
HELD_AFTER_APPROVAL = ("sign.before", "sign.after")
POINTS = ("prepare", *HELD_IN_MODEL_CALL, *HELD_IN_BATCH, "parked", *HELD_AFTER_APPROVAL, "last model call", "finished")


@dataclass(frozen=True)
class Delivered:
    """How a job ended."""

    job: Job
    final: Msg
    transcript: list[Msg]
    results: dict[str, ToolResultBlock]
    events: list[AgentEvent]
    stopped_by: str = ""
    """The worker whose shutdown the session named, when that worker was gone and no other had gone on."""


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


async def tell(job: Job, *, asked_again: bool = False) -> Delivered:
    if asked_again:
        await job.start("and now?")
    final = await job.finish()
    await job.replays()
    events = list((await job.session.events()).events)
    return Delivered(job, final, await job.transcript(), await job.results(), events)


async def all_survive_a_kill(stage: Stage) -> dict[str, Delivered]:
    """One worker with a job at each point, and one with a command in the shell, is killed; another one takes over."""
    mark = a_while(60)
    jobs = {point: stage.job(point, SLOW_END if point == "last model call" else SCRIPT, [point]) for point in POINTS}
    jobs["shell"] = stage.job("shell", [says("wait", bash(f"sleep {mark}; touch X")), says("all done")])
    absent = jobs["prepare"].root.rename(stage.directory / "not-there-yet")
    async with worker(stage.worker()) as first:
        await jobs["shell"].start()
        await asyncio.gather(*(bring_to(point, jobs[point]) for point in POINTS))
        await until(lambda: exists(f"sleep {mark}"), "the command runs")
        await first.kill()
    await until(lambda: gone(mark), "the command died with its worker")
    absent.rename(jobs["prepare"].root)
    for job in jobs.values():
        job.release()
    await jobs["parked"].approve()
    async with worker(stage.worker()):
        told = await asyncio.gather(*(tell(job, asked_again=point == "finished") for point, job in jobs.items()))
    return dict(zip(jobs, told, strict=True))


async def all_survive_a_stop(stage: Stage) -> dict[str, Delivered]:
    """A worker is asked to stop while it is at five things, and gives them two seconds; the next one stands ready."""
    mark = a_while(90)
    jobs = {
        "send": stage.job("send", [says("", call("send")), says("all done")], ["send.before"]),
        "look": stage.job("look", [says("", call("look")), says("all done")], ["look.before"]),
        "shell": stage.job("shell", [says("", bash(f"echo so far; sleep {mark}; touch X")), says("all done")]),
        "model": stage.job("model", [says("", call("look")), says("all done")], ["look.examine"]),
        "walk": stage.job("walk", [says("", call("walk")), says("all done")], ["walk.before"]),
    }
    async with worker(stage.worker(LONGHAUL_GRACEFUL_SHUTDOWN_TIMEOUT="2")) as first:
        await asyncio.gather(*(job.start() for job in jobs.values()))
        held = {"send": "send.before", "look": "look.before", "model": "look.examine", "walk": "walk.before"}
        await asyncio.gather(*(jobs[name].is_held(point) for name, point in held.items()))
        await until(lambda: exists(f"sleep {mark}"), "the command runs")
        first.ask_to_stop()
        jobs["send"].release()
        async with worker(stage.worker()):
            assert await first.wait() == 0
            assert await gone(mark)
            cut_short = ("look", "model", "walk")
            left = [await jobs[name].session.status() for name in cut_short]
            assert all(status.shutdown_interrupted for status in left)
            for name in cut_short:
                jobs[name].release()
            told = await asyncio.gather(*(tell(job) for job in jobs.values()))
    named = dict(zip(cut_short, (status.left_by for status in left), strict=True))
    expected = named_as_temporal_does(first)
    assert set(named.values()) == {expected}
    stories = dict(zip(jobs, told, strict=True))
    return {name: replace(story, stopped_by=expected) for name, story in stories.items()}


def named_as_temporal_does(process: WorkerProcess) -> str:
    return f"{process.pid}@{socket.gethostname()}"


async def exists(text: str) -> bool:
    return bool(running_with(text))


async def gone(text: str) -> bool:
    return not running_with(text)


@pytest.fixture(scope="module")
async def stories(
    temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Delivered], dict[str, Delivered]]:
    """What came of the jobs of a killed worker and of a stopped one: side by side, for both take half a minute."""
    stages = [await Stage.on(temporal_server.address, tmp_path_factory.mktemp(name)) for name in ("killed", "stopped")]
    killed, stopped = await asyncio.gather(all_survive_a_kill(stages[0]), all_survive_a_stop(stages[1]))
    return killed, stopped


@pytest.fixture
def killed(stories: tuple[dict[str, Delivered], dict[str, Delivered]]) -> dict[str, Delivered]:
    return stories[0]


@pytest.fixture
def stopped(stories: tuple[dict[str, Delivered], dict[str, Delivered]]) -> dict[str, Delivered]:
    return stories[1]


@pytest.mark.proves("E2", "S2", "X13")
@pytest.mark.parametrize("point", POINTS)
def test_a_job_survives_the_kill_of_its_worker_at_any_point(killed: dict[str, Delivered], point: str) -> None:
    told = killed[point]

    assert told.final.finished_reason is FinishedReason.COMPLETED
    answers = [message.get_text_content() for message in told.transcript if "all done" in message.get_text_content()]
    assert len(answers) == 1
    assert_well_formed(told.transcript)
    assert set(told.results) == {"look", "put", "send", "sign"}


@pytest.mark.proves("D6", "S3", "S4")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("tool", ["look", "put", "send", "sign"])
def test_each_call_of_a_killed_worker_runs_as_often_as_its_effect_class_says(
    killed: dict[str, Delivered], point: str, tool: str
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


@pytest.mark.proves("S5", "X2")
@pytest.mark.parametrize("point", POINTS)
def test_only_a_lost_once_call_of_a_killed_worker_is_of_unknown_outcome(
    killed: dict[str, Delivered], point: str
) -> None:
    lost = {tool_of(point)} & {"send", "sign"} if point.endswith(("before", "after")) else set()

    unknown = {name for name, result in killed[point].results.items() if result.state is ToolResultState.UNKNOWN}
    successes = {name for name, result in killed[point].results.items() if result.state is ToolResultState.SUCCESS}

    assert unknown == lost
    assert successes == {"look", "put", "send", "sign"} - lost
    for name in lost:
        told_to_model = killed[point].results[name].get_text()
        assert told_to_model.startswith("Outcome unknown")
        assert "the worker that ran it was lost" in told_to_model


@pytest.mark.proves("S5")
def test_a_shell_command_dies_with_its_killed_worker_and_the_model_is_told(killed: dict[str, Delivered]) -> None:
    told = killed["shell"]

    assert told.results["Bash"].state is ToolResultState.UNKNOWN
    assert told.results["Bash"].get_text().startswith("Outcome unknown")
    assert not (told.job.root / "X").exists()
    assert told.final.get_text_content().endswith("all done")


@pytest.mark.proves("E4", "S6")
def test_a_stopped_worker_lets_a_once_call_end(stopped: dict[str, Delivered]) -> None:
    told = stopped["send"]

    assert told.results["send"].state is ToolResultState.SUCCESS
    assert len(told.job.ledger("began")) == told.job.effects("send") == 1


def test_a_read_that_a_stopped_worker_could_not_end_is_done_by_another_one(stopped: dict[str, Delivered]) -> None:
    told = stopped["look"]

    first, second = told.job.ledger("began")
    assert told.results["look"].state is ToolResultState.SUCCESS
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["worker"] != second["worker"]
    assert told.job.effects("look") == 1


def test_a_shell_command_that_a_stopped_worker_cuts_short_is_told_truly(stopped: dict[str, Delivered]) -> None:
    told = stopped["shell"]

    assert told.results["Bash"].state is ToolResultState.UNKNOWN
    assert "its worker was shut down" in told.results["Bash"].get_text()
    assert not (told.job.root / "X").exists()
    assert told.final.get_text_content().endswith("all done")


@pytest.mark.proves("E4", "S6")
@pytest.mark.parametrize(
    ("name", "doing", "call_id"),
    [
        ("look", "look", "look"),
        ("model", "longhaul.call_model", ""),
        ("walk", "walk", "walk"),
        ("shell", "Bash", "Bash"),
    ],
)
def test_a_session_records_the_shutdown_that_interrupted_it_until_it_goes_on(
    stopped: dict[str, Delivered], name: str, doing: str, call_id: str
) -> None:
    told = stopped[name]

    left = [event for event in told.events if event.name == "worker_left"]
    assert [(event.tool_call_id, event.value) for event in left] == [
        (call_id, {"worker": told.stopped_by, "doing": doing})
    ]
    assert told.final.finished_reason is FinishedReason.COMPLETED


def test_a_call_that_ends_in_the_time_that_a_stop_grants_leaves_no_mark(stopped: dict[str, Delivered]) -> None:
    assert [event for event in stopped["send"].events if event.name == "worker_left"] == []


def test_a_long_call_goes_on_from_what_it_had_noted(stopped: dict[str, Delivered]) -> None:
    told = stopped["walk"]

    walked = [(line["attempt"], line["step"]) for line in told.job.ledger("walks from")]
    assert walked == [(1, None), (2, 3)]
    assert told.results["walk"].get_text() == "arrived at step 3"


async def test_the_second_signal_ends_a_worker_at_once(temporal_server: DevServer, tmp_path: Path) -> None:
    mark = a_while(60)
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("shell", [says("", bash(f"sleep {mark}; touch X")), says("all done")])
    async with worker(stage.worker()) as hurried:
        await job.start()
        await until(lambda: exists(f"sleep {mark}"), "the command runs")
        hurried.ask_to_stop()
        await until(lambda: hurried.has_said("stopping: running calls get 20 s"), "it says that it stops")

        hurried.ask_to_stop()
        async with asyncio.timeout(15):
            status = await hurried.wait()

    assert status == 128 + signal.SIGTERM
    await until(lambda: gone(mark), "the command died with its worker")
    await job.handle.terminate("seen enough")
