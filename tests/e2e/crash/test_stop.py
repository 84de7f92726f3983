"""Stopping at the worst moment: interrupt, cancel, terminate, a worker that stalls, a tool that misbehaves."""

import asyncio
import os
import time
from collections.abc import AsyncIterator

import pytest
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, assert_well_formed, bash, call, says, until
from tests.e2e.processes import a_while, running_with, worker
from tests.limits import usual

pytestmark = [pytest.mark.server, pytest.mark.alone]

THREE_AT_ONCE = says("three at once", call("look"), call("put"), call("send"))


@pytest.fixture(scope="module")
async def stage(temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """With one worker that nobody kills."""
    stage = await Stage.on(temporal_server.address, tmp_path_factory.mktemp("stop"))
    async with worker(stage.worker()):
        yield stage


async def interrupted(job: Job, within_seconds: float) -> dict[str, tuple[ToolResultState, str]]:
    """Interrupt, and say how each call ended. The message that comes with it is answered in the same session."""
    began = time.monotonic()
    await job.session.interrupt("stop, and tell me why")
    final = await job.finish()
    took = time.monotonic() - began

    assert final.finished_reason is FinishedReason.INTERRUPTED
    assert took < usual(within_seconds), f"the interrupt took {took:.1f} s"

    async def answered() -> bool:
        return (await job.session.status()).status == "idle"

    await until(answered, "the interrupt's message is answered")
    transcript = await job.transcript()
    assert_well_formed(transcript)
    await job.replays()
    assert "stop, and tell me why" in [message.get_text_content() for message in transcript]
    assert transcript[-1].role == "assistant"
    return {name: (result.state, result.get_text()) for name, result in (await job.results()).items()}


@pytest.mark.proves("C3")
async def test_an_interrupt_cancels_the_model_call(stage: Stage) -> None:
    job = stage.job("thinking", [THREE_AT_ONCE, says("done")], ["look.examine"])
    await job.start()
    await job.is_held("look.examine")

    began = time.monotonic()
    await job.session.interrupt()
    final = await job.finish()

    assert final.finished_reason is FinishedReason.INTERRUPTED
    assert time.monotonic() - began < usual(3)
    assert await job.results() == {}
    assert job.ledger("began") == []


async def test_an_interrupt_stops_running_calls_and_keeps_finished_ones(stage: Stage) -> None:
    job = stage.job("acting", [THREE_AT_ONCE, says("why")], ["put.before", "send.before"])
    await job.start()
    await job.is_held("put.before")
    await job.is_held("send.before")
    await job.has_recorded("look")

    ended = await interrupted(job, within_seconds=5)

    assert {name: state for name, (state, _) in ended.items()} == {
        "look": ToolResultState.SUCCESS,
        "put": ToolResultState.INTERRUPTED,
        "send": ToolResultState.INTERRUPTED,
    }
    assert ended["send"][1].startswith("Interrupted: this call was under way")
    assert (job.effects("put"), job.effects("send")) == (0, 0)


async def test_an_interrupt_kills_a_shell_command(stage: Stage) -> None:
    mark = a_while(60)
    job = stage.job("shell", [says("", bash(f"sleep {mark}; touch X")), says("why")])
    await job.start()
    await until(lambda: is_running(f"sleep {mark}"), "the command runs")

    ended = await interrupted(job, within_seconds=5)

    assert ended["Bash"][0] is ToolResultState.INTERRUPTED
    assert running_with(mark) == []
    assert not (job.root / "X").exists()


async def test_an_interrupt_closes_a_call_that_waits_for_a_person(stage: Stage) -> None:
    job = stage.job("parked", [says("", call("sign")), says("why")])
    await job.start()
    await job.is_waiting()

    ended = await interrupted(job, within_seconds=3)

    assert ended["sign"] == (ToolResultState.INTERRUPTED, "Cancelled before start: this call did not run.")
    assert job.ledger("began") == []


async def test_an_interrupt_ends_a_reply_that_waits_for_its_workspace(stage: Stage) -> None:
    job = stage.job("homeless", [says("hello")])
    job.root.rename(job.root.with_name(f"{job.root.name}-away"))
    await job.start()
    await job.is_not_here("longhaul.prepare_reply")

    await job.session.interrupt()
    final = await job.finish(seconds=5)

    assert final.finished_reason is FinishedReason.INTERRUPTED


@pytest.mark.parametrize("moment", ["thinking", "acting", "parked", "idle"])
async def test_a_cancelled_session_ends_as_cancelled(stage: Stage, moment: str) -> None:
    mark = a_while(60)
    first = {"thinking": call("look"), "acting": bash(f"sleep {mark}")}.get(moment, call("sign"))
    job = stage.job(moment, [says("", first), says("done")], ["look.examine"])
    await job.start()
    match moment:
        case "thinking":
            await job.is_held("look.examine")
        case "acting":
            await until(lambda: is_running(f"sleep {mark}"), "the command runs")
        case "parked":
            await job.is_waiting()
        case _:
            await job.finish()

    await job.handle.cancel()

    await until(lambda: has_status(job, WorkflowExecutionStatus.CANCELED), "the session is cancelled", seconds=5)
    await until(lambda: is_gone(mark), "the command is dead", seconds=5)


async def test_a_terminated_session_leaves_no_process(stage: Stage) -> None:
    mark = a_while(60)
    job = stage.job("shell", [says("", bash(f"sleep {mark}; touch X")), says("done")])
    await job.start()
    await until(lambda: is_running(f"sleep {mark}"), "the command runs")

    await job.handle.terminate("somebody pulled the plug")

    await until(lambda: is_gone(mark), "the command is dead", seconds=20)
    assert not (job.root / "X").exists()


GIVEN_UP = (
    "odd was given up: it ran longer than 1 s. It may have done part of its work, or still be at it. Find out what is "
    "true before you repeat it."
)
ENDINGS = {
    "leaves the process": (ToolResultState.ERROR, "odd failed: SystemExit: odd leaves"),
    "cancels itself": (ToolResultState.ERROR, "odd failed: CancelledError"),
    "runs into a timeout of its own": (ToolResultState.ERROR, "odd failed: TimeoutError: nobody answers"),
    "takes too long": (
        ToolResultState.UNKNOWN,
        GIVEN_UP,
    ),
    "notes too much": (ToolResultState.SUCCESS, "done"),
}


@pytest.mark.parametrize("how", ENDINGS)
async def test_a_once_tool_that_misbehaves_runs_once_and_its_end_is_told(stage: Stage, how: str) -> None:
    job = stage.job("odd", [says("", {"id": "odd", "name": "odd", "input": {"how": how}}), says("done")])
    await job.start()

    final = await job.finish(seconds=20)

    result = (await job.results())["odd"]
    assert (result.state, result.get_text()) == ENDINGS[how]
    assert job.effects("odd") == 1
    assert final.finished_reason is FinishedReason.COMPLETED


async def test_a_once_tool_that_says_too_much_runs_once_and_all_of_it_is_kept(stage: Stage) -> None:
    job = stage.job("odd", [says("", {"id": "odd", "name": "odd", "input": {"how": "says too much"}}), says("done")])
    await job.start()

    await job.finish(seconds=20)

    result = (await job.results())["odd"]
    shown, _, marker = result.get_text().partition("<<<TRUNCATED>>>\n")
    place = marker.partition("in '")[2].partition("'")[0]
    assert job.effects("odd") == 1
    assert len(shown) < 100_000
    assert await asyncio.to_thread(os.path.getsize, place) > 1_900_000


async def is_running(text: str) -> bool:
    return bool(running_with(text))


async def is_gone(text: str) -> bool:
    return not running_with(text)


async def has_status(job: Job, status: WorkflowExecutionStatus) -> bool:
    return (await job.handle.describe()).status is status
