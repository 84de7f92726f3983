"""`python -m benchmarks.order_faults`: what a user's own Temporal application loses when its worker and the server die.

The application is `examples/orders`: a workflow that asks an agent, whose refund takes two approvals and runs as the
application's own activity. Workers of all three queues are one process. A fault is made at each event of the order's
workflow and at each event of the agent's session; other complaints are under way meanwhile. What was really paid is
compared with what both workflows say. Exits with 1 when something is lost, paid twice or not said.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import WorkflowHandle

from benchmarks.fault_ledger import SERVER, WORKER, Fault, SessionState
from benchmarks.faults import name_of, reached
from benchmarks.pages import publish, table
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_full import PATIENCE_SECONDS, Verdict
from tests.e2e.crash.shop_job import Shop
from tests.e2e.processes import WorkerProcess

AT_ONCE = 5
"""Complaints under way."""
ORDER, SESSION = "order", "session"
HEADER = ("fault", "at each event of the order's workflow", "at each event of the agent's session")
JUDGED = ("orders", "lost", "refunds paid twice", "refunds of unknown outcome", "unknown outcomes not told")
STARTS = 20
"""Tries to start a worker: the server may be away just then."""


@dataclass
class Storm:
    """The shop, its one worker, and the complaints that are under way."""

    shop: Shop
    server: DevServer
    process: WorkerProcess
    ledger: SessionState = field(default_factory=SessionState)
    playing: set["asyncio.Task[Verdict]"] = field(default_factory=set["asyncio.Task[Verdict]"])
    named: int = 0

    def begin(self) -> tuple[str, "asyncio.Task[Verdict]"]:
        self.named += 1
        name = f"o{self.named}"
        task = asyncio.create_task(self.shop.play(name, PATIENCE_SECONDS), name=name)
        self.playing.add(task)
        task.add_done_callback(self._ended)
        return name, task

    def _ended(self, task: "asyncio.Task[Verdict]") -> None:
        self.playing.discard(task)
        error = task.exception()
        self.ledger.verdicts.append(Verdict(task.get_name(), lost=repr(error)) if error else task.result())

    def handle(self, name: str, whose: str) -> WorkflowHandle[Any, Any]:
        workflow_id = f"order-{name}" if whose == ORDER else self.shop.session(name).workflow_id
        return self.shop.client.get_workflow_handle(workflow_id)

    async def strike(self, kind: str, at: str) -> None:
        second = round(time.monotonic() - self.ledger.began, 1)
        self.ledger.faults.append(Fault(kind, at, len(self.playing), second))
        if kind == SERVER:
            await self.server.kill()
            await self.server.start()
        else:
            await self.process.kill()
            self.process = await started(self.shop)

    async def at_each_event(self, whose: str, numbers: Sequence[int], kind: str) -> None:
        """A complaint for each number; it is struck, and all others that are under way."""
        for number in numbers:
            while len(self.playing) >= AT_ONCE:
                await asyncio.wait(self.playing, return_when=asyncio.FIRST_COMPLETED)
            name, playing = self.begin()
            waiting = asyncio.create_task(reached(self.handle(name, whose), number))
            await asyncio.wait((waiting, playing), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await self.strike(kind, f"{whose}: {waiting.result()}")
            waiting.cancel()
        while self.playing:
            await asyncio.wait(self.playing)


async def started(shop: Shop) -> WorkerProcess:
    """A worker that polls. Raises RuntimeError when none does after many tries."""
    for left in range(STARTS, 0, -1):
        try:
            return await WorkerProcess.start(shop.worker())
        except RuntimeError:
            if left == 1:
                raise
            await asyncio.sleep(0.5)
    raise AssertionError


async def run(step: int) -> SessionState:
    with tempfile.TemporaryDirectory(prefix="longhaul-orders-") as name:
        (folder := Path(name) / "shop").mkdir()
        settings = DevServerSettings(
            temporal=find_temporal(_say), directory=Path(name) / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(settings) as server, Shop.on(server.address, folder) as shop:
            storm = Storm(shop, server, await started(shop))
            try:
                calm, playing = storm.begin()
                verdict = await playing
                if not verdict.holds or verdict.unknown_outcomes:
                    raise RuntimeError(f"without any fault: {verdict}")
                for whose in (ORDER, SESSION):
                    events = [name_of(event) async for event in storm.handle(calm, whose).fetch_history_events()]
                    for kind in (WORKER, SERVER):
                        await storm.at_each_event(whose, range(1, len(events) + 1, step), kind)
                        _say(f"{kind} at {len(events)} events of the {whose}; broken: {storm.ledger.broken()}")
            finally:
                await storm.process.kill()
            return storm.ledger


def rows(ledger: SessionState) -> list[tuple[str, ...]]:
    found = Counter((fault.kind, fault.at.partition(":")[0]) for fault in ledger.faults)
    return [(kind, *(str(found[kind, whose]) for whose in (ORDER, SESSION))) for kind in (WORKER, SERVER)]


def judged(ledger: SessionState) -> tuple[str, ...]:
    found = ledger.verdicts
    return (
        str(len(found)),
        str(sum(bool(verdict.lost) for verdict in found)),
        str(sum(len(verdict.doubled) for verdict in found)),
        str(sum(len(verdict.unknown_outcomes) for verdict in found)),
        str(sum(len(verdict.unsaid) for verdict in found)),
    )


def section(ledger: SessionState, step: int) -> str:
    """The page's text about it."""
    each, raw = f" --step {step}" if step > 1 else "", "benchmarks/order_faults.json"
    lines = [
        "## Faults in an application of its own",
        "",
        f"`python -m benchmarks.order_faults{each}`: [examples/orders](../examples/orders) as one process, with a",
        "workflow that asks an agent. Two people approve a refund, and the application's own activity pays it. The",
        f"process and the server die by SIGKILL, with up to {AT_ONCE} complaints under way. The shop gives a payment",
        "20 s; the default of an activity without heartbeats is 10 min.",
        "",
        *table(HEADER, rows(ledger)),
        "",
        *table(JUDGED, [judged(ledger)]),
        "",
        "*Lost*: an order whose workflow did not end with the agent's answer, a call without exactly one result, or a",
        "history of the order or the session that does not replay. *Of unknown outcome*: the agent's model reads that",
        f"nobody knows whether the payment happened. Fault by fault and order by order: [{raw}]({raw}).",
    ]
    return "\n".join(lines)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order_faults", description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="at each event, or at each so-manieth")
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the ledger under this folder")
    given = parser.parse_args()
    ledger = asyncio.run(run(given.step))
    for header, told in ((HEADER, rows(ledger)), (JUDGED, [judged(ledger)])):
        shown = Table(*header)
        for row in told:
            shown.add_row(*row)
        Console(width=120).print(shown)
    for verdict in ledger.broken():
        _say(str(verdict))
    if given.docs:
        publish(given.docs, "order_faults", section(ledger, given.step), ledger.rows())
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(1 if ledger.broken() else 0)


if __name__ == "__main__":
    main()
