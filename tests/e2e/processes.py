"""Workers as processes of their own: started, awaited, killed as a crash would, or asked to stop; and what is left."""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from longhaul.starter.dev_server.processes import bound_to_parent, tail
from longhaul.worker import READY
from tests.e2e.warm_cli import BYTECODE, WORKER
from tests.e2e.warm_process import WarmProcess
from tests.limits import SURE_SECONDS

ROOT = Path(__file__).parents[2]
CRASH_TOOLS = "tests.e2e.crash.crash_tools"
READ_WHILE_LOADING = ("OTEL_", "PYTHON")
"""Settings of libraries, for which a worker begins from nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    address: str
    task_queue: str
    directory: Path
    """Holds the worker's data and its log."""
    tools: str = CRASH_TOOLS
    offloaders: str = ""
    redis_url: str = ""
    program: tuple[str, ...] = (WORKER,)
    """The module that is run, and its arguments."""
    further: Mapping[str, str] = field(default_factory=dict[str, str])
    """More variables of its environment."""


class WorkerProcess:
    """One worker. `async with worker(settings) as one:` starts it, and kills it if it still runs at the end."""

    def __init__(self, process: asyncio.subprocess.Process | WarmProcess, log: Path) -> None:
        self._process = process
        self.log = log

    @classmethod
    async def start(cls, settings: WorkerSettings) -> Self:
        """Return when the worker polls. Raises RuntimeError with the end of its log when it does not come to that."""
        settings.directory.mkdir(parents=True, exist_ok=True)
        log = settings.directory / "worker.log"
        with log.open("ab") as sink:
            starting = asyncio.ensure_future(_started(settings, sink.fileno()))
            try:
                # Shielded: a process that is cancelled while it starts belongs to nobody.
                process = await asyncio.shield(starting)
            except asyncio.CancelledError:
                await cls(await starting, log).kill()
                raise
        assert process.stdout is not None
        try:
            async with asyncio.timeout(SURE_SECONDS):
                said = await process.stdout.readline()
        except TimeoutError:
            said = b""
        except asyncio.CancelledError:
            await cls(process, log).kill()
            raise
        if not said.startswith(READY.encode()):
            await cls(process, log).kill()
            raise RuntimeError(f"the worker did not start; it said {said!r}, and its log ends with\n{tail(log)}")
        return cls(process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def kill(self) -> None:
        """SIGKILL: nothing of it runs on. One that has ended is no error."""
        await self._end(signal.SIGKILL)

    def ask_to_stop(self) -> None:
        """SIGTERM, and do not wait."""
        self._process.send_signal(signal.SIGTERM)

    async def has_said(self, text: str) -> bool:
        """On stderr, which goes into its log."""
        return text in self.log.read_text()

    async def rest_of_stdout(self) -> str:
        """Behind the first line. It comes when the process has ended."""
        assert self._process.stdout is not None
        return (await self._process.stdout.read()).decode()

    async def wait(self) -> int:
        """Exit status; negative for a signal."""
        return await self._process.wait()

    async def _end(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(number)
        await self._process.wait()


async def _started(settings: WorkerSettings, log: int) -> asyncio.subprocess.Process | WarmProcess:
    there = environment(settings)
    if settings.program[0] == WORKER and not any(name.startswith(READ_WHILE_LOADING) for name in settings.further):
        return await WarmProcess.program(settings.program, there, settings.directory, log)
    return await asyncio.create_subprocess_exec(
        *bound_to_parent([sys.executable, "-m", *settings.program]),
        env=there,
        cwd=settings.directory,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
    )


@asynccontextmanager
async def worker(settings: WorkerSettings) -> AsyncIterator[WorkerProcess]:
    process = await WorkerProcess.start(settings)
    try:
        yield process
    finally:
        await process.kill()


def environment(settings: WorkerSettings) -> dict[str, str]:
    """Ours without what would name another server or other tools; a client with it reaches the worker's sessions."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_", "OTEL_"))
    }
    return {
        **ours,
        **BYTECODE,
        "PYTHONPATH": str(ROOT),
        "TEMPORAL_ADDRESS": settings.address,
        "LONGHAUL_TASK_QUEUE": settings.task_queue,
        "LONGHAUL_DATA_DIR": str(settings.directory),
        "LONGHAUL_TOOLS": settings.tools,
        "LONGHAUL_OFFLOADERS": settings.offloaders,
        "LONGHAUL_REDIS_URL": settings.redis_url,
        **settings.further,
    }


def a_while(seconds: int = 7_200) -> str:
    """So many seconds, and a bit that is nobody else's: what sleeps for it is found by it, and whoever runs the same
    tests at the same time finds their own."""
    return f"{seconds}.{uuid.uuid4().int}"


def running_with(text: str) -> list[int]:
    """Ids of processes whose command line holds `text`."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in command:
            found.append(int(folder.name))
    return found
