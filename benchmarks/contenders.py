"""The two sides of a measurement: a worker process each, and one session of N steps to time on it."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from temporalio.client import Client, WorkflowHandle

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig, ModelConfig, ReActConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.settings import Settings

UNHURRIED = "longhaul, an activity a call"
"""Ours once more, with a tool that does not say that it is quick."""

POLLING = ("READY", "longhaul worker: polling")

UNBOUNDED, UNCUT = ModelConfig(context_length=1_000_000_000), ContextConfig(tool_result_limit=1_000_000_000)
"""Nothing is summarised and no result is cut, as with everybody else: that would be less work, not the same faster."""

PATIENCE_SECONDS, PATIENCE_SECONDS_A_STEP = 30.0, 0.25
"""What a session of ours may take before it counts as stuck, many times what it needs."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one session does."""

    steps: int
    chars: int


class SessionEnded(RuntimeError):
    """A session came to an end before its last step; `how` in a word, and why as the server or the agent put it."""

    def __init__(self, workflow_id: str, how: str, why: str) -> None:
        super().__init__(f"the session {how}: {why}")
        self.workflow_id = workflow_id
        self.how = how
        self.why = why


class Contender(Protocol):
    name: str

    @property
    def pid(self) -> int:
        """Its worker's process now."""
        ...

    async def session(self, load: Load) -> str:
        """Run one session to its end and return its workflow id. Raises SessionEnded."""
        ...

    async def recover(self) -> None:
        """Be ready for another session after a lost one."""
        ...


@asynccontextmanager
async def worker_process(command: list[str], environment: dict[str, str], log: Path) -> AsyncIterator[int]:
    """A worker in a process of its own, so that its CPU can be told from ours; its pid, once it polls. Its output is
    read to the end: Temporal's SDK stands still when it has a warning to write and nobody reads."""
    process = _start(command, environment, log)
    reading = threading.Thread(target=_read_on, args=(process.stdout or (), log))
    try:
        line = await asyncio.to_thread(process.stdout.readline) if process.stdout else ""
        reading.start()
        if not line.startswith(POLLING):
            raise RuntimeError(f"the worker did not start: {_tail(log)}")
        yield process.pid
    finally:
        process.kill()
        process.wait()
        if reading.ident is not None:
            reading.join()
        if process.stdout:
            process.stdout.close()


def _read_on(said: Iterable[str], log: Path) -> None:
    with log.open("a") as lines:
        for line in said:
            lines.write(line)


def _tail(log: Path) -> str:
    return log.read_text()[-2000:]


def _start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[str]:
    """With its bytecode kept, as an installation has it, whatever the shell says: to compile takes as long again."""
    log.write_text("")
    with log.open("a") as errors:  # behind what comes by its output, not over it
        return subprocess.Popen(
            command,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )


def script_of(folder: Path, load: Load, tool: str = "fetch") -> Path:
    """What the model says: a call a step, then the end."""
    path = folder / f"{tool}-{load.steps}x{load.chars}.jsonl"
    if not path.exists():
        call = json.dumps({"tool_calls": [{"name": tool, "input": {"chars": load.chars}}]})
        path.write_text("\n".join([*[call] * load.steps, json.dumps({"text": "done"})]))
    return path


class Floor:
    """Two bare activities a step."""

    name = "floor"

    def __init__(self, client: Client, queue: str, pid: int) -> None:
        self.pid = pid
        self._client = client
        self._queue = queue

    async def recover(self) -> None:
        """Its worker goes on as it is."""

    async def session(self, load: Load) -> str:
        handle: WorkflowHandle[object, str] = await self._client.start_workflow(
            "Floor", args=[load.steps, load.chars], id=f"floor-{uuid.uuid4().hex}", task_queue=self._queue
        )
        await handle.result()
        return handle.id


class Ours:
    """The agent: a scripted model that calls one tool a step, then answers."""

    def __init__(self, app: Longhaul, pid: int, folder: Path, *, tool: str = "fetch") -> None:
        self.name = "longhaul" if tool == "fetch" else UNHURRIED
        self.pid = pid
        self._app = app
        self._folder = folder
        self._tool = tool

    async def recover(self) -> None:
        """Its worker goes on as it is."""

    async def session(self, load: Load) -> str:
        spec = AgentSpec(
            name="bench",
            model=f"scripted:{script_of(self._folder, load, self._tool)}",
            tools=(self._tool,),
            stuck=StuckConfig(polling=(self._tool,)),
            react_config=ReActConfig(max_iters=load.steps + 1),
            model_config=UNBOUNDED,
            context_config=UNCUT,
        )
        session = self._app.session(uuid.uuid4().hex, agent=spec)
        patience = PATIENCE_SECONDS + PATIENCE_SECONDS_A_STEP * load.steps
        try:
            message = await asyncio.wait_for(session.reply("go"), patience)
        except TimeoutError as error:
            await self._app.client.get_workflow_handle(session.workflow_id).terminate("stuck")
            raise SessionEnded(session.workflow_id, "stuck", f"no reply within {patience:.0f} seconds") from error
        if message.finished_reason is not FinishedReason.COMPLETED:
            raise SessionEnded(session.workflow_id, "failed", f"{message.finished_reason}: {message.error}")
        return session.workflow_id


@asynccontextmanager
async def contenders(address: str, folder: Path) -> AsyncIterator[list[Contender]]:
    """The floor and ours in both forms, reached as their users would: a queue and a worker for each side."""
    floor_queue, our_queue = f"floor-{uuid.uuid4().hex[:8]}", f"ours-{uuid.uuid4().hex[:8]}"
    ours = {
        "TEMPORAL_ADDRESS": address,
        "LONGHAUL_TASK_QUEUE": our_queue,
        "LONGHAUL_DATA_DIR": str(folder / "data"),
        "LONGHAUL_TOOLS": "benchmarks.fetch",
    }
    floor = [sys.executable, "-m", "benchmarks.floor", address, floor_queue]
    async with (
        worker_process(floor, {}, folder / "floor.log") as floor_pid,
        worker_process([sys.executable, "-m", "longhaul.worker"], ours, folder / "ours.log") as our_pid,
        Longhaul.connect(address, settings=Settings(task_queue=our_queue, data_dir=folder / "data")) as app,
    ):
        floor_side = Floor(await Client.connect(address), floor_queue, floor_pid)
        yield [floor_side, Ours(app, our_pid, folder), Ours(app, our_pid, folder, tool="pull")]
