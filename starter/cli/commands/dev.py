"""`longhaul dev` and `longhaul worker`: a server and a worker in the foreground."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, perform
from longhaul.starter.connection.connect import DEFAULT_ADDRESS
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.processes import bound_to_parent, kill_group, worker_command
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.own_process import LAST_SECONDS, keep_to_itself
from longhaul.starter.worker_host.worker_extra import check_installed
from longhaul.workflows.contract import SEARCH_ATTRIBUTES

STEADY_SECONDS = 30.0
"""A worker that lived this long has not failed at its start: its successor comes without delay."""
LONGEST_PAUSE_SECONDS = 30.0
WORKER_STOP_SECONDS = LAST_SECONDS + 2.0
"""On top of what the worker grants to the calls that it is running."""


commands = options.SubjectCommands()


def say(sentence: str) -> None:
    print(f"longhaul dev: {sentence}", file=sys.stderr, flush=True)


async def settle_settings() -> int:
    """Stop here at what a worker would not start with, while somebody may be asked. Raises as `Settings` does."""
    Settings()
    check_installed()
    return Exit.DONE


@commands.command()
def worker() -> None:
    if code := perform(settle_settings):
        raise typer.Exit(code)
    command = worker_command()
    os.execv(command[0], command)  # noqa: S606  nothing of a shell is wanted


@commands.command()
async def dev(
    *,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder for all state; default `dev` in LONGHAUL_DATA_DIR.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the Temporal server; 0: a free one.")] = 7233,
    ui_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the Web UI; 0: a free one.")] = 8233,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Start the server only.")] = False,
) -> int:
    keep_to_itself()
    settings = Settings()
    if not no_worker:
        check_installed()
    directory = (data_dir or settings.data_dir / "dev").expanduser().absolute()
    # On this thread although it blocks: a child bound to its parent dies with the thread that started it.
    temporal = _found_temporal()
    stop, hurry = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _take_signal, stop, hurry)
    server = DevServer(
        DevServerSettings(
            temporal=temporal,
            directory=directory,
            port=port,
            ui_port=ui_port,
            search_attributes=SEARCH_ATTRIBUTES,
        )
    )
    async with server:
        print(f"Temporal  {server.address}\nWeb UI    {server.ui_url}\ndata      {directory}", flush=True)
        if server.address != DEFAULT_ADDRESS:
            print(f"commands  export TEMPORAL_ADDRESS={server.address}", flush=True)
        if no_worker:
            return await _first(stop, server)
        keeper = WorkerKeeper(worker_command(), _worker_environment(data_dir, server.address))
        async with _workers(keeper, settings.graceful_shutdown_timeout + WORKER_STOP_SECONDS, hurry):
            return await _first(stop, server)


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
        say("stopping (press Ctrl-C again to end at once)")
        return Exit.DONE
    say(f"the Temporal server has ended; its log is {str(server.log)!r}")
    return Exit.TROUBLE


@asynccontextmanager
async def _workers(keeper: "WorkerKeeper", seconds: float, hurry: asyncio.Event) -> AsyncIterator[None]:
    """One worker after the other while the block lasts; the last one is stopped in order at its end."""
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
            cause = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            say(f"the worker died ({cause}); starting another in {pause:g} s")
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


def _worker_environment(data_dir: Path | None, address: str) -> dict[str, str]:
    """Ours, but pointed at our own server: whatever TEMPORAL_… says about another one is left out. With a `data_dir`
    the server's database and the worker's data lie in it together."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    kept |= {"TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": "default"}
    if data_dir is not None:
        kept["LONGHAUL_DATA_DIR"] = str(data_dir.expanduser().absolute())
    return kept
