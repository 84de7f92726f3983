"""The processes of the demo: a Temporal server with its Web UI, and one worker at a time, both to be killed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.processes import bound_to_parent, kill_group, tail, worker_command
from longhaul.starter.dev_server.temporal_cli import Say, find_temporal
from longhaul.workflows.contract import SEARCH_ATTRIBUTES

START_SECONDS = 30.0
TASK_QUEUE = "longhaul-demo"


class StageFailed(Exception):
    """A process of the demo did not come up; the sentence ends with what it said."""


class Stage:
    """A server of the demo's own, on free ports, and a worker; everything is gone when the block is left."""

    def __init__(self, server: DevServer, directory: Path) -> None:
        self.server = server
        self.kills = 0
        self._directory = directory
        self._worker: asyncio.subprocess.Process | None = None

    @classmethod
    @asynccontextmanager
    async def set(cls, directory: Path, say: Say) -> AsyncIterator["Stage"]:
        """Raises DevServerFailed or TemporalCliMissing."""
        settings = DevServerSettings(
            temporal=find_temporal(say),
            directory=directory / "server",
            ui_port=0,
            search_attributes=SEARCH_ATTRIBUTES,
        )
        async with DevServer(settings) as server:
            stage = cls(server, directory)
            try:
                yield stage
            finally:
                await stage._end_worker()

    async def start_worker(self) -> int:
        """Return its process id when it polls. Raises StageFailed."""
        log = self._directory / "worker.log"
        with log.open("ab") as sink:
            # Our own, without what speaks of other servers and settings; `python3` is the one that runs
            # the demo.
            kept = {
                name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))
            }
            environment = kept | {
                "TEMPORAL_ADDRESS": self.server.address,
                "LONGHAUL_TASK_QUEUE": TASK_QUEUE,
                "LONGHAUL_DATA_DIR": str(self._directory / "data"),
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            }
            self._worker = await asyncio.create_subprocess_exec(
                *bound_to_parent(worker_command()),
                env=environment,
                cwd=self._directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                start_new_session=True,
            )
        said = await _first_line(self._worker)
        if b"polling" not in said:
            raise StageFailed(f"the worker did not start; it said {said!r}, and its log ends with\n{tail(log)}")
        return self._worker.pid

    async def kill_worker(self) -> None:
        """SIGKILL: it has no time to say goodbye to anybody."""
        self.kills += 1
        await self._end_worker()

    async def kill_server(self) -> None:
        self.kills += 1
        await self.server.kill()

    async def _end_worker(self) -> None:
        if self._worker is not None and self._worker.returncode is None:
            kill_group(self._worker.pid)
            await self._worker.wait()


async def _first_line(process: asyncio.subprocess.Process) -> bytes:
    """Empty when it takes too long or ends."""
    if process.stdout is None:
        return b""
    try:
        async with asyncio.timeout(START_SECONDS):
            return await process.stdout.readline()
    except TimeoutError:
        return b""
