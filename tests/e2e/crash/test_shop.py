"""A user's own Temporal application with an agent outlives SIGKILL of its one process and of the server.

`python -m benchmarks.order_faults` does the same at each event of both workflows.
"""

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.e2e.crash.crash_full import Verdict
from tests.e2e.crash.shop_job import ANSWER, KEY, Shop
from tests.e2e.processes import WorkerProcess, worker
from tests.limits import SURE_SECONDS
from tests.workflows.operations import until

pytestmark = pytest.mark.server


@asynccontextmanager
async def mortal_shop(temporal_cli: Path, folder: Path) -> AsyncIterator[tuple[Shop, DevServer]]:
    """The shop without a worker, on a server of its own."""
    settings = DevServerSettings(
        temporal=temporal_cli, directory=folder / "server", search_attributes=SEARCH_ATTRIBUTES
    )
    async with DevServer(settings) as server, Shop.on(server.address, folder) as shop:
        yield shop, server


async def has_begun(order: WorkflowHandle[Any, Any]) -> None:
    """Until the server has started the session for the workflow."""
    async for event in order.fetch_history_events(wait_new_event=True):
        if event.HasField("child_workflow_execution_started_event_attributes"):
            return


async def has_paid(session: WorkflowHandle[Any, Any]) -> None:
    """Until the history of the session has the end of the payment."""
    scheduled = -1
    async for event in session.fetch_history_events(wait_new_event=True):
        if event.activity_task_scheduled_event_attributes.activity_type.name == "issue_refund":
            scheduled = event.event_id
        if event.activity_task_completed_event_attributes.scheduled_event_id == scheduled:
            return


async def restarted(server: DevServer) -> None:
    await server.kill()
    await server.start()


@pytest.mark.proves("X13", "X22")
async def test_an_order_is_answered_and_paid_once_whatever_is_killed(
    temporal_cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, base64.b64encode(os.urandom(32)).decode())
    async with mortal_shop(temporal_cli, tmp_path) as (shop, server), asyncio.timeout(2 * SURE_SECONDS):
        session = shop.session("17")

        async def waits() -> bool:
            return bool((await shop.app.inbox()).calls)

        async with worker(shop.worker()) as first:
            order = await shop.complain("17")
            await has_begun(order)
            await first.kill()
        second = await WorkerProcess.start(shop.worker())
        await until(waits)
        await restarted(server)
        (call,) = await session.own_pending()
        first_answer = await session.confirm(call.call_id, allow=True, approver="ana")
        await second.kill()
        await restarted(server)
        async with worker(shop.worker()) as third:
            await session.confirm(call.call_id, allow=True, approver="bo")
            await has_paid(shop.app.client.get_workflow_handle(session.workflow_id))
            await third.kill()
        await restarted(server)
        async with worker(shop.worker()):
            decision = await order.result()
            verdict = await shop.judge("17", order, decision)

    assert (decision, first_answer) == (ANSWER, "1 of 2")
    assert verdict == Verdict("17", effects={"issue_refund": 1})
