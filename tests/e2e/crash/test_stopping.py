"""A worker that is asked to stop in each phase of a session: it leaves in time and takes all that it started along, and
each session goes on at the next worker, told truly, without anybody having waited for a heartbeat that stays away."""

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType

from longhaul.activities import contract as world
from longhaul.agent.values.conversation.messages import Msg, ToolResultState
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.worker_host.own_process import LAST_SECONDS
from tests.activities.mcp.serving import serving, stdio
from tests.e2e.crash.crash_stage import Job, Stage, assert_well_formed, call, says, until
from tests.e2e.crash.stop_parts import GROUND
from tests.e2e.crash.stop_phases import DONE, PHASES, QUICK, SCOUT, SLEEP, STUBBORN, UNKNOWN, Phase, calls, commands
from tests.e2e.crash.test_compression import ask_all, hurry
from tests.e2e.processes import CRASH_TOOLS, ROOT, WorkerProcess, WorkerSettings, running_with, worker
from tests.e2e.warm_cli import MCP_SERVER
from tests.limits import usual
from tests.servers.local import free_port

pytestmark = [pytest.mark.server, pytest.mark.alone, pytest.mark.timeout(300)]

HERE = "tests.e2e.crash.stop_parts"
GRACE_SECONDS = 4.0
TOOLS = ("look", "glance", "put", "send", "plain", "doubted", "courier", "deaf", "Bash")
FLEETING = ("reading in the task", "reading along")
"""They stay there for a second at most."""
TIMED_OUT = EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT


def test_each_activity_has_its_phase() -> None:
    files = [path for room in ("activities", "starter") for path in (ROOT / room).rglob("*.py")]
    named = {name for path in files for name in re.findall(r"@activity\.defn\(name=(\w+)\)", path.read_text("utf-8"))}

    assert {getattr(world, name) for name in named} == QUICK.keys() | {
        phase.activity for phase in PHASES.values() if phase.activity.startswith("longhaul.")
    }


@dataclass(frozen=True)
class Delivered:
    """What came of a job whose worker was asked to stop in the midst of it."""

    final: Msg
    results: dict[str, ToolResultState]
    transcript: list[Msg]
    left: list[Any]
    """What it recorded of the worker that left it."""
    lost: list[str]
    """Attempts that ended in a timeout, by what the attempt behind them was told, or the history says."""


@dataclass(frozen=True)
class Ending:
    """How the worker itself ended, and all its jobs."""

    status: int
    seconds: float
    log: str
    still_there: list[int]
    """Processes that it had started."""
    jobs: dict[str, Job]
    told: dict[str, Delivered]


def job_of(stage: Stage, name: str, phase: Phase) -> Job:
    """Not started yet."""
    job = stage.job(name.replace(" ", "-"), phase.script, [phase.at] if phase.at and not phase.opens_late else [])
    own = {"tools": TOOLS, "permission": PermissionContext(mode=PermissionMode.BYPASS), **phase.agent}
    if "agents" in own:
        scout = {**SCOUT, "model": stage.job("scout", calls("look")).session.spec.model}
        own |= {"agents": {"scout": scout}, "tools": ()}
    script = script_of(job)
    script.write_text(script.read_text().replace('{"name": "plain"}', json.dumps({"root": str(job.root)})))
    if "workspace" in own:
        own["workspace"] = {**own["workspace"], "root": str(job.root)}
    spec = AgentSpec.model_validate({**job.session.spec.model_dump(exclude_unset=True), **own})
    job.session = stage.app.session(job.session.id, agent=spec)
    job.handle = stage.app.client.get_workflow_handle(job.session.workflow_id)
    return job


def script_of(job: Job) -> Path:
    return Path(job.session.spec.model.removeprefix("scripted:"))


def standing(job: Job, phase: Phase) -> Job:
    """Where its gate lies: some who stand there are not told of a session."""
    return Job(job.session, job.root.parent / phase.at, job.handle) if phase.shared else job


