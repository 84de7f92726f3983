"""Which workers poll is found out by the server's clock, whatever ours says."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from longhaul.starter.connection.pollers import backlog_of, pollers
from longhaul.starter.dev_server.dev_server import DevServer
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


@workflow.defn
class Nothing:
    @workflow.run
    async def run(self) -> None:
        """It is never started."""


@pytest.mark.parametrize("hours", [-24, 0, 24])
async def test_a_worker_polls_by_whatever_clock_it_is_asked(temporal_server: DevServer, hours: int) -> None:
    client = await Client.connect(temporal_server.address)
    queue, now = f"polled-{uuid.uuid4().hex[:8]}", datetime.now(UTC) + timedelta(hours=hours)
    before = await pollers(client, queue, now)

    async with Worker(
        client, task_queue=queue, workflows=[Nothing], identity="otter", workflow_runner=UnsandboxedWorkflowRunner()
    ):
        until = datetime.now(UTC) + timedelta(seconds=SURE_SECONDS)
        while not (found := await pollers(client, queue, now)):
            assert datetime.now(UTC) < until

    assert before == []
    assert [one.identity for one in found] == ["otter"]


async def test_what_waits_in_a_queue_for_which_nobody_polls_is_counted(temporal_server: DevServer) -> None:
    client = await Client.connect(temporal_server.address)
    queue = f"waiting-{uuid.uuid4().hex[:8]}"
    before = await backlog_of(client, queue)

    for number in range(3):
        await client.start_workflow("Nothing", id=f"{queue}-{number}", task_queue=queue)
    until = datetime.now(UTC) + timedelta(seconds=SURE_SECONDS)
    while (waiting := await backlog_of(client, queue)).tasks < 3 or not waiting.oldest:
        assert datetime.now(UTC) < until

    assert before == (0, timedelta())
    assert waiting.tasks == 3
