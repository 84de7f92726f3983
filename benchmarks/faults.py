"""`python -m benchmarks.faults`: what is lost when workers and the server die at every event of a job, and at random.

Jobs with a bit of everything (`tests/e2e/crash/crash_full.py`) are played on task queues with one worker each,
several at once. First a fault is made at each event of a job's history, then so many at random moments. What the
tools have really done, line by line, is compared with what the sessions say. Exits with 1 when something is lost,
done twice or not said.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from benchmarks.fault_ledger import (
    AT_ONCE,
    HEADER,
    JUDGED,
    LANES,
    PAUSE,
    SERVER,
    STOPPED,
    WEIGHTS,
    WORKER,
    Fault,
    SessionState,
    judged,
    rows,
    section,
)
from benchmarks.pages import publish
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_full import Verdict, full_job, play
from tests.e2e.crash.crash_stage import Job, Stage
from tests.e2e.processes import WorkerProcess

EVERYWHERE = (WORKER, SERVER)
STARTS = 20
"""Tries to start a worker: the server may be away just then."""


@dataclass
class Lane:
    """One task queue, its worker, and the sessions that are under way on it."""

    stage: Stage
    server: DevServer
    mending: asyncio.Lock
    """Of the server, which all lanes share."""
    ledger: SessionState
    process: WorkerProcess
    playing: set["asyncio.Task[Verdict]"] = field(default_factory=set["asyncio.Task[Verdict]"])
    named: int = 0

    def begin(self) -> tuple[Job, "asyncio.Task[Verdict]"]:
        self.named += 1
        job = full_job(self.stage, f"job{self.named}")
        task = asyncio.create_task(play(job), name=job.session.id)
        self.playing.add(task)
        task.add_done_callback(self._ended)
        return job, task

    def _ended(self, task: "asyncio.Task[Verdict]") -> None:
        self.playing.discard(task)
        error = task.exception()
        # Whatever a client was told instead of an answer counts as lost.
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
            _say(f"{len(self.ledger.faults)} faults; not as it should be: {self.ledger.broken()}")
        if kind == SERVER:
            async with self.mending:
                await self.server.kill()
                await self.server.start()
            return
        if kind == STOPPED:
            self.process.ask_to_stop()
            await asyncio.sleep(random.uniform(0, 0.7))  # noqa: S311  no secret
        await self.process.kill()
        self.process = await started(self.stage)


async def started(stage: Stage) -> WorkerProcess:
    """A worker that polls. Raises RuntimeError when none does after many tries."""
    for left in range(STARTS, 0, -1):
        try:
            return await WorkerProcess.start(stage.worker())
        except RuntimeError:
            if left == 1:
                raise
            await asyncio.sleep(0.5)
    raise AssertionError


@asynccontextmanager
async def lanes(server: DevServer, folder: Path, ledger: SessionState) -> AsyncIterator[list[Lane]]:
    mending, found = asyncio.Lock(), list[Lane]()
    for number in range(LANES):
        stage = await Stage.on(server.address, folder / f"lane{number}")
        found.append(Lane(stage, server, mending, ledger, await started(stage)))
    try:
        yield found
    finally:
        for lane in found:
            await lane.process.kill()


async def undisturbed(lane: Lane) -> list[str]:
    """Names of the events of a job that nothing happens to. Raises RuntimeError when it does not hold even so."""
    job, playing = lane.begin()
    verdict = await playing
    if not verdict.holds or verdict.unknown_outcomes:
        raise RuntimeError(f"without any fault: {verdict}")
    return [name_of(event) async for event in job.handle.fetch_history_events()]


def name_of(event: HistoryEvent) -> str:
    kind = (event.WhichOneof("attributes") or "").removesuffix("_event_attributes").replace("_", " ")
    activity = event.activity_task_scheduled_event_attributes.activity_type.name
    return f"{event.event_id} {kind} {activity}".strip()


async def reached(handle: WorkflowHandle[Any, Any], number: int) -> str:
    """Wait for that event of the workflow's history; its name."""
    while True:
        try:
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.event_id >= number:
                    return name_of(event)
        except RPCError:
            await asyncio.sleep(0.01)  # not started yet, or the server is away


async def at_each_event(lane: Lane, numbers: Sequence[int], kind: str) -> None:
    """One job for each number; what is under way besides is struck too. A job that ends before has no such event."""
    for number in numbers:
        await lane.has_room()
        job, playing = lane.begin()
        waiting = asyncio.create_task(reached(job.handle, number))
        await asyncio.wait((waiting, playing), return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            await lane.strike(kind, waiting.result())
        waiting.cancel()
    await lane.is_done()


async def at_random(lane: Lane, count: int, chance: random.Random) -> None:
    for _ in range(count):
        while len(lane.playing) < AT_ONCE:
            lane.begin()
        await asyncio.sleep(chance.uniform(*PAUSE))
        (kind,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        await lane.strike(kind)
    await lane.is_done()


async def run(count: int, step: int, seed: int) -> SessionState:
    """Faults at each `step`th event, none at 0, and so many at random."""
    ledger, chance = SessionState(), random.Random(seed)  # noqa: S311  no secret
    with tempfile.TemporaryDirectory(prefix="longhaul-faults-") as name:
        settings = DevServerSettings(
            temporal=find_temporal(_say), directory=Path(name) / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(settings) as server, lanes(server, Path(name), ledger) as all_lanes:
            events = await undisturbed(all_lanes[0])
            _say(f"a job has {len(events)} events")
            numbers = range(1, len(events) + 1, step) if step else range(0)
            for kind in EVERYWHERE:
                await asyncio.gather(
                    *(at_each_event(lane, numbers[n::LANES], kind) for n, lane in enumerate(all_lanes))
                )
                _say(f"{kind} at each of {len(numbers)} events; not as it should be: {ledger.broken()}")
            shares = [len(range(n, count, LANES)) for n in range(LANES)]
            await asyncio.gather(*(at_random(*each, chance) for each in zip(all_lanes, shares, strict=True)))
    return ledger


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--random", type=int, default=100, help="so many at random moments")
    parser.add_argument("--step", type=int, default=1, help="at each event, or at each so-manieth; 0: at none")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the ledger under this folder")
    given = parser.parse_args()
    ledger = asyncio.run(run(given.random, given.step, given.seed))
    for header, told in ((HEADER, rows(ledger)), (JUDGED, [judged(ledger)])):
        shown = Table(*header)
        for row in told:
            shown.add_row(*row)
        Console(width=120).print(shown)
    for verdict in ledger.broken():
        _say(str(verdict))
    if given.docs:
        publish(given.docs, "faults", section(ledger, given.seed), ledger.rows())
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(1 if ledger.broken() else 0)


if __name__ == "__main__":
    main()