async def bring(job: Job, name: str) -> None:
    """Return when it stands in its phase."""
    phase = PHASES[name]
    if phase.shared:
        standing(job, phase).hold(phase.at)
    if name == "interrupted":
        job.hold("send.before")
    if phase.activity == world.COMPRESS:
        await ask_all(job)
    else:
        await job.start()
    if name in {"waiting for a person", "taking a result in"}:
        await job.is_waiting()
    if name == "taking a result in":
        await job.session.external_result("courier", "a kilo " * 20_000)
    if name == "interrupted":
        await job.is_held("send.before")
        await job.session.interrupt()
    if phase.at:
        await standing(job, phase).is_held(phase.at)
    elif phase.activity:
        await job.is_running(phase.activity)


async def go_on(job: Job, name: str) -> Delivered:
    """To its end, with the next worker."""
    standing(job, PHASES[name]).release()
    job.release()
    if name == "waiting for a person":
        await job.session.confirm("send", allow=True)
    return await told_of(job)


async def told_of(job: Job) -> Delivered:
    """When it has come to its end."""
    final = await job.finish()
    await job.replays()
    events = [event async for event in job.handle.fetch_history_events()]
    failures = [event.activity_task_started_event_attributes.last_failure for event in events]
    lost = [one.message for one in failures if one.HasField("timeout_failure_info")]
    lost += ["for good" for event in events if event.event_type == TIMED_OUT]
    left = [event.value for event in (await job.session.events()).events if event.name == "worker_left"]
    results = {call_id: result.state for call_id, result in (await job.results()).items()}
    return Delivered(final, results, await job.transcript(), left, lost)


def settings_of(stage: Stage, pier: int = 0) -> WorkerSettings:
    """Of a worker with all the gates. `pier`: the port of an MCP server."""
    servers = {"harbour": {"mcp_config": stdio()}}
    if pier:
        servers["pier"] = {"mcp_config": {"url": f"http://127.0.0.1:{pier}/mcp"}}
    return stage.worker(
        tools=f"{CRASH_TOOLS},{HERE}",
        LONGHAUL_GRACEFUL_SHUTDOWN_TIMEOUT=str(GRACE_SECONDS),
        LONGHAUL_STORE=f"{HERE}:GatedStore",
        LONGHAUL_OFFLOADERS=f"{HERE}:GatedOffloads",
        LONGHAUL_HOST="den",
        LONGHAUL_SHARED="off",
        LONGHAUL_MEMORY=f"{HERE}:GatedMemories",
        LONGHAUL_MIDDLEWARES=f"{HERE}:Gates",
        LONGHAUL_MCP=json.dumps(servers),
        **{GROUND: str(stage.directory)},
    )


async def commands_run() -> bool:
    by_bash = [phase for phase in PHASES.values() if phase.activity == "Bash"]
    return len(running_with(f"sleep\0{SLEEP}")) >= 2 * len(by_bash)


async def stopped(one: WorkerProcess) -> tuple[int, float]:
    began = time.monotonic()
    one.ask_to_stop()
    return await one.wait(), time.monotonic() - began


