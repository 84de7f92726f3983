"""Tests of the shop's agent within its workflow: a real server, and a scripted model."""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHandle

from examples.orders import activities
from examples.orders.workers import connect, working
from examples.orders.workflows import REFUNDS, Decision, Order, OrderWorkflow
from longhaul import LonghaulPlugin, Session
from longhaul.testing import AgentEnvironment, calls, environment, scripted, settings_for

REFUND = calls("issue_refund", order="17", cents=2400)
PAID_BACK = calls("generate_response", refunded_cents=2400, answer="You get your money back.")
SAYS = [calls("look_up", order="17"), REFUND, PAID_BACK]
Complaint = tuple[AgentEnvironment, Session, WorkflowHandle[OrderWorkflow, Decision]]


@pytest.fixture(autouse=True)
def empty_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERS_KEY", base64.b64encode(os.urandom(32)).decode())
    activities.PAID.clear()
    activities.HANDED_OVER.clear()


@asynccontextmanager
async def complaint(address: str, folder: Path, says: list[Any]) -> AsyncIterator[Complaint]:
    """The shop at work on a complaint, and an agent that says these lines."""
    settings = settings_for(folder, tools=activities.__name__, models={"team": scripted(says)})
    client = await connect(address, LonghaulPlugin(settings, host=False))
    order = Order(folder.name, "mia", "The lamp hums.")
    async with environment(client, settings) as env, working(client):
        handle = await client.start_workflow(OrderWorkflow.run, order, id=f"order-{order.id}", task_queue="orders")
        yield env, env.app.session(order.id, user=order.customer, agent=REFUNDS), handle


async def test_two_people_approve_a_refund_and_it_is_paid_once(longhaul_server: str, tmp_path: Path) -> None:
    async with complaint(longhaul_server, tmp_path, SAYS) as (env, session, order):
        await env.approve(session, "issue_refund", by="ana")
        assert activities.PAID == {}
        await env.approve(session, "issue_refund", by="bo")
        decision = await order.result()
        refund = (await env.seen(session)).call("issue_refund")

    assert decision == Decision(refunded_cents=2400, answer="You get your money back.")
    assert (refund.state, refund.approvers) == ("success", ("ana", "bo"))
    assert [*activities.PAID.values()] == [2400]


async def test_the_agent_reads_a_new_address_and_why_nothing_is_paid(longhaul_server: str, tmp_path: Path) -> None:
    last = calls("generate_response", refunded_cents=0, answer="We send another lamp to 2 Quay.")
    says = [REFUND, {**last, "expect": {"last_contains": "2 Quay"}}]
    async with complaint(longhaul_server, tmp_path, says) as (env, session, order):
        await env.until_waiting(session)
        await order.signal(OrderWorkflow.address_changed, "2 Quay")
        await env.deny(session, "issue_refund", by="ana", reason="Send another lamp.")
        decision = await order.result()
        seen = await env.seen(session)

    assert decision.answer == "We send another lamp to 2 Quay."
    assert (seen.call("issue_refund").state, activities.PAID) == ("denied", {})
    assert "user: The customer's address is now 2 Quay." in seen.transcript


async def test_an_order_that_the_agent_cannot_decide_on_is_handed_over(longhaul_server: str, tmp_path: Path) -> None:
    says = [{"faults": [{"kind": "auth"}]}]
    async with complaint(longhaul_server, tmp_path, says) as (_, _, order):
        decision = await order.result()

    assert decision == Decision(refunded_cents=0, answer="We will call you.")
    (handed_over,) = activities.HANDED_OVER
    assert handed_over.startswith(f"{tmp_path.name}: error")
