"""`python -m benchmarks.redeploy`: sessions that are all asked at once, just after server and worker were restarted on
a machine a fifth as fast.

Sessions of some 130 events are prepared at full speed. Then server and worker are killed and started again, with
nothing in the worker's memory, both are held to a share of the processor by a control group, and each session is sent
a message in the same moment. Counted: replies, what clients gave up with, and workflow tasks that the server gave up,
each of which was made for nothing.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, Interceptor, OutboundInterceptor, QueryWorkflowInput

from benchmarks.contenders import Load, script_of, worker_process
from benchmarks.measure import cpu_ms
from benchmarks.pages import publish, table
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES

PREPARED_AT_ONCE = 10
STEPS = 9
"""Of each session's first reply: about 140 events."""
PERIOD_MICROSECONDS = 20_000
"""Of the quota: short, so that the machine is slow rather than stopped now and then."""
HEADER = ("what", "measured", "target")


class NoQuota(RuntimeError):
    """This process may not hold others to a share of the processor."""


@dataclass
class Figures:
    sessions: int
    share: float
    """Of all processors, for server and worker together."""
    events_before: int = 0
    """Median of a session's history when it is asked."""
    answered: int = 0
    gave_up: dict[str, int] = field(default_factory=dict[str, int])
    """What clients gave up with."""
    seconds: list[float] = field(default_factory=list[float])
    """Until each reply, or until its client gave up."""
    tasks: int = 0
    """Workflow tasks that a worker took."""
    wasted: int = 0
    """Of these, those that the server gave up, so that they were made again."""
    late: int = 0
    """Tasks that waited too long for the worker that knew the session, and were offered to all; without those for the
    worker that was killed."""
    failed: int = 0
    queries: int = 0
    worker_cpu: float = 0.0
    """Seconds."""
    server_cpu: float = 0.0
    worker_log: list[str] = field(default_factory=list[str])

    @property
    def wasted_share(self) -> float:
        return self.wasted / max(self.tasks, 1)


