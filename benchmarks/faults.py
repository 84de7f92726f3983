"""`python -m benchmarks.faults`: what is lost when workers and the server die at every event of a job, and at random.

Jobs with a bit of everything (`tests/e2e/crash/crash_full.py`) are played on task queues with one worker each,
several at once. First a fault is made at each event of a job's history, then so many at random moments. What the
tools have really done, line by line, is compared with what the sessions say. Exits with 1 when something is lost,
done twice or not said.
"""

import argparse
import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from benchmarks.fault_ledger import (
    AT_ONCE,
    HEADER,
    JUDGED,
    LANES,
    PAUSE,
    SERVER,
    WEIGHTS,
    WORKER,
    SessionState,
    judged,
    rows,
    section,
)
from benchmarks.fault_storm import (
    Playing,
    Storm,
    check_calm,
    events_of,
    leave,
    report,
    say,
    server_in_folder,
    started,
)
from benchmarks.pages import publish
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.crash.crash_full import full_job, play
from tests.e2e.crash.crash_stage import Stage

EVERYWHERE = (WORKER, SERVER)


@dataclass
class Lane:
    """One task queue with its storm."""

    stage: Stage
    storm: Storm

    def begin(self) -> tuple[WorkflowHandle[Any, Any], Playing]:
        self.storm.named += 1
        job = full_job(self.stage, f"job{self.storm.named}")
        return job.handle, self.storm.play(job.session.id, play(job))


@asynccontextmanager
async def lanes(server: DevServer, folder: Path, ledger: SessionState) -> AsyncIterator[list[Lane]]:
    mending, found = asyncio.Lock(), list[Lane]()
    for number in range(LANES):
        stage = await Stage.on(server.address, folder / f"lane{number}")
        storm = Storm(server, stage.worker, await started(stage.worker), ledger, mending)
        found.append(Lane(stage, storm))
    try:
        yield found
    finally:
        for lane in found:
            await lane.storm.process.kill()


async def at_random(lane: Lane, count: int, chance: random.Random) -> None:
    for _ in range(count):
        while len(lane.storm.playing) < AT_ONCE:
            lane.begin()
        await asyncio.sleep(chance.uniform(*PAUSE))
        (kind,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        await lane.storm.strike(kind)
    await lane.storm.is_done()


async def run(count: int, step: int, seed: int) -> SessionState:
    """Faults at each `step`th event, none at 0, and so many at random."""
    ledger, chance = SessionState(), random.Random(seed)  # noqa: S311  no secret
    async with server_in_folder("longhaul-faults-") as (server, folder), lanes(server, folder, ledger) as all_lanes:
        handle, playing = all_lanes[0].begin()
        await check_calm(playing)
        events = await events_of(handle)
        say(f"a job has {len(events)} events")
        numbers = range(1, len(events) + 1, step) if step else range(0)
        for kind in EVERYWHERE:
            await asyncio.gather(
                *(
                    lane.storm.at_each_event(numbers[n::LANES], kind, lane.begin, of="")
                    for n, lane in enumerate(all_lanes)
                )
            )
            say(f"{kind} at each of {len(numbers)} events; not as it should be: {ledger.broken()}")
        shares = [len(range(n, count, LANES)) for n in range(LANES)]
        await asyncio.gather(*(at_random(*each, chance) for each in zip(all_lanes, shares, strict=True)))
    return ledger


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--random", type=int, default=100, help="so many at random moments")
    parser.add_argument("--step", type=int, default=1, help="at each event, or at each so-manieth; 0: at none")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the ledger under this folder")
    given = parser.parse_args()
    ledger = asyncio.run(run(given.random, given.step, given.seed))
    report(ledger, (HEADER, rows(ledger)), (JUDGED, [judged(ledger)]))
    if given.docs:
        publish(given.docs, "faults", section(ledger, given.seed), ledger.rows())
    leave(ledger)


if __name__ == "__main__":
    main()
