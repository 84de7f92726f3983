"""`python -m benchmarks.recovery`: how long sessions stand still after a kill, and how quickly a worker starts.

In each round three sessions are brought to a point with one worker: at rest, inside a model call, inside a tool that
reads. Another worker is started, the first one is killed with SIGKILL, and the time to each session's next request to
the model is taken. In some rounds the server is then killed too, and started again on its database, with the same
three sessions.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table
from temporalio.api.enums.v1 import PendingActivityState

from benchmarks.contenders import worker_process
from benchmarks.measure import memory_bytes
from benchmarks.model_server import ModelServer
from benchmarks.pages import publish, spread, table
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES

KINDS = ("idle", "model", "tool")
PATIENCE_SECONDS = 30.0
HEADER = ("what", "median s", "p95 s", "max s", "measured", "target")
TARGETS = {
    "worker killed, session idle": 1.5,
    "worker killed inside a model call": 4.0,
    "worker killed inside a read tool": 4.0,
    "server killed, session idle": 5.0,
    "server killed inside a model call": 5.0,
    "server killed inside a read tool": 5.0,
    "worker start to first poll": 1.0,
}


@dataclass
class Figures:
    """Seconds by what was measured, and a started worker's memory in MiB."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in TARGETS})
    mib: list[float] = field(default_factory=list[float])
    lost: int = 0
    """Replies that did not end as they should."""


@dataclass(frozen=True)
class Ground:
    """A server, a model and a folder, on which workers come and go."""

    server: DevServer
    model: ModelServer
    app: Longhaul
    folder: Path

    @property
    def gate(self) -> Path:
        return Path(self.model.gate)

    @asynccontextmanager
    async def worker(self, figures: Figures) -> AsyncIterator[int]:
        """A started worker, whose start is measured; its process id."""
        settings = self.app.settings
        environment = {
            "TEMPORAL_ADDRESS": self.server.address,
            "LONGHAUL_TASK_QUEUE": settings.task_queue,
            "LONGHAUL_DATA_DIR": str(settings.data_dir),
            "LONGHAUL_TOOLS": settings.tools,
            "OPENAI_API_KEY": "none",
            "LONGHAUL_MODEL_KEYS": ",".join(
                f"OPENAI_API_KEY=http://127.0.0.1:{self.model.port}/{kind}/v1" for kind in KINDS
            ),
        }
        began = time.monotonic()
        async with worker_process(
            [sys.executable, "-m", "longhaul.worker"], environment, self.folder / "worker.log"
        ) as pid:
            figures.seconds["worker start to first poll"].append(time.monotonic() - began)
            figures.mib.append(memory_bytes(pid) / 2**20)
            yield pid

    def session(self, kind: str, number: int) -> Session:
        url = f"http://127.0.0.1:{self.model.port}/{kind}/v1"
        spec = {"name": "bench", "model": "openai-chat:m", "model_config": {"base_url": url}, "tools": ["wait_at"]}
        return self.app.session(f"{kind}-{number}", agent=AgentSpec.model_validate(spec))


async def round_of(ground: Ground, number: int, figures: Figures, older: AsyncExitStack) -> AsyncExitStack:
    """One kill of the worker that `older` holds; the worker that is left."""
    sessions = {kind: ground.session(kind, number) for kind in KINDS}
    newer = AsyncExitStack()
    replies = await _brought_to_their_points(ground, sessions)
    await newer.enter_async_context(ground.worker(figures))
    await older.aclose()
    await _note_all(ground, "worker killed", sessions, replies, figures, time.monotonic())
    return newer


async def server_killed(ground: Ground, number: int, figures: Figures) -> None:
    """The sessions of that round go on after the worker's kill: now it is the server's."""
    sessions = {kind: ground.session(kind, number) for kind in KINDS}
    replies = await _brought_to_their_points(ground, sessions)
    killed = time.monotonic()
    await ground.server.kill()
    await ground.server.start()
    await _note_all(ground, "server killed", sessions, replies, figures, killed)


