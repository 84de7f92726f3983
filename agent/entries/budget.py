"""Entries about a session's budget. There are none where no budget is set."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.amount import Amount
from longhaul.agent.values.budget import End, Lack, Raise


class BudgetReserved(Entry):
    """Put aside for the call that is made next; what comes of that call settles it."""

    kind: Literal["budget_reserved"] = "budget_reserved"
    model: str
    """As the agent names it."""
    amount: Amount
    closing: bool = sparse(False)
    """For the last call of a reply that is out of budget."""


class BudgetReleased(Entry):
    """What was put aside is free again: the call gave no answer. So many of its attempts may have been billed, and
    count as spent."""

    kind: Literal["budget_released"] = "budget_released"
    lost: int = sparse(0)


class BudgetExhausted(Entry):
    """The next call might pass these limits, and is not made."""

    kind: Literal["budget_exhausted"] = "budget_exhausted"
    lacks: tuple[Lack, ...]
    then: Literal["ask", "stop", "summarise"]
    """The agent's policy: what becomes of the reply."""


class BudgetChanged(Entry):
    """Somebody has raised limits, or has said how the reply is to end that waits for more."""

    kind: Literal["budget_changed"] = "budget_changed"
    more: Raise = sparse(Raise())
    end: End = sparse("")
    by: str = sparse("")
    request_id: str = sparse("")


class BudgetAllotted(Entry):
    """Put aside for the sub-agent of a call: the end of its task settles it."""

    kind: Literal["budget_allotted"] = "budget_allotted"
    call_id: str
    amount: Amount
    """All that it may spend; what was put aside for it before counts no more."""
    more: Raise = sparse(Raise())
    """Of one that is at work: by how much its limits are raised, which it has to be told."""
    by: str = sparse("")
    request_id: str = sparse("")


BudgetEntry = BudgetReserved | BudgetReleased | BudgetExhausted | BudgetChanged | BudgetAllotted
