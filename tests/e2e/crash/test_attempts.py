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

from longhaul.activities.attempt.heartbeat import Stalled, beating, pause_seconds, poke
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.workflows import activity_options

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
    slow, beats_of_slow = attempt(0.3)

    async def work(seconds: float) -> None:
        async with beating():
            await asyncio.sleep(seconds)

    await quick.run(work, 0.05)
    await slow.run(work, 0.45)

    assert beats_of_quick == []
    assert 3 <= len(beats_of_slow) <= 4


@pytest.mark.parametrize(("seconds", "least", "most"), [(0.6, 4, 5), (1.5, 1, 2), (30, 0, 0)])
async def test_beats_are_as_rare_as_a_death_may_be_noticed_late(seconds: float, least: int, most: int) -> None:
    one, beats = attempt(seconds)

    async def work() -> None:
        async with beating():
            await asyncio.sleep(1.1)

    await one.run(work)

    assert least <= len(beats) <= most


@pytest.mark.parametrize(("timeout", "pause"), [(1, 0.4), (2, 0.8), (5, 2), (24, 9.6), (30, 15), (60, 24), (600, 240)])
def test_a_beat_comes_so_late_that_another_one_still_comes_in_time(timeout: float, pause: float) -> None:
    assert pause_seconds(timeout) == pytest.approx(pause)
    assert timeout - pause >= min(timeout / 2, 15)


async def test_details_are_told_once_each_time_they_change() -> None:
    telling, beats = attempt(30)
    page = ["page 7"]

    async def work() -> None:
        async with beating(lambda: tuple(page)):
            await asyncio.sleep(2.3)
            page[0] = "page 8"
            await asyncio.sleep(1.9)

    await telling.run(work)

    assert len(beats) == 2


async def test_an_attempt_with_details_to_tell_tells_them_within_a_second() -> None:
    telling, beats = attempt(30)

    async def work() -> None:
        async with beating(lambda: ("page 7",)):
            await asyncio.sleep(1.3)

    await telling.run(work)

    assert len(beats) == 1


async def test_who_is_poked_asks_at_once_and_a_few_times_more() -> None:
    poked, beats = attempt(30)
    other, beats_of_other = attempt(30)
    other.info = replace(other.info, workflow_id="another")
    pokes: list[float] = []

    async def work() -> None:
        async with beating():
            await asyncio.sleep(0.1)
            if not pokes:
                pokes.append(time.monotonic())
                poke(poked.info.workflow_id or "")
            await asyncio.sleep(0.7)

    await asyncio.gather(poked.run(work), other.run(work))

    assert beats[0] - pokes[0] < 0.1
    assert 2 <= len(beats) <= 3
    assert beats_of_other == []


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
        policy = activity_options.run_tool(tool, Effect(effect), "").get("retry_policy")
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
