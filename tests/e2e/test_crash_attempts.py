"""One attempt of one activity: its heartbeats, its stall, and what the server makes of its retry policy."""

import asyncio
import time
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.exceptions import ActivityError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.heartbeat import Stalled, beating, pause_between
from agent.tools import Effect, ToolDescriptor
from starter.provision.dev_server import DevServer
from workflows import options

pytestmark = pytest.mark.alone


def attempt(heartbeat_timeout_seconds: float | None) -> tuple[ActivityEnvironment, list[float]]:
    """An attempt without a server, and when its heartbeats were made."""
    environment = ActivityEnvironment()
    timeout = None if heartbeat_timeout_seconds is None else timedelta(seconds=heartbeat_timeout_seconds)
    environment.info = replace(environment.info, heartbeat_timeout=timeout)
    beats: list[float] = []
    environment.on_heartbeat = lambda *_: beats.append(time.monotonic())
    return environment, beats


async def test_an_attempt_that_stalls_at_once_stops_itself_before_its_effect() -> None:
    environment, _ = attempt(0.3)
    effects = []

    async def stall_then_act() -> None:
        async with beating():
            time.sleep(0.5)  # noqa: ASYNC251  the loop itself stands still
            await asyncio.sleep(0.05)
            effects.append("done")

    with pytest.raises(Stalled, match=r"no heartbeat left this worker for 0\.\d s"):
        await environment.run(stall_then_act)
    assert effects == []


async def test_an_attempt_that_stalls_later_stops_itself_before_its_effect() -> None:
    environment, beats = attempt(0.3)
    effects = []

    async def stall_then_act() -> None:
        async with beating():
            await asyncio.sleep(0.15)
            time.sleep(0.5)  # noqa: ASYNC251
            await asyncio.sleep(0.05)
            effects.append("done")

    with pytest.raises(Stalled):
        await environment.run(stall_then_act)
    assert effects == []
    assert len(beats) >= 2


async def test_a_pause_below_the_timeout_is_no_stall() -> None:
    environment, _ = attempt(0.6)

    async def pause_then_act() -> str:
        async with beating():
            time.sleep(0.3)  # noqa: ASYNC251
            await asyncio.sleep(0.2)
            return "done"

    assert await environment.run(pause_then_act) == "done"


async def test_a_quick_attempt_costs_no_heartbeat_and_a_slow_one_beats_in_time() -> None:
    quick, beats_of_quick = attempt(1)
    slow, beats_of_slow = attempt(0.5)

    async def work(seconds: float) -> None:
        async with beating():
            await asyncio.sleep(seconds)

    await quick.run(work, 0.05)
    await slow.run(work, 0.45)

    assert beats_of_quick == []
    assert 3 <= len(beats_of_slow) <= 4


async def test_a_patient_attempt_still_hears_soon_of_its_cancellation() -> None:
    patient, beats = attempt(30)

    async def work() -> None:
        async with beating():
            await asyncio.sleep(0.7)

    await patient.run(work)

    assert 2 <= len(beats) <= 3


@pytest.mark.parametrize(
    ("timeout_seconds", "calls", "pause_seconds"),
    [(30, 1, 0.2), (30, 10, 0.2), (30, 25, 0.5), (2, 25, 0.4), (30, 1_000, 1.0), (2, 1_000, 0.4), (0.5, 1, 0.1)],
)
def test_many_calls_beat_less_often_but_in_time(timeout_seconds: float, calls: int, pause_seconds: float) -> None:
    assert pause_between(timeout_seconds, calls) == pytest.approx(pause_seconds)


async def test_calls_that_run_together_share_the_beats_of_a_worker() -> None:
    together = [attempt(30) for _ in range(40)]

    async def work() -> None:
        async with beating():
            await asyncio.sleep(1.0)

    await asyncio.gather(*(environment.run(work) for environment, _ in together))

    assert all(len(beats) == 1 for _, beats in together), "each in 0.8 s"


attempts: dict[str, int] = {}


@activity.defn
async def overrun_once(run: str) -> str:
    """The first attempt takes longer than it may; a further one answers at once."""
    attempts[run] = attempts.get(run, 0) + 1
    if attempts[run] == 1:
        await asyncio.sleep(3)
    return "answered"


@workflow.defn
class Overrun:
    """One activity under a tool's own retry policy, with a second to run."""

    @workflow.run
    async def run(self, effect: str) -> str:
        tool = ToolDescriptor(name="overrun_once")
        policy = options.run_tool(tool, Effect(effect), "").get("retry_policy")
        try:
            return await workflow.execute_activity(
                overrun_once,
                workflow.info().workflow_id,
                start_to_close_timeout=timedelta(seconds=1),
                retry_policy=policy,
            )
        except ActivityError as error:
            return f"{type(error.cause).__name__}: {getattr(error.cause, 'type', None)!r}"


@pytest.mark.server
@pytest.mark.parametrize(
    ("effect", "ending", "attempts_made"),
    [
        (Effect.ONCE, "TimeoutError: <TimeoutType.START_TO_CLOSE: 1>", 1),
        (Effect.IDEMPOTENT, "answered", 2),
        (Effect.READ, "answered", 2),
    ],
)
async def test_a_once_call_that_ran_out_of_time_is_not_started_again(
    temporal_server: DevServer, effect: Effect, ending: str, attempts_made: int
) -> None:
    client = await Client.connect(temporal_server.address)
    run = f"overrun-{effect}-{uuid.uuid4().hex[:6]}"

    async with Worker(
        client,
        task_queue=run,
        workflows=[Overrun],
        activities=[overrun_once],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        answer = await client.execute_workflow(Overrun.run, effect.value, id=run, task_queue=run)

    assert answer == ending
    assert attempts[run] == attempts_made