@pytest.fixture(scope="module")
async def ending(temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> Ending:
    """One worker in all the phases at once, and the next one."""
    stage = await Stage.on(temporal_server.address, tmp_path_factory.mktemp("stopping"))
    jobs = {name: job_of(stage, name, phase) for name, phase in PHASES.items()}
    pier = free_port()
    async with serving("streamable-http", pier) as served, worker(settings_of(stage, pier)) as one:
        await asyncio.gather(*(bring(job, name) for name, job in jobs.items() if name not in FLEETING))
        await until(commands_run, "the commands run")
        await asyncio.gather(*(bring(jobs[name], name) for name in FLEETING))
        status, seconds = await stopped(one)
        log, still_there = (
            one.log.read_text(),
            [*running_with(SLEEP), *running_with(f"{sys.executable}\0-m\0{MCP_SERVER}")],
        )
        assert served.returncode is None
    hurry(jobs["compressing"])
    script_of(jobs["streaming"]).write_text(json.dumps(DONE))
    async with serving("streamable-http", pier), worker(settings_of(stage, pier)):
        told = await asyncio.gather(*(go_on(job, name) for name, job in jobs.items()))
    return Ending(status, seconds, log, still_there, jobs, dict(zip(jobs, told, strict=True)))


def test_it_leaves_in_its_time_with_all_that_it_started(ending: Ending) -> None:
    assert ending.status == 0
    assert ending.seconds < usual(2 * GRACE_SECONDS), "its queues are left together, not one after the other"
    assert ending.still_there == []


def test_it_says_that_it_stops_and_what_was_not_kept_for_it(ending: Ending) -> None:
    # The SDK may warn of what it could not report, and the operator is told of unknown outcomes.
    others = ("temporalio.core", "longhaul.operator")
    said, unkept = (line for line in ending.log.splitlines() if not any(other in line for other in others))

    assert said == "longhaul worker: stopping: running calls get 4 s to finish; a second signal ends the worker at once"
    assert "the whole result of courier was not kept" in unkept


@pytest.mark.proves("E4")
@pytest.mark.parametrize("name", PHASES)
def test_each_session_goes_on_at_the_next_worker_and_is_told_truly(ending: Ending, name: str) -> None:
    phase, told, job = PHASES[name], ending.told[name], ending.jobs[name]

    assert told.final.finished_reason is phase.reason
    assert told.results == phase.results
    assert_well_formed(told.transcript)
    assert [job.effects(tool) for tool in ("send", "doubted")] == [
        int(tool in phase.results and name != "interrupted") for tool in ("send", "doubted")
    ]
    assert len(told.left) in ({0, 1} if phase.marked is None else {int(phase.marked)})
    assert told.lost == []


async def test_what_does_not_let_itself_be_ended_does_not_keep_it(temporal_server: DevServer, tmp_path: Path) -> None:
    """And its session is told what is known of it before the worker leaves, not by a heartbeat that stays away."""
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = job_of(stage, "deaf", Phase("deaf", calls("deaf"), "deaf"))
    async with worker(settings_of(stage)) as one:
        await job.start()
        await job.is_held("deaf")
        status, seconds = await stopped(one)
        log = one.log.read_text()

    async with worker(settings_of(stage)):
        told = await told_of(job)
        said = (await job.results())["deaf"].get_text()

    assert (told.results, len(told.left), told.lost) == ({"deaf": UNKNOWN}, 1, [])
    assert "because its worker was shut down. It did not let itself be ended" in said
    assert status == 143
    assert GRACE_SECONDS + LAST_SECONDS <= seconds < usual(GRACE_SECONDS + LAST_SECONDS + 5)
    assert "although something does not stop" in log.splitlines()[-1]
    assert "Traceback" not in log


async def test_a_command_that_a_later_run_awaits_is_told_of_at_once(impatient_server: str, tmp_path: Path) -> None:
    """Not after a minute in which no other worker has it."""
    stage = await Stage.on(impatient_server, tmp_path)
    started = commands(STUBBORN, run_in_background=True)
    job = job_of(
        stage, "later", Phase(world.AWAIT_COMMAND, (started[0], *(says("", call("glance")),) * 4, *started[1:]))
    )
    settings = settings_of(stage)
    # Where the client reads what left its history.
    settings = replace(settings, further={**settings.further, "LONGHAUL_DATA_DIR": str(stage.directory)})
    async with worker(settings) as one:
        await job.start()
        await job.finish()
        await job.is_running(world.AWAIT_COMMAND)
        await stopped(one)
        assert running_with(SLEEP) == []
    async with worker(settings):

        async def heard() -> bool:
            return any("Heard." in message.get_text_content() for message in await job.transcript())

        await until(heard, "the session has heard of its end")
        (hint,) = [
            str(block.hint) for message in await job.transcript() for block in message.content if block.type == "hint"
        ]
        assert await job.underway(world.AWAIT_COMMAND) is None

    assert "is over: unknown." in hint
    assert "its worker was shut down" in hint
