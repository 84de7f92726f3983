"""Decides how far the server of a call may have a model asked: as its agent says, and the session's budget leaves."""

from longhaul.agent.fold.budget import tariff_of
from longhaul.agent.record import Record
from longhaul.agent.values.amount import NANOS
from longhaul.agent.values.budget import NEW_ACCOUNT
from longhaul.agent.values.price import MILLION
from longhaul.agent.values.spec.mcp_sampling import Sampling


def room_for(record: Record, sampling: Sampling, model: str) -> tuple[int, int]:
    """Calls and tokens. None where the model has no price that the budget could be counted in."""
    budget, account = record.spec.budget, record.account or NEW_ACCOUNT
    calls, tokens = sampling.max_calls, sampling.max_tokens
    if budget is None:
        return calls, tokens
    rest = budget.rest(account.spending.held, 0)
    if budget.max_calls is not None:
        calls = min(calls, rest.calls)
    if budget.max_tokens is not None:
        tokens = min(tokens, rest.tokens)
    if budget.max_cost is not None:
        price = tariff_of(account, model).price
        dearest = max(price.input, price.output, price.cache_write or 0.0) if price else 0.0
        affordable = int(rest.nanos * MILLION / (dearest * NANOS)) if dearest else tokens
        tokens = min(tokens, affordable) if price else 0
    return calls, tokens
