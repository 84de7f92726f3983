"""The SDK alone, without our plugin: its worker and sandbox, its converter, its replayer and its test environment."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from examples.orders import activities
from examples.orders.workers import CONVERTER
from examples.orders.workflows import Decision
from examples.orders.workflows import Order as ShopOrder
from examples.orders.workflows import OrderWorkflow as ShopWorkflow
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


SHOP_SAYS = (
    {"tool_calls": [{"name": "issue_refund", "input": {"order": "17", "cents": 2400}}]},
    {"tool_calls": [{"name": "generate_response", "input": {"refunded_cents": 2400, "answer": "Paid back."}}]},
)


@pytest.fixture
def shop_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the shop's process has in its environment."""
    script = tmp_path / "says.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in SHOP_SAYS), encoding="utf-8")
    team = {"provider": "scripted", "model": str(script), "prices": {"input": 0, "output": 0}}
    variables = {
        "ORDERS_KEY": base64.b64encode(os.urandom(32)).decode(),
        "LONGHAUL_DATA_DIR": str(tmp_path / "data"),
        "LONGHAUL_MODELS": json.dumps({"team": team}),
        "LONGHAUL_TOOLS": activities.__name__,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(activities, "PAID", {})


async def begun_child(order: WorkflowHandle[Any, Any]) -> str:
    """Id of the workflow that this one has started."""
    while True:
        async for event in order.fetch_history_events(wait_new_event=True):
            if event.HasField("child_workflow_execution_started_event_attributes"):
                return event.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id


async def waiting_call(session: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """The call that waits for a person, as the session's own query says it."""
    while True:
        with suppress(RPCError):
            if pending := await session.query("pending"):
                return dict(pending[0])
        await asyncio.sleep(0.1)


@pytest.mark.proves("X22")
@pytest.mark.usefixtures("shop_variables")
async def test_the_shop_runs_and_replays_with_the_sdks_own_tools_and_the_plugin_alone(temporal_cli: Path) -> None:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(temporal_cli), data_converter=CONVERTER, plugins=[LonghaulPlugin()]
    )
    client = environment.client
    shop = Worker(client, task_queue="orders", workflows=[ShopWorkflow], activities=[activities.hand_over])
    payments = Worker(client, task_queue="payments", activities=[activities.issue_refund])
    async with asyncio.timeout(2 * SURE_SECONDS), environment, shop, payments:
        order = await client.start_workflow(
            ShopWorkflow.run, ShopOrder("17", "mia", "The lamp hums."), id="order-17", task_queue="orders"
        )
        session = client.get_workflow_handle(await begun_child(order))
        call = await waiting_call(session)
        for approver in ("ana", "bo"):
            decisions = [{"call_id": call["call_id"], "decision": "allow"}]
            await session.signal("confirm", {"decisions": decisions, "approver": approver})
        decision = await order.result()
        histories = [await each.fetch_history() for each in (order, session)]

    replayer = Replayer(workflows=[ShopWorkflow], data_converter=CONVERTER, plugins=[LonghaulPlugin()])
    results = await replayer.replay_workflows(_one_by_one(histories))

    assert decision == Decision(refunded_cents=2400, answer="Paid back.")
    assert [*activities.PAID.values()] == [2400]
    assert (call["tool"], call["approvers"], results.replay_failures) == ("issue_refund", 2, {})
