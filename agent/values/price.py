"""The price of the tokens of one model."""

from datetime import date

from pydantic import Field

from longhaul.agent.plain.values import Value, sparse
from longhaul.agent.values.conversation.messages import Usage

MILLION = 1_000_000


class Price(Value):
    """Of a million tokens, in whatever money the operator counts; dollars where agents have budgets of money."""

    input: float = Field(ge=0, le=10**12)
    output: float = Field(ge=0, le=10**12)
    cached: float | None = Field(default=None, ge=0, le=10**12)
    """Of input that was read from the provider's cache; None: as other input."""
    cache_write: float | None = Field(default=None, ge=0, le=10**12)
    as_of: date | None = sparse(None)
    """When somebody has last looked them up, as 2026-11-23; and where."""
    source: str = sparse("", max_length=500)

    def of(self, usage: Usage) -> float:
        """Input tokens are given with those that were cached or are written to the cache."""
        cached, written = usage.cache_input_tokens, usage.cache_creation_input_tokens
        plain = max(usage.input_tokens - cached - written, 0)
        total = plain * self.input + usage.output_tokens * self.output
        total += cached * (self.input if self.cached is None else self.cached)
        total += written * (self.input if self.cache_write is None else self.cache_write)
        return total / MILLION
