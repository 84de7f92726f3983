"""The letter that changes a session's budget: it raises limits, or ends a reply that waits for more."""

from pydantic import ValidationError

from longhaul.agent.decisions.budget import seconds_of, steps_of
from longhaul.agent.entries import all_entries as e
from longhaul.agent.letters.bodies import ChangeBudget, Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.plain.mistakes import what_is_wrong
from longhaul.agent.record import Record
from longhaul.agent.values.amount import NANOS, Amount, child_key
from longhaul.agent.values.budget import NEW_ACCOUNT, Account, Budget, Raise, shown


def change(record: Record, body: ChangeBudget) -> Received:
    """The same request id twice is one change."""
    budget, account = record.spec.budget, record.account or NEW_ACCOUNT
    if budget is None:
        raise Unusable("the session has no budget; its agent would have to have one under [budget]")
    if body.request_id and body.request_id in account.handled:
        return Received((), {"changed": True, "already": True, "limits": budget.told()})
    if body.child:
        return _allot(record, body, body.child, budget, account)
    if (above := record.parent) and not above.told and not body.allotted:
        put_aside = [name for name, _ in body.more.given() if name in above.allotted]
        if put_aside:
            raise Unusable(
                f"more.{put_aside[0]}: what this sub-agent may spend is put aside by the session "
                f"{above.session_id!r}; send it there, with child={above.call_id!r}"
            )
    raises = any(body.more.given())
    if raises == bool(body.end):
        raise Unusable("say by how much it is to be raised in `more`, or `end` as stop or summarise: one of the two")
    if body.end and account.question is None:
        raise Unusable(f"end: no reply waits for more budget, so none is to {body.end}; use interrupt to end one")
    try:
        raised = budget.raised(body.more)
    except ValueError as error:
        raise Unusable(f"more.{what_is_wrong(error) if isinstance(error, ValidationError) else error}") from None
    entry = e.BudgetChanged(more=body.more, end=body.end, by=body.by, request_id=body.request_id)
    return Received((entry,), {"changed": True, "already": False, "limits": raised.told()})


def _allot(record: Record, body: ChangeBudget, call_id: str, budget: Budget, account: Account) -> Received:
    """A sub-agent at work is given more of what is left here."""
    child, key = record.children.get(call_id), child_key(call_id)
    if child is None or child.outcome or child.stopped or key not in account.spending.reserved:
        raise Unusable(f"child: no sub-agent with the task {call_id!r} is at work here for which anything is put aside")
    if body.end or not any(body.more.given()):
        raise Unusable(
            "child: say in `more` how much more it is given; its own session is told how its reply is to end"
        )
    held = account.spending.held
    for name, more in body.more.given():
        if (limit := budget.limit(name)) is None:
            raise Unusable(f"more.{name}: the budget here has no limit of it; send it to {child.session_id!r}")
        used = seconds_of(account, record, record.latest_at) if name == "seconds" else held.of(name)
        used += steps_of(account, record) if name == "steps" else 0
        if used + more > limit:
            left = shown(name, max(limit - used, 0))
            raise Unusable(f"more.{name}: {left} of this session's own budget is left; raise that first")
    amount = account.spending.reserved[key] + _sums(body.more)
    entry = e.BudgetAllotted(call_id=call_id, amount=amount, more=body.more, by=body.by, request_id=body.request_id)
    return Received((entry,), {"changed": True, "already": False, "limits": budget.told()})


def _sums(more: Raise) -> Amount:
    return Amount(
        tokens=more.tokens or 0, nanos=round((more.cost or 0) * NANOS), calls=more.calls or 0, steps=more.steps or 0
    )
