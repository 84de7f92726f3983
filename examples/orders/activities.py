"""What the shop does for its orders: activities of its own workers, and the tools of its agent.

The agents' workers load this file (LONGHAUL_TOOLS), for `look_up` and for the arguments of `issue_refund`.
"""

from dataclasses import dataclass

from temporalio import activity

from longhaul import activity_tool, tool

SOLD = {"17": "a lamp for 24 euros, delivered on Monday", "18": "a rope for 4 euros, still on its way"}
PAID = dict[str, int]()
"""What the payment service has paid back, in cents, by the key of the payment."""
HANDED_OVER = list[str]()


@tool(effect="read", read_only=True)
def look_up(order: str) -> str:
    """Look up an order: what was bought, for how much, and where it is."""
    return SOLD.get(order, "There is no such order.")


@dataclass
class Refund:
    order: str
    cents: int


@activity.defn
async def issue_refund(refund: Refund) -> str:
    """Pay money back to the customer of an order."""
    call = activity.info()
    # The same for each attempt of a call: a payment service that takes a key pays once for it.
    PAID[f"{call.workflow_id}/{call.activity_id}"] = refund.cents
    return f"paid back {refund.cents} cents for order {refund.order}"


REFUND = activity_tool(issue_refund, queue="payments")


@activity.defn
async def hand_over(order: str, why: str) -> None:
    """Give an order to the people of the shop, in their own list of tasks."""
    HANDED_OVER.append(f"{order}: {why}")
