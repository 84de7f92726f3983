"""Counts what a model was asked in the name of an MCP server, whatever became of the call that it was asked in."""

from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.values.spec.mcp_sampling import Sampled


def count(ledger: Ledger, sampled: Sampled | None) -> None:
    """What each model has used, and what the budget has left, `amounts` and `budget` say."""
    if sampled is not None:
        ledger.current.usage, ledger.spent.usage = (
            ledger.current.usage + sampled.usage,
            ledger.spent.usage + sampled.usage,
        )
        ledger.spent.samples += sampled.calls
