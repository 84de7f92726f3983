"""The standing of a session with its budget, for people and programs."""

from collections.abc import Iterator

from longhaul.agent.decisions.budget import seconds_of, steps_of
from longhaul.agent.plain.times import iso
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.record import Record
from longhaul.agent.values.amount import Amount
from longhaul.agent.values.budget import LIMITS, NEW_ACCOUNT, Account, shown

CALL_ID = "budget"
"""In the place of a call's id, of what waits for more budget; no tool is called so by a model."""


class BudgetStanding(OpenValue):
    """By name of the limit: tokens, cost in dollars, calls, steps, seconds. `limits` and `left` have those that are
    set; `cost` is 0 where nobody has set a limit of it."""

    limits: dict[str, float]
    spent: dict[str, float]
    reserved: dict[str, float]
    """Put aside for the call that is under way, and for sub-agents at work."""
    left: dict[str, float]
    doubtful: dict[str, float] = sparse({})
    """Of what was spent: attempts that were lost or cut short, which a provider may have billed, as estimated."""
    asks: str = sparse("")
    """What a reply waits for that needs more."""
    asked_at: str = sparse("")

    def lines(self) -> Iterator[str]:
        """One to each limit, and what stands beside it."""
        for name in LIMITS:
            if (limit := self.limits.get(name)) is None:
                continue
            held = self.reserved.get(name, 0)
            aside = f", {shown(name, held)} put aside" if held else ""
            yield (
                f"budget: {shown(name, self.spent[name])} of {shown(name, limit)} spent{aside}, "
                f"{shown(name, self.left[name])} left"
            )
        if calls := self.doubtful.get("calls"):
            cost = f" and {shown('cost', self.doubtful['cost'])}" if "cost" in self.limits else ""
            tokens = shown("tokens", self.doubtful["tokens"])
            yield f"of that in doubt: {tokens}{cost} of {shown('calls', calls)} that nobody heard the end of"


def standing(record: Record) -> BudgetStanding | None:
    """As of the newest entry; None without a budget."""
    budget, account = record.spec.budget, record.account or NEW_ACCOUNT
    if budget is None:
        return None
    spending, limits = account.spending, budget.told()
    reserved = sum(spending.reserved.values(), Amount())
    spent = {**_of(spending.spent), **_passed(account, record)}
    aside = _of(reserved)
    return BudgetStanding(
        limits=limits,
        spent=spent,
        reserved=aside,
        left={name: max(limit - spent[name] - aside.get(name, 0), 0) for name, limit in limits.items()},
        doubtful=_of(spending.doubtful) if spending.doubtful.calls else {},
        asks=account.question.why if account.question else "",
        asked_at=iso(account.question.at) if account.question else "",
    )


def _of(amount: Amount) -> dict[str, float]:
    steps = {"steps": amount.steps} if amount.steps else {}
    return {"tokens": amount.tokens, "cost": amount.of("cost"), "calls": amount.calls, **steps}


def _passed(account: Account, record: Record) -> dict[str, float]:
    steps = steps_of(account, record) + account.spending.spent.steps
    return {"steps": steps, "seconds": round(seconds_of(account, record, record.latest_at), 3)}
