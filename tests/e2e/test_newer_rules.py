"""A build with changed rules takes over: a reply goes on by the rules that it began with, the next one by the new."""

import asyncio
import json
import sys
from typing import Any

import pytest

from longhaul.agent.decision import BEHAVIOUR
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_stage import Job, Stage, call, says
from tests.e2e.newer_rules import NUMBER
from tests.e2e.processes import WorkerSettings, environment, worker

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

PROGRAM = "tests.e2e.newer_rules"


def pair(*ids: str) -> dict[str, Any]:
    """A turn of calls that may run together."""
    return says("", *({**call("look"), "id": one} for one in ids))


async def check(installed: WorkerSettings) -> dict[str, Any]:
    """What `rollout check` says of the one open session, from an installation of that build."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", PROGRAM, "rollout", "check", "--json"),
        env=environment(installed),
        cwd=installed.directory,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    (told,) = json.loads(await process.stdout.read())["sessions"]
    await process.wait()
    return dict(told)


async def at_once(job: Job) -> list[int]:
    """How many calls of the tool `look` were under way each time that one was started."""
    counts, under_way = list[int](), set[int]()
    for event in (await job.handle.fetch_history()).events:
        started = event.activity_task_scheduled_event_attributes
        if started.activity_type.name == "look":
            under_way.add(event.event_id)
            counts.append(len(under_way))
        under_way.discard(event.activity_task_completed_event_attributes.scheduled_event_id)
    return counts


async def test_a_reply_goes_on_by_the_rules_it_began_with_and_the_next_one_goes_by_the_new(
    temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path_factory.mktemp("rules"))
    own = stage.one_directory()
    newer = stage.one_directory(program=(PROGRAM, "worker"))
    careless = stage.one_directory(program=(PROGRAM, "worker"), further={"UNGUARDED": "1"})
    script = [pair("a", "b"), says("", call("sign")), pair("c", "d"), says("done"), pair("e", "f"), says("again")]
    job = stage.job("rules", script)
    async with worker(own):
        await job.start()
        await job.is_waiting()
    broken, kept = await check(careless), await check(newer)
    async with worker(newer):
        await job.approve()
        first = await job.finish()
        started_with, together = (await job.session.status()).behaviour, await at_once(job)
        second = await job.session.reply("Once more")
        status = await job.session.status()
        one_by_one = (await at_once(job))[len(together) :]

    assert (broken["ok"], kept["ok"]) == (False, True)
    assert "look" in broken["why"]
    assert first.finished_reason is second.finished_reason is FinishedReason.COMPLETED
    assert (started_with, status.behaviour) == (BEHAVIOUR, NUMBER)
    assert (together, one_by_one) == ([1, 2, 1, 2], [1, 1])
