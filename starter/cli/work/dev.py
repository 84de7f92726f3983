"""`longhaul dev` and `longhaul worker`: a server and a worker in the foreground."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.hosting.own_process import LAST_SECONDS, keep_to_itself
from longhaul.starter.hosting.worker_extra import check_installed
from longhaul.starter.provision.dev_server import DevServer, DevServerSettings
from longhaul.starter.provision.processes import bound_to_parent, kill_group
from longhaul.starter.provision.temporal_cli import find_temporal
from longhaul.starter.reach.connection import DEFAULT_ADDRESS
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES

STEADY_SECONDS = 30.0
"""A worker that lived this long has not failed at its start: its successor comes without delay."""
LONGEST_PAUSE_SECONDS = 30.0
WORKER_STOP_SECONDS = LAST_SECONDS + 2.0
"""On top of what the worker grants to the calls that it is running."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What `longhaul dev` was asked for."""

    data_dir: Path | None
    """Given: the server's database and the worker's data lie in it together."""
    port: int
    ui_port: int
    worker: bool


def say(sentence: str) -> None:
    print(f"longhaul dev: {sentence}", file=sys.stderr, flush=True)


def worker_command() -> list[str]:
    """Without a folder at the head of Python's path (-P): the one that we happen to stand in would be preferred to what
    is installed, and the worker's own, whose rooms have common names, to modules of the operator's."""
    return [sys.executable, "-P", "-m", "longhaul.worker"]


async def settle_settings() -> int:
    """Stop here at what a worker would not start with, while somebody may be asked. Raises as `Settings` does."""
    Settings()
    check_installed()
    return Exit.DONE


def become_worker() -> None:
    """Replace this process by a worker against TEMPORAL_ADDRESS."""
    command = worker_command()
    os.execv(command[0], command)  # noqa: S606  nothing of a shell is wanted


async def serve(layout: Layout) -> int:
    """Server and worker until Ctrl-C or SIGTERM, or until the server ends by itself."""
    keep_to_itself()
    settings = Settings()
    if layout.worker:
        check_installed()
    directory = (layout.data_dir or settings.data_dir / "dev").expanduser().absolute()
    # On this thread although it blocks: a child bound to its parent dies with the thread that started it.
    temporal = _found_temporal()
    stop, hurry = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _take_signal, stop, hurry)
    server = DevServer(
        DevServerSettings(
            temporal=temporal,
            directory=directory,
            port=layout.port,
            ui_port=layout.ui_port,
            search_attributes=SEARCH_ATTRIBUTES,
        )
    )
    async with server:
        print(f"Temporal  {server.address}\nWeb UI    {server.ui_url}\ndata      {directory}", flush=True)
        if server.address != DEFAULT_ADDRESS:
            print(f"commands  export TEMPORAL_ADDRESS={server.address}", flush=True)
        keeper = WorkerKeeper(worker_command(), _worker_environment(layout, server.address))
        async with _workers(layout, keeper, settings.graceful_shutdown_timeout + WORKER_STOP_SECONDS, hurry):
            ended = await _first(stop, server)
    return ended


def _found_temporal() -> Path:
    """It may be built for minutes: Ctrl-C and SIGTERM end that, which the loop, standing still, would not hear. Raises
    KeyboardInterrupt."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return find_temporal(say)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _take_signal(stop: asyncio.Event, hurry: asyncio.Event) -> None:
    (hurry if stop.is_set() else stop).set()


async def _first(stop: asyncio.Event, server: DevServer) -> int:
    """0 when we are asked to stop; 1 when the server has ended under us."""
    waits = [asyncio.create_task(stop.wait()), asyncio.create_task(server.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in waits:
        task.cancel()
    if stop.is_set():
        say("stopping (a second Ctrl-C leaves at once)")
        return Exit.DONE
    say(f"the Temporal server has ended; its log is {str(server.log)!r}")
    return Exit.TROUBLE


@asynccontextmanager
async def _workers(layout: Layout, keeper: "WorkerKeeper", seconds: float, hurry: asyncio.Event) -> AsyncIterator[None]:
    """One worker after the other while the block lasts; the last one is stopped in order at its end."""
    if not layout.worker:
        yield
        return
    task = asyncio.create_task(keeper.keep())
    try:
        yield
    finally:
        task.cancel()
        await keeper.stop(seconds, hurry)


class WorkerKeeper:
    """Keeps one worker process alive."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._command = command
        self._environment = environment
        self._process: Process | None = None

    async def keep(self) -> None:
        """Start a worker, and another one whenever it dies, with growing pauses while they die young."""
        pause = 1.0
        while True:
            began = asyncio.get_running_loop().time()
            self._process = await asyncio.create_subprocess_exec(
                *bound_to_parent(self._command),
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            status = await self._process.wait()
            if asyncio.get_running_loop().time() - began > STEADY_SECONDS:
                pause = 1.0
            say(f"the worker died ({_cause(status)}); starting another in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def stop(self, seconds: float, hurry: asyncio.Event) -> None:
        """SIGTERM, time to finish unless somebody is in a hurry, then SIGKILL."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        waits = [asyncio.create_task(process.wait()), asyncio.create_task(hurry.wait())]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is None:
            kill_group(process.pid)
        waits[1].cancel()
        await waits[0]


def _cause(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _worker_environment(layout: Layout, address: str) -> dict[str, str]:
    """Ours, but pointed at our own server: whatever TEMPORAL_… says about another one is left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    kept |= {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": "default"}
    if layout.data_dir is not None:
        kept["LONGHAUL_DATA_DIR"] = str(layout.data_dir.expanduser().absolute())
    return kept
