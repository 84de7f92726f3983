"""The letter that changes a session's budget: it raises limits, or ends a reply that waits for more."""

from longhaul.agent.entries import every as e
from longhaul.agent.letters.bodies import ChangeBudget, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.record import Record
from longhaul.agent.values.budget import NEW_ACCOUNT


def change(record: Record, body: ChangeBudget) -> Received:
    """The same request id twice is one change."""
    budget, account = record.spec.budget, record.account or NEW_ACCOUNT
    if budget is None:
        raise Unusable("the session has no budget; its agent would have to have one under [budget]")
    if body.request_id and body.request_id in account.handled:
        return Received((), {"changed": True, "already": True, "limits": budget.told()})
    raises = any(body.more.given())
    if raises == bool(body.end):
        raise Unusable("say by how much it is to be raised in `more`, or `end` as stop or summarise: one of the two")
    if body.end and account.question is None:
        raise Unusable(f"end: no reply waits for more budget, so none is to {body.end}; use interrupt to end one")
    try:
        raised = budget.raised(body.more)
    except ValueError as error:
        raise Unusable(f"more.{error}") from None
    entry = e.BudgetChanged(more=body.more, end=body.end, by=body.by, request_id=body.request_id)
    return Received((entry,), {"changed": True, "already": False, "limits": raised.told()})
