"""A user's own workflows and Nexus operations as tools: each call starts one, and an interrupt cancels it."""

from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from longhaul.activities.tools.target_tools import workflow_tool
from longhaul.agent.plain.ids import target_workflow_id
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage, TypeTemporal
from tests.workflows.incarnation.test_encrypted import locked
from tests.workflows.incarnation.test_reset import LAST, looked_back, reset
from tests.workflows.operations import results, until
from tests.workflows.workers.payments import Delivery
from tests.workflows.workers.test_activity_tools import FREE, Shop, shop

__all__ = ["locked", "shop"]

pytestmark = pytest.mark.server

INTERRUPTED, SUCCESS, UNKNOWN = ToolResultState.INTERRUPTED, ToolResultState.SUCCESS, ToolResultState.UNKNOWN
DELIVERED = '{"floor": 2, "order": "A-7"}'


def delivering(stage: Stage, shop: Shop, order: str = "A-7", **spec: Any) -> Session:
    """A session whose model has one order delivered, by the call `deliver-1`."""
    line = {"tool_calls": [{"id": "deliver-1", "name": "Delivery", "input": {"order": order, "floor": 2}}]}
    tools = [workflow_tool(Delivery, queue=shop.queue)]
    return stage.session(line, {"text": "Done."}, **{"tools": tools, "permission": FREE, **spec})


def delivery_of(stage: Stage, session: Session) -> WorkflowHandle[Any, Any]:
    return stage.client.get_workflow_handle(target_workflow_id(session.workflow_id, "deliver-1"))


async def status_of(delivery: WorkflowHandle[Any, Any]) -> WorkflowExecutionStatus | None:
    return (await delivery.describe()).status


async def under_way(stage: Stage, session: Session) -> WorkflowHandle[Any, Any]:
    """Its delivery, when a worker has taken it."""
    delivery = delivery_of(stage, session)

    async def taken() -> bool:
        history = (await stage.handle(session).fetch_history()).events
        if not any(event.HasField("child_workflow_execution_started_event_attributes") for event in history):
            return False
        events = (await delivery.fetch_history()).events
        return any(event.HasField("workflow_task_completed_event_attributes") for event in events)

    await until(taken)
    return delivery


@pytest.mark.proves("X23")
async def test_a_workflow_of_the_users_runs_for_a_call_and_the_model_reads_its_result(stage: Stage, shop: Shop) -> None:
    session = delivering(stage, shop)
    async with shop.worker():
        reply = await session.submit("Deliver A-7")
        delivery = await under_way(stage, session)
        await delivery.signal("arrived")
        done = await session.wait(reply)
    assert results(done) == [(SUCCESS, DELIVERED)]


async def test_a_workflow_that_fails_is_a_result_that_the_model_reads(stage: Stage, shop: Shop) -> None:
    session = delivering(stage, shop, order="lost")
    async with shop.worker():
        done = await session.reply("Deliver it")
    assert results(done) == [(ToolResultState.ERROR, "Delivery failed: nobody lives there")]


async def test_an_interrupt_cancels_the_workflow(stage: Stage, shop: Shop) -> None:
    session = delivering(stage, shop)
    async with shop.worker():
        reply = await session.submit("Deliver A-7")
        delivery = await under_way(stage, session)
        await session.interrupt()
        done = await session.wait(reply)
    assert [state for state, _ in results(done)] == [INTERRUPTED]
    assert await status_of(delivery) is WorkflowExecutionStatus.CANCELED


async def test_a_workflow_that_somebody_terminates_has_an_unknown_outcome(stage: Stage, shop: Shop) -> None:
    session = delivering(stage, shop)
    async with shop.worker():
        reply = await session.submit("Deliver A-7")
        delivery = await under_way(stage, session)
        await delivery.terminate("a test")
        done = await session.wait(reply)
    ((state, text),) = results(done)
    assert state is UNKNOWN
    assert "somebody terminated the workflow 'Delivery'" in text


async def test_a_workflow_outlives_the_sessions_worker_and_no_second_is_started(unserved: Stage, shop: Shop) -> None:
    session = delivering(unserved, shop)
    async with shop.worker():
        async with unserved.another_worker():
            reply = await session.submit("Deliver A-7")
            delivery = await under_way(unserved, session)
        await delivery.signal("arrived")
        async with unserved.another_worker():
            done = await session.wait(reply)
    started = [row async for row in unserved.client.list_workflows(f"WorkflowId = '{delivery.id}'")]
    assert results(done) == [(SUCCESS, DELIVERED)]
    assert len(started) <= 1  # the list may be a moment old


async def test_a_reset_session_starts_no_second_workflow(stage: Stage, shop: Shop, type_temporal: TypeTemporal) -> None:
    session = delivering(stage, shop)
    async with shop.worker():
        await session.submit("Deliver A-7")
        delivery = await under_way(stage, session)
        first = (await delivery.describe()).run_id
        await reset(type_temporal, session, *LAST)
        await looked_back(session)
        assert (await delivery.describe()).run_id == first


async def test_the_workflow_of_a_session_with_keys_gets_plain_json(locked: Stage, shop: Shop) -> None:
    session = delivering(locked, shop)
    async with locked.another_worker(), shop.worker():
        reply = await session.submit("Deliver A-7")
        delivery = await under_way(locked, session)
        await delivery.signal("arrived")
        done = await session.wait(reply)
    assert results(done) == [(SUCCESS, DELIVERED)]
