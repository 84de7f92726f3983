"""A user's own Nexus operations as tools, in another namespace of the server, on stock workers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import is_cancelled_exception
from temporalio.service import RPCError
from temporalio.worker import Worker

from longhaul.agent.plain.ids import target_workflow_id
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.spec.temporal_tools import OWN_WORKFLOWS
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.dev_server import DYNAMIC_CONFIG, DevServer, DevServerSettings
from longhaul.workflows import contract
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_encrypted import locked
from tests.workflows.operations import calls, results, until
from tests.workflows.workers.payments import Billing, Delivery

__all__ = ["locked"]

pytestmark = pytest.mark.server

ERROR, INTERRUPTED, SUCCESS = ToolResultState.ERROR, ToolResultState.INTERRUPTED, ToolResultState.SUCCESS
NAMESPACE = "billing"
INVOICE = {
    "type": "object",
    "required": ["order"],
    "properties": {"order": {"type": "string"}, "cents": {"type": "integer"}},
}


@pytest.fixture(scope="module")
async def temporal_server(temporal_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """A server with Nexus, which the servers of other tests leave out, and with a second namespace."""
    settings = DevServerSettings(
        temporal=temporal_cli,
        directory=tmp_path_factory.mktemp("nexus"),
        search_attributes=SEARCH_ATTRIBUTES,
        dynamic_config={**DYNAMIC_CONFIG, "system.enableNexus": True},
        start_seconds=SURE_SECONDS,
    )
    async with DevServer(settings) as server:
        client = await Client.connect(server.address)
        retention = Duration(seconds=86_400)
        await client.workflow_service.register_namespace(
            RegisterNamespaceRequest(namespace=NAMESPACE, workflow_execution_retention_period=retention)
        )
        yield server


@dataclass
class Office:
    """The billing's side: a client in its namespace, and the endpoint by which others reach it."""

    client: Client
    queue: str
    endpoint: str

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        async with Worker(self.client, task_queue=self.queue, workflows=[Delivery], nexus_service_handlers=[Billing()]):
            yield


@pytest.fixture
async def office(unserved: Stage) -> Office:
    client = await Client.connect(unserved.address, namespace=NAMESPACE)
    queue = f"{unserved.name}-billing"
    endpoint = f"billing-{uuid4().hex[:6]}"
    worker = EndpointTarget.Worker(namespace=NAMESPACE, task_queue=queue)
    spec = EndpointSpec(name=endpoint, target=EndpointTarget(worker=worker))

    async def created() -> bool:
        try:
            await client.operator_service.create_nexus_endpoint(CreateNexusEndpointRequest(spec=spec))
        except RPCError:  # the namespace may be a moment old
            return False
        return True

    await until(created)
    return Office(client, queue, endpoint)


def billing(stage: Stage, endpoint: str, *lines: dict[str, Any]) -> Session:
    said = {"effect": "idempotent", "input_schema": INVOICE}
    return stage.session(
        *lines,
        {"text": "Done."},
        tools=[f"nexus:{endpoint}/Invoices/bill", f"nexus:{endpoint}/Invoices/deliver"],
        temporal_tools={"bill": said, "deliver": said},
        permission={"mode": "bypass"},
    )


@pytest.mark.proves("X23")
async def test_an_operation_in_another_namespace_answers_a_call(stage: Stage, office: Office) -> None:
    session = billing(stage, office.endpoint, calls("bill", order="A-7", cents=1200), calls("bill", order="A-8"))
    async with office.worker():
        done = await session.reply("Send both invoices")
    (first, second) = results(done)
    assert first == (SUCCESS, "sent A-7 over 1200")
    assert (second[0], "nothing to pay" in second[1]) == (ERROR, True)


async def test_an_operation_that_runs_for_long_outlives_the_sessions_worker(unserved: Stage, office: Office) -> None:
    order = uuid4().hex
    session = billing(unserved, office.endpoint, calls("deliver", order=order))
    delivery = office.client.get_workflow_handle(f"delivery-{order}")
    async with office.worker():
        async with unserved.another_worker():
            reply = await session.submit("Deliver it")
            await until(lambda: is_there(delivery))
        await delivery.signal("arrived")
        async with unserved.another_worker():
            done = await session.wait(reply)
    assert results(done) == [(SUCCESS, f'{{"floor": 3, "order": "{order}"}}')]


async def test_an_interrupt_cancels_the_workflow_behind_the_operation(stage: Stage, office: Office) -> None:
    order = uuid4().hex
    session = billing(stage, office.endpoint, calls("deliver", order=order))
    delivery = office.client.get_workflow_handle(f"delivery-{order}")
    async with office.worker():
        reply = await session.submit("Deliver it")
        await until(lambda: is_there(delivery))
        await session.interrupt()
        done = await session.wait(reply)
        assert [state for state, _ in results(done)] == [INTERRUPTED]
        assert (await delivery.describe()).status is WorkflowExecutionStatus.CANCELED


async def test_an_endpoint_that_is_not_there_is_named_before_anything_is_called(stage: Stage) -> None:
    session = billing(stage, "nowhere", calls("bill", order="A-7"))
    await session.submit("Send it")

    async def lacks() -> bool:
        return (await session.status()).lacking != ""

    await until(lacks)
    assert "no Nexus endpoint 'nowhere'" in (await session.status()).lacking


async def test_an_endpoint_that_goes_away_stops_no_session(stage: Stage) -> None:
    """The server fails each workflow task that calls it. So it is the task of another workflow."""
    handle = await stage.client.start_workflow(
        contract.OPERATION,
        contract.OperationCall.model_validate(
            {
                "target": {"kind": "nexus", "endpoint": "gone", "service": "Invoices", "name": "bill"},
                "given": {},
                "seconds": 60,
            }
        ),
        id=target_workflow_id(f"longhaul/{stage.name}", "call-1"),
        task_queue=stage.name,
    )

    async def failed() -> bool:
        events = (await handle.fetch_history()).events
        return any(event.HasField("workflow_task_failed_event_attributes") for event in events)

    await until(failed)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as ended:
        await handle.result()
    assert is_cancelled_exception(ended.value.cause)


async def test_a_session_with_keys_sends_plain_json_to_an_operation(locked: Stage, office: Office) -> None:
    session = billing(locked, office.endpoint, calls("bill", order="A-7", cents=1200))
    async with locked.another_worker(), office.worker():
        done = await session.reply("Send the invoice")
    assert results(done) == [(SUCCESS, "sent A-7 over 1200")]


async def is_there(delivery: Any) -> bool:
    try:
        events = (await delivery.fetch_history()).events
    except RPCError:
        return False
    return any(event.HasField("workflow_task_completed_event_attributes") for event in events)


def test_no_tool_may_start_a_workflow_of_longhauls() -> None:
    own = {contract.WORKFLOW, contract.HUB, contract.SCHEDULED, contract.ENVIRONMENT, contract.OPERATION}
    assert {*OWN_WORKFLOWS} == own