async def _brought_to_their_points(ground: Ground, sessions: dict[str, Session]) -> dict[str, str]:
    """The reply that is under way in each session; the idle one's has ended."""
    ground.gate.touch()
    ground.model.speaks.clear()
    began = time.monotonic()
    replies = {kind: await session.submit("go") for kind, session in sessions.items()}
    await asyncio.wait_for(ground.model.is_asked("model", began), PATIENCE_SECONDS)
    await sessions["idle"].wait(replies["idle"])
    while not await _is_in_tool(ground, sessions["tool"]):  # noqa: ASYNC110  the server is asked
        await asyncio.sleep(0.02)
    return replies


async def _is_in_tool(ground: Ground, session: Session) -> bool:
    described = await ground.app.client.get_workflow_handle(session.workflow_id).describe()
    running = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
    pending = described.raw_description.pending_activities
    return any(each.activity_type.name == "wait_at" and each.state == running for each in pending)


async def _note_all(
    ground: Ground,
    what: str,
    sessions: dict[str, Session],
    replies: dict[str, str],
    figures: Figures,
    killed: float,
) -> None:
    """Let them go on, and take the time until each has asked its model again."""
    ground.gate.unlink()
    ground.model.speaks.set()
    asked = asyncio.create_task(sessions["idle"].submit("go on"))
    names = (f"{what}, session idle", f"{what} inside a model call", f"{what} inside a read tool")
    moments = [asyncio.wait_for(ground.model.is_asked(kind, killed), PATIENCE_SECONDS) for kind in KINDS]
    for name, moment in zip(names, await asyncio.gather(*moments), strict=True):
        figures.seconds[name].append(moment - killed)
    for kind, reply in {**replies, "idle": await asked}.items():
        message = await sessions[kind].wait(reply)
        figures.lost += message.finished_reason is not FinishedReason.COMPLETED


async def run(repeats: int, of_server: int) -> Figures:
    """So many kills of a worker, and in the first rounds one of the server too."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name:
        folder = Path(name)
        settings = Settings(task_queue="bench", data_dir=folder / "data", tools="benchmarks.gate")
        model = ModelServer(gate=str(folder / "gate"))
        await model.start()
        temporal = DevServerSettings(
            temporal=find_temporal(_say), directory=folder / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(temporal) as server, Longhaul.connect(server.address, settings=settings) as app:
            ground = Ground(server, model, app, folder)
            async with ground.worker(Figures()):
                pass  # after it there is bytecode
            working = AsyncExitStack()
            await working.enter_async_context(ground.worker(figures))
            for number in range(repeats):
                working = await round_of(ground, number, figures, working)
                if number < of_server:
                    await server_killed(ground, number, figures)
                _say(f"round {number + 1} of {repeats}")
            await working.aclose()
    return figures


def rows(figures: Figures) -> list[tuple[str, ...]]:
    return [
        (name, *spread(values), str(len(values)), f"≤ {target:g}")
        for name, target in TARGETS.items()
        if (values := figures.seconds[name])
    ]


def section(figures: Figures) -> str:
    """The page's text about it."""
    held = f"A started worker holds {statistics.median(figures.mib):.0f} MiB (target: 120)."
    lines = [
        "## After a kill",
        "",
        "`python -m benchmarks.recovery`: from SIGKILL to the session's next request to its model. Another worker",
        "stands by; the server is started again at once, on its database. Last: a worker, from its start to its first",
        "poll.",
        "",
        *table(HEADER, rows(figures)),
        "",
        f"{held} Replies that did not end as they should: {figures.lost}.",
    ]
    return "\n".join(lines)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--repeats", type=int, default=10, help="kills of a worker")
    parser.add_argument("--of-server", type=int, default=10, help="kills of the server, at most as many")
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw times under this folder")
    given = parser.parse_args()
    figures = asyncio.run(run(given.repeats, min(given.of_server, given.repeats)))
    shown = Table(*HEADER)
    for row in rows(figures):
        shown.add_row(*row)
    Console(width=120).print(shown, f"worker: {statistics.median(figures.mib):.0f} MiB; lost: {figures.lost}")
    if given.docs:
        publish(given.docs, "recovery", section(figures), asdict(figures))
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(0)


if __name__ == "__main__":
    main()
