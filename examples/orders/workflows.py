"""The workflow of a complaint about an order: an agent looks into it, and two people approve what it pays back."""

from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel
from temporalio import workflow

from longhaul import AgentSpec, Budget, PermissionContext
from longhaul.workflow import ask, session

with workflow.unsafe.imports_passed_through():
    from examples.orders.activities import hand_over

REFUNDS = AgentSpec(
    name="refunds",
    model="team",
    system_prompt="You answer complaints of a small shop. Look up the order before you pay anything back.",
    tools=["look_up", "activity:issue_refund@payments"],
    permission=PermissionContext.model_validate({"tools": {"issue_refund": {"approvers": 2}}}),
)


@dataclass
class Order:
    id: str
    customer: str
    complaint: str


class Decision(BaseModel):
    refunded_cents: int
    answer: str


@workflow.defn
class OrderWorkflow:
    @workflow.init
    def __init__(self, order: Order) -> None:
        self._order = order

    @workflow.run
    async def run(self, order: Order) -> Decision:
        found = await ask(
            REFUNDS,
            f"Order {order.id}: {order.complaint}",
            structured=Decision,
            session=order.id,
            user=order.customer,
            budget=Budget(max_cost=2),
            timeout=timedelta(days=14),
        )
        if found.value is None:
            await workflow.execute_activity(
                hand_over, args=[order.id, found.words], start_to_close_timeout=timedelta(minutes=1)
            )
        await workflow.wait_condition(workflow.all_handlers_finished)
        return found.value or Decision(refunded_cents=0, answer="We will call you.")

    @workflow.signal
    async def address_changed(self, address: str) -> None:
        agent = session(REFUNDS, self._order.id, user=self._order.customer)
        await agent.say(f"The customer's address is now {address}.", when="now")
