"""A storm of faults: workflows are under way on a worker, and the worker or its server dies by SIGKILL at moments that
the caller chooses. Both start again, and the ledger has each fault and what became of each workflow.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from benchmarks.fault_ledger import AT_ONCE, SERVER, STOPPED, Fault, SessionState
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_full import Verdict
from tests.e2e.processes import WorkerProcess, WorkerSettings

STARTS = 20
"""Tries to start a worker: the server may be unavailable just then."""

Playing = asyncio.Task[Verdict]


@dataclass
class Storm:
    """One worker, and what is under way on it."""

    server: DevServer
    settings: Callable[[], WorkerSettings]
    """Of the next worker."""
    process: WorkerProcess
    ledger: SessionState = field(default_factory=SessionState)
    mending: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Of the server, which several storms may share."""
    playing: set[Playing] = field(default_factory=set[Playing])
    named: int = 0

    def play(self, name: str, work: Coroutine[Any, Any, Verdict]) -> Playing:
        task = asyncio.create_task(work, name=name)
        self.playing.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: Playing) -> None:
        self.playing.discard(task)
        error = task.exception()
        # What a client was told instead of an answer counts as lost.
        self.ledger.verdicts.append(Verdict(task.get_name(), lost=repr(error)) if error else task.result())

    async def has_room(self) -> None:
        while len(self.playing) >= AT_ONCE:
            await asyncio.wait(self.playing, return_when=asyncio.FIRST_COMPLETED)

    async def is_done(self) -> None:
        while self.playing:
            await asyncio.wait(self.playing)

    async def strike(self, kind: str, at: str = "") -> None:
        second = round(time.monotonic() - self.ledger.began, 1)
        self.ledger.faults.append(Fault(kind, at, len(self.playing), second))
        if len(self.ledger.faults) % 100 == 0:
            say(f"{len(self.ledger.faults)} faults; not as it should be: {self.ledger.broken()}")
        if kind == SERVER:
            async with self.mending:
                await self.server.kill()
                await self.server.start()
            return
        if kind == STOPPED:
            self.process.ask_to_stop()
            await asyncio.sleep(random.uniform(0, 0.7))  # noqa: S311  no secret
        await self.process.kill()
        self.process = await started(self.settings)

    async def at_each_event(
        self, numbers: Sequence[int], kind: str, begin: Callable[[], tuple[WorkflowHandle[Any, Any], Playing]], of: str
    ) -> None:
        """`begin` starts one workflow for each number, and what else is under way is struck too. A workflow that ends
        before has no such event. `of`: begins the event's name in the ledger."""
        for number in numbers:
            await self.has_room()
            handle, playing = begin()
            waiting = asyncio.create_task(_reached(handle, number))
            await asyncio.wait((waiting, playing), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await self.strike(kind, f"{of}{waiting.result()}")
            waiting.cancel()
        await self.is_done()


async def started(settings: Callable[[], WorkerSettings]) -> WorkerProcess:
    """A worker that polls. Raises RuntimeError when none does after many tries."""
    for left in range(STARTS, 0, -1):
        try:
            return await WorkerProcess.start(settings())
        except RuntimeError:
            if left == 1:
                raise
            await asyncio.sleep(0.5)
    raise AssertionError


@asynccontextmanager
async def server_in_folder(prefix: str) -> AsyncIterator[tuple[DevServer, Path]]:
    """A server of its own, and the temporary folder in which it keeps its database."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        settings = DevServerSettings(
            temporal=find_temporal(say), directory=Path(name) / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(settings) as server:
            yield server, Path(name)


async def check_calm(playing: Playing) -> None:
    """Raises RuntimeError when a workflow does not hold to which nothing happens."""
    verdict = await playing
    if not verdict.holds or verdict.unknown_outcomes:
        raise RuntimeError(f"without any fault: {verdict}")


async def events_of(handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Their names."""
    return [_name_of(event) async for event in handle.fetch_history_events()]


async def _reached(handle: WorkflowHandle[Any, Any], number: int) -> str:
    """Wait for that event of the workflow's history; its name."""
    while True:
        try:
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.event_id >= number:
                    return _name_of(event)
        except RPCError:
            await asyncio.sleep(0.01)  # not started yet, or the server is unavailable


def _name_of(event: HistoryEvent) -> str:
    kind = (event.WhichOneof("attributes") or "").removesuffix("_event_attributes").replace("_", " ")
    activity = event.activity_task_scheduled_event_attributes.activity_type.name
    return f"{event.event_id} {kind} {activity}".strip()


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def report(ledger: SessionState, *tables: tuple[Sequence[str], Sequence[Sequence[str]]]) -> None:
    """Each table is a header with its rows; below them stands what did not hold."""
    for header, rows in tables:
        shown = Table(*header)
        for row in rows:
            shown.add_row(*row)
        Console(width=120).print(shown)
    for verdict in ledger.broken():
        say(str(verdict))


def leave(ledger: SessionState) -> NoReturn:
    """End the process, with 1 when something did not hold."""
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(1 if ledger.broken() else 0)
