"""The SDK alone, without our plugin: its worker and sandbox, its converter, its replayer and its test environment."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from longhaul.plugin import LonghaulPlugin
from tests.embedding.conftest import Application
from tests.embedding.order_workflows import Greeting, Order, OrderWorkflow
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

CONVERTERS = {"the stock one": DataConverter.default, "pydantic's": pydantic_data_converter}


async def asked(application: Application, client: Client) -> tuple[dict[str, Any], str]:
    """What an ask comes to of a stock worker, whose agents work in another one; and the id of the workflow."""
    other = await application.client(application.plugin)
    agent = application.agent({"text": "Two orders are late."})
    order = Order(agent, options={"session": application.case}, task_queue=application.settings.task_queue)
    async with (
        asyncio.timeout(SURE_SECONDS),
        Worker(other, task_queue=f"{application.queue}-2", workflows=[Greeting]),
        Worker(client, task_queue=application.queue, workflows=[OrderWorkflow]),
    ):
        handle = await application.begin(client, order)
        # The stock converter writes a generic dataclass and can't read it.
        found = await client.get_workflow_handle(handle.id, result_type=dict).result()
        return found, handle.id


@pytest.mark.proves("X22")
@pytest.mark.parametrize("name", [*CONVERTERS])
async def test_a_stock_worker_in_its_sandbox_asks_agents_and_the_stock_replayer_replays_it(
    application: Application, name: str
) -> None:
    client = await application.client(data_converter=CONVERTERS[name])
    found, workflow_id = await asked(application, client)
    history = await client.get_workflow_handle(workflow_id).fetch_history()

    assert (found["state"], found["words"]) == ("success", "Two orders are late.")
    await Replayer(workflows=[OrderWorkflow], data_converter=CONVERTERS[name]).replay_workflow(history)


async def test_a_replayer_with_the_plugin_replays_an_ask_and_its_session(application: Application) -> None:
    client = await application.client()
    found, workflow_id = await asked(application, client)
    session = application.session(client, found["session"])
    histories = [await client.get_workflow_handle(each).fetch_history() for each in (workflow_id, session.workflow_id)]
    replayer = Replayer(
        workflows=[OrderWorkflow],
        namespace="default",
        data_converter=pydantic_data_converter,
        plugins=[LonghaulPlugin(application.settings, host=False)],
    )

    results = await replayer.replay_workflows(_one_by_one(histories))

    assert (len(results.replay_failures), len(histories)) == (0, 2)


async def _one_by_one(histories: list[WorkflowHistory]) -> AsyncIterator[WorkflowHistory]:
    for history in histories:
        yield history


@pytest.mark.proves("X22")
async def test_the_sdks_test_environment_has_agents_by_the_plugin(application: Application, temporal_cli: Path) -> None:
    order = Order(application.agent({"text": "All is well."}))
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(temporal_cli),
        data_converter=pydantic_data_converter,
        plugins=[application.plugin],
    )
    async with environment, Worker(environment.client, task_queue=application.queue, workflows=[OrderWorkflow]):
        found = await application.ask(environment.client, order)

    assert (found.state, found.words) == ("success", "All is well.")
