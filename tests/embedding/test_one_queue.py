"""A task queue that agents share with an application: each type is run as its own, and unknown ones are left alone."""

import asyncio
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.worker import Worker

from longhaul.activities.models.providers import Providers
from longhaul.starter.connection.connect import let_go, over_connection
from longhaul.worker import Application as OfApplication
from longhaul.worker import build
from longhaul.workflows.session import AgentSession
from tests.embedding.conftest import Application
from tests.embedding.order_workflows import Greeting, Order, OrderWorkflow, Whatever
from tests.limits import SURE_SECONDS
from tests.workflows.operations import until

pytestmark = pytest.mark.server


@activity.defn
async def ring(times: int) -> str:
    return "ring " * times


@pytest.mark.proves("X22")
async def test_one_worker_registers_an_applications_workflows_and_ours(application: Application) -> None:
    theirs = await application.client()
    client = over_connection(theirs, application.settings)
    providers, queue = Providers(), application.settings.task_queue
    agent = application.agent({"text": "Two orders are late."})
    order = Order(agent, task_queue=queue)
    also = OfApplication((Greeting, OrderWorkflow), (ring,))
    async with asyncio.timeout(SURE_SECONDS), build(client, application.settings, providers, application=also):
        greeted = await client.execute_workflow(Greeting.run, "Ana", id=f"{application.name}-1", task_queue=queue)
        found = await client.execute_workflow(OrderWorkflow.run, order, id=f"{application.name}-2", task_queue=queue)
    await providers.close()
    await let_go(client)

    assert greeted == "Hello Ana, from a sandbox"
    assert (found.state, found.words) == ("success", "Two orders are late.")


async def test_a_type_that_nobody_knows_yet_is_left_to_a_worker_that_does(application: Application) -> None:
    """As with the SDK's own workers: its task fails, and is tried again, until a worker comes that has the type."""
    theirs = await application.client()
    client = over_connection(theirs, application.settings)
    providers, queue = Providers(), application.settings.task_queue
    handle = await client.start_workflow("Greeting", "Ana", id=f"{application.name}-1", task_queue=queue)
    async with asyncio.timeout(SURE_SECONDS), build(client, application.settings, providers):

        async def failed() -> bool:
            events = (await handle.fetch_history()).events
            return any(event.HasField("workflow_task_failed_event_attributes") for event in events)

        await until(failed)
        status = (await handle.describe()).status
    async with asyncio.timeout(SURE_SECONDS), Worker(theirs, task_queue=queue, workflows=[Greeting]):
        greeted = await handle.result()
    await providers.close()
    await let_go(client)

    assert status is WorkflowExecutionStatus.RUNNING
    assert greeted == "Hello Ana, from a sandbox"


async def test_a_stock_worker_may_have_our_session_and_a_dynamic_workflow_of_its_own(application: Application) -> None:
    client = await application.client()
    async with (
        asyncio.timeout(SURE_SECONDS),
        Worker(client, task_queue=application.queue, workflows=[AgentSession, Whatever]),
    ):
        said: Any = await client.execute_workflow("Anything", id=f"{application.name}-1", task_queue=application.queue)

    assert said == "a dynamic workflow, asked for Anything"
