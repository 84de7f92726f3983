"""`python -m benchmarks.order_faults`: what a user's own Temporal application loses when its worker and the server die.

The application is `examples/orders`: a workflow that asks an agent, whose refund takes two approvals and runs as the
application's own activity. Workers of all three queues are one process. A fault is made at each event of the order's
workflow and at each event of the agent's session; other complaints are under way meanwhile. What was really paid is
compared with what both workflows say. Exits with 1 when something is lost, paid twice or not said.
"""

import argparse
import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle

from benchmarks.fault_ledger import AT_ONCE, SERVER, WORKER, SessionState
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
from benchmarks.pages import publish, table
from tests.e2e.crash.crash_full import PATIENCE_SECONDS
from tests.e2e.crash.shop_job import Shop

ORDER, SESSION = "order", "session"
HEADER = ("fault", "at each event of the order's workflow", "at each event of the agent's session")
JUDGED = ("orders", "lost", "refunds paid twice", "refunds of unknown outcome", "unknown outcomes not told")


@dataclass
class Complaints:
    """Those of one shop with its storm."""

    shop: Shop
    storm: Storm

    def begin(self) -> tuple[str, Playing]:
        self.storm.named += 1
        name = f"o{self.storm.named}"
        return name, self.storm.play(name, self.shop.play(name, PATIENCE_SECONDS))

    def handle(self, name: str, whose: str) -> WorkflowHandle[Any, Any]:
        workflow_id = f"order-{name}" if whose == ORDER else self.shop.session(name).workflow_id
        return self.shop.client.get_workflow_handle(workflow_id)

    async def at_each_event(self, whose: str, numbers: range, kind: str) -> None:
        def begin() -> tuple[WorkflowHandle[Any, Any], Playing]:
            name, playing = self.begin()
            return self.handle(name, whose), playing

        await self.storm.at_each_event(numbers, kind, begin, of=f"{whose}: ")


async def run(step: int) -> SessionState:
    async with server_in_folder("longhaul-orders-") as (server, folder):
        (folder / "shop").mkdir()
        async with Shop.on(server.address, folder / "shop") as shop:
            storm = Storm(server, shop.worker, await started(shop.worker))
            complaints = Complaints(shop, storm)
            try:
                calm, playing = complaints.begin()
                await check_calm(playing)
                for whose in (ORDER, SESSION):
                    events = await events_of(complaints.handle(calm, whose))
                    for kind in (WORKER, SERVER):
                        await complaints.at_each_event(whose, range(1, len(events) + 1, step), kind)
                        say(f"{kind} at {len(events)} events of the {whose}; broken: {storm.ledger.broken()}")
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order_faults", description=__doc__)
    parser.add_argument("--step", type=int, default=1, help="at each event, or at each so-manieth")
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the ledger under this folder")
    given = parser.parse_args()
    ledger = asyncio.run(run(given.step))
    report(ledger, (HEADER, rows(ledger)), (JUDGED, [judged(ledger)]))
    if given.docs:
        publish(given.docs, "order_faults", section(ledger, given.step), ledger.rows())
    leave(ledger)


if __name__ == "__main__":
    main()
