"""A shop that knows nothing of Longhaul: its own activities and workflows, on stock workers of Temporal's SDK.

As a program: `python -m tests.workflows.workers.payments ADDRESS QUEUE FOLDER`, which says `ready` when it polls.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import nexusrpc
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio import activity, nexus, workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker


@dataclass
class Refund:
    order: str
    cents: int
    reason: str = "none given"


@dataclass
class Payments:
    """The activities. What they did is in the folder: `book` has a line for each beginning, and `open` lets those end
    that wait."""

    folder: Path

    @activity.defn
    async def issue_refund(self, refund: Refund) -> dict[str, Any]:
        """Pay money back to the customer of an order."""
        await self._work()
        return {"order": refund.order, "refunded": refund.cents, "reason": refund.reason}

    @activity.defn(name="lookUp")
    async def look_up(self, order: str, currency: str = "EUR", deep: bool = False) -> str:
        """Look an order up.

        Args:
            order: its number.
        """
        await self._work()
        return f"{order}: 1200 {currency}{', and all that belongs to it' if deep else ''}"

    @activity.defn
    async def charge(self, order: str) -> None:
        """Charge the card of an order."""
        self._book()
        raise ApplicationError(f"the card of {order} is closed", non_retryable=True)

    @activity.defn
    async def ship(self, order: str) -> list[str]:
        """Send an order."""
        await self._work()
        return [order, "is on its way"]

    @activity.defn
    async def pack(self, order: str) -> str:
        """Pack an order. It reports no heartbeats, so it hears of nothing."""
        self._book()
        while not (self.folder / "open").exists():  # noqa: ASYNC110  a test says so
            await asyncio.sleep(0.05)
        return order

    @property
    def all(self) -> list[Callable[..., Any]]:
        return [self.issue_refund, self.look_up, self.charge, self.ship, self.pack]

    def started(self) -> list[str]:
        """Of each beginning the activity's type and id, and the number of the attempt."""
        book = self.folder / "book"
        return book.read_text().splitlines() if book.exists() else []

    def let_end(self) -> None:
        (self.folder / "open").touch()

    def _book(self) -> None:
        info = activity.info()
        with (self.folder / "book").open("a") as book:
            book.write(f"{info.activity_type} {info.activity_id} {info.attempt}\n")

    async def _work(self) -> None:
        self._book()
        while not (self.folder / "open").exists():
            activity.heartbeat()
            await asyncio.sleep(0.05)


@workflow.defn
class Delivery:
    """A workflow of the shop's."""

    def __init__(self) -> None:
        self._arrived = False

    @workflow.run
    async def run(self, order: str, floor: int = 0) -> dict[str, Any]:
        """Deliver an order, and wait until it has arrived."""
        if order == "lost":
            raise ApplicationError("nobody lives there")
        await workflow.wait_condition(lambda: self._arrived)
        return {"order": order, "floor": floor}

    @workflow.signal
    def arrived(self) -> None:
        self._arrived = True


@dataclass
class Invoice:
    order: str
    cents: int = 0


@nexusrpc.service
class Invoices:
    """Operations of the shop's billing, in a namespace of its own."""

    bill: nexusrpc.Operation[Invoice, str]
    deliver: nexusrpc.Operation[Invoice, dict[str, Any]]


@service_handler(service=Invoices)
class Billing:
    @sync_operation
    async def bill(self, ctx: StartOperationContext, invoice: Invoice) -> str:
        if not invoice.cents:
            raise nexusrpc.HandlerError("nothing to pay", type=nexusrpc.HandlerErrorType.BAD_REQUEST)
        return f"sent {invoice.order} over {invoice.cents}"

    @nexus.workflow_run_operation
    async def deliver(
        self, ctx: nexus.WorkflowRunOperationContext, invoice: Invoice
    ) -> nexus.WorkflowHandle[dict[str, Any]]:
        return await ctx.start_workflow(Delivery.run, args=[invoice.order, 3], id=f"delivery-{invoice.order}")


def shop_worker(
    client: Client, queue: str, folder: Path, activities: Sequence[Callable[..., Any]] | None = None
) -> Worker:
    """A stock worker with these activities, or with all."""
    mine = Payments(folder).all if activities is None else activities
    return Worker(
        client,
        task_queue=queue,
        activities=mine,
        workflows=[Delivery],
        graceful_shutdown_timeout=timedelta(0),
        max_heartbeat_throttle_interval=timedelta(seconds=0.2),
        default_heartbeat_throttle_interval=timedelta(seconds=0.2),
    )


async def _main(address: str, queue: str, folder: str) -> None:
    async with shop_worker(await Client.connect(address), queue, Path(folder)):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