@contextmanager
def held_to(share: float, pids: list[int]) -> Iterator[None]:
    """Those processes together get no more than that share of all processors. Raises NoQuota."""
    quota = int(share * (os.cpu_count() or 1) * PERIOD_MICROSECONDS)
    first, second = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    name = f"longhaul-{os.getpid()}"
    try:
        if (first / "cpu.cfs_quota_us").exists():
            group = first / name
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
            home = first
        else:
            group = second / name
            group.mkdir()
            (group / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
            home = second
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise NoQuota(f"no share of the processor can be set here: {error}; run it as root, with cgroups") from error
    try:
        yield
    finally:
        for left in (group / "cgroup.procs").read_text().split():
            (home / "cgroup.procs").write_text(left)
        group.rmdir()


class Counting(Interceptor):
    """Counts the queries of a client."""

    def __init__(self) -> None:
        self.queries = 0

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002  the SDK's own name
        return _Counted(next, self)


class _Counted(OutboundInterceptor):
    def __init__(self, inner: OutboundInterceptor, counting: Counting) -> None:
        super().__init__(inner)
        self._counting = counting

    async def query_workflow(self, input: QueryWorkflowInput) -> Any:  # noqa: A002  the SDK's own name
        self._counting.queries += 1
        return await self.next.query_workflow(input)


@dataclass(frozen=True)
class _Ground:
    server: DevServer
    settings: Settings
    spec: AgentSpec
    folder: Path

    def worker(self, log: Path) -> AbstractAsyncContextManager[int]:
        environment = {
            "TEMPORAL_ADDRESS": self.server.address,
            "LONGHAUL_TASK_QUEUE": self.settings.task_queue,
            "LONGHAUL_DATA_DIR": str(self.settings.data_dir),
            "LONGHAUL_TOOLS": self.settings.tools,
        }
        return worker_process([sys.executable, "-m", "longhaul.worker"], environment, log)


async def run(sessions: int, share: float, steps: int, patience_seconds: float) -> Figures:
    """Prepare so many sessions, restart all, and ask them at once. Raises NoQuota."""
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name:
        folder = Path(name)
        settings = Settings(task_queue="bench", data_dir=folder / "data", tools="benchmarks.fetch")
        temporal = DevServerSettings(
            temporal=find_temporal(_say), directory=folder / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        spec = AgentSpec(name="bench", model=f"scripted:{script_of(folder, Load(steps, 500))}", tools=("fetch",))
        async with DevServer(temporal) as server:
            ground = _Ground(server, settings, spec, folder)
            async with (
                ground.worker(folder / "before.log"),
                Longhaul.connect(server.address, settings=settings) as app,
            ):
                await _prepare(app, spec, sessions)
            _say(f"{sessions} sessions are prepared; server and worker are restarted")
            await server.kill()
            await server.start()
            return await _storm(ground, Figures(sessions, share), patience_seconds)


async def _storm(ground: _Ground, figures: Figures, patience_seconds: float) -> Figures:
    counting, log, server_pid = Counting(), ground.folder / "after.log", ground.server.pid or 0
    plain = await connect(ground.server.address, settings=ground.settings)
    config = plain.config()
    config["interceptors"] = [*config["interceptors"], counting]
    app = Longhaul(Client(**config), ground.settings)
    asked = _sessions(app, ground.spec, figures.sessions)
    before = [await _length(session, app) for session in asked]
    figures.events_before = int(statistics.median(before))
    async with ground.worker(log) as pid:
        cpu = cpu_ms(pid), cpu_ms(server_pid)
        with held_to(figures.share, [pid, server_pid]):
            await _ask_all(asked, figures, patience_seconds)
        figures.worker_cpu = (cpu_ms(pid) - cpu[0]) / 1000
        figures.server_cpu = (cpu_ms(server_pid) - cpu[1]) / 1000
    figures.queries = counting.queries
    for session, length in zip(asked, before, strict=True):
        await _count_tasks(session, app, length, figures)
    figures.worker_log = log.read_text().splitlines()
    await let_go(plain)
    return figures


def _sessions(app: Longhaul, spec: AgentSpec, count: int) -> list[Session]:
    return [app.session(f"redeployed-{number}", agent=spec) for number in range(count)]


async def _prepare(app: Longhaul, spec: AgentSpec, count: int) -> None:
    room = asyncio.Semaphore(PREPARED_AT_ONCE)

    async def one(session: Session) -> None:
        async with room:
            await session.reply("go")

    await asyncio.gather(*(one(session) for session in _sessions(app, spec, count)))


async def _length(session: Session, app: Longhaul) -> int:
    return (await app.client.get_workflow_handle(session.workflow_id).describe()).history_length


async def _ask_all(sessions: list[Session], figures: Figures, patience_seconds: float) -> None:
    began, gave_up = time.monotonic(), Counter[str]()

    async def one(session: Session) -> None:
        try:
            async with asyncio.timeout(patience_seconds):
                await session.reply("go on")
            figures.answered += 1
        except Exception as error:  # noqa: BLE001  what clients give up with is what is counted
            if not gave_up[type(error).__name__]:
                _say(f"first {type(error).__name__}: {error}")
            gave_up[type(error).__name__] += 1
        figures.seconds.append(time.monotonic() - began)

    async def tell() -> None:
        while True:
            await asyncio.sleep(10)
            _say(f"{time.monotonic() - began:4.0f} s: {figures.answered} answered, gave up: {dict(gave_up)}")

    telling = asyncio.create_task(tell())
    await asyncio.gather(*(one(session) for session in sessions))
    telling.cancel()
    figures.gave_up = dict(gave_up)


async def _count_tasks(session: Session, app: Longhaul, before: int, figures: Figures) -> None:
    """A task that the server gave up is written down once; how often it was then tried says the one that was done."""
    attempt, started = 1, False
    async for event in app.client.get_workflow_handle(session.workflow_id).fetch_history_events():
        if event.event_id <= before:
            continue
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
                attempt = event.workflow_task_scheduled_event_attributes.attempt
            case EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                figures.tasks += attempt
                figures.wasted += attempt - 1
                started = True
            case EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
                figures.late += started and _was_never_taken(event)
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                figures.failed += 1
            case _:
                pass


def _was_never_taken(event: HistoryEvent) -> bool:
    how = event.workflow_task_timed_out_event_attributes.timeout_type
    return bool(how == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START)


def rows(figures: Figures) -> list[tuple[str, ...]]:
    gave_up = ", ".join(f"{count} {name}" for name, count in figures.gave_up.items()) or "0"
    middle, last = statistics.median(figures.seconds), max(figures.seconds)
    return [
        ("sessions that answered", f"{figures.answered} of {figures.sessions}", "all"),
        ("clients that gave up", gave_up, "0"),
        ("workflow tasks made for nothing", f"{figures.wasted} of {figures.tasks}", "≤ 5 %"),
        ("tasks offered to all, for their worker was late", str(figures.late), ""),
        ("tasks that failed", str(figures.failed), "0"),
        ("queries of the clients", str(figures.queries), ""),
        ("seconds to half of the replies, and to the last", f"{middle:.0f}, {last:.0f}", ""),
        ("CPU seconds of worker and server", f"{figures.worker_cpu:.0f}, {figures.server_cpu:.0f}", ""),
    ]


def section(figures: Figures) -> str:
    """The page's text about it."""
    lines = [
        "## After a restart under load",
        "",
        f"`python -m benchmarks.redeploy`: {figures.sessions} sessions of {figures.events_before} events, all asked at",
        f"once after server and worker were killed and started again, both together with {figures.share:.0%} of the",
        "processors.",
        "",
        *table(HEADER, rows(figures)),
    ]
    return "\n".join(lines)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redeploy", description=__doc__)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--share", type=float, default=0.2, help="of all processors, for server and worker")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each session before")
    parser.add_argument("--patience", type=float, default=600.0, help="seconds that a client waits at most")
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw figures under this folder")
    given = parser.parse_args()
    figures = asyncio.run(run(given.sessions, given.share, given.steps, given.patience))
    shown = Table(*HEADER)
    for row in rows(figures):
        shown.add_row(*row)
    Console(width=120).print(f"{figures.events_before} events each", shown, *figures.worker_log[:20], sep="\n")
    if given.docs:
        publish(given.docs, "redeploy", section(figures), asdict(figures))
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(0)


if __name__ == "__main__":
    main()
