"""Sums of what model calls take, by session and by model, and the keys under which a session puts some aside for its
sub-agents.

The price of the tokens of one model.

Sums of a budget: the limits of a session, its spending, and reservations for calls under way.

Money is counted in billionths of a dollar, so that it adds up to the cent in whatever order. `Spending` knows of no
session: each reservation has a key, so that one sum can hold those of several.
"""

from collections.abc import Iterator
from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from longhaul.agent.plain.values import Many, OpenValue, Value, sparse
from longhaul.agent.values.conversation.messages import Usage

NANOS = 1_000_000_000
GIVEN_BACK = "given back"
"""Of what a sub-agent had left when its task ended: whoever started it may spend it now."""


def child_key(call_id: str) -> str:
    """Of what is put aside for the sub-agent of that call."""
    return f"sub-agent {call_id}"


class Amount(OpenValue):
    """What model calls take."""

    tokens: int = sparse(0, ge=0)
    nanos: int = sparse(0, ge=0)
    """Billionths of a dollar; 0 where nobody asks what it costs."""
    calls: int = sparse(0, ge=0)
    steps: int = sparse(0, ge=0)
    """Of sub-agents; a session's own are in its `Account`."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            tokens=self.tokens + other.tokens,
            nanos=self.nanos + other.nanos,
            calls=self.calls + other.calls,
            steps=self.steps + other.steps,
        )

    def times(self, number: int) -> "Amount":
        return Amount(
            tokens=self.tokens * number,
            nanos=self.nanos * number,
            calls=self.calls * number,
            steps=self.steps * number,
        )

    def of(self, name: Literal["tokens", "cost", "calls", "steps"]) -> float:
        return {"tokens": self.tokens, "cost": self.nanos / NANOS, "calls": self.calls, "steps": self.steps}[name]


NOTHING = Amount()


class ModelSpent(OpenValue):
    """Of all its calls whose end was heard of; or of those that were lost, as estimated."""

    calls: int = 0
    usage: Usage = Usage()
    nanos: int = sparse(0)
    """Billionths of a dollar; 0 where nobody knows its price, or the session has no budget."""


NOTHING_SPENT = ModelSpent()


class CallsBefore(OpenValue):
    """Calls of models by the session that this one is a copy of: a scripted model answers by their number, and the ids
    of tool calls are made of it, so a copy counts on from there."""

    replies: int = sparse(0, ge=0, le=10**9)
    summaries: int = sparse(0, ge=0, le=10**9)
    analyses: int = sparse(0, ge=0, le=10**9)
    samples: int = sparse(0, ge=0, le=10**9)


NO_CALLS_BEFORE = CallsBefore()


def bounded(amount: Amount) -> Amount:
    """One that somebody else tells. Raises ValueError where it has more digits than a budget can count with."""
    for name in ("tokens", "nanos", "calls", "steps"):
        if getattr(amount, name) > 10**18:
            raise ValueError(f"{name}: more than 10^18")
    return amount


MILLION = 1_000_000


class Rates(Value):
    """Prices of a million tokens in one call."""

    input: float = Field(ge=0, le=10**12)
    """Price of input tokens."""
    output: float = Field(ge=0, le=10**12)
    """Price of output tokens."""
    cached: float | None = Field(default=None, ge=0, le=10**12)
    """Price of input that the provider reads from its cache. None: as other input."""
    cache_write: float | None = Field(default=None, ge=0, le=10**12)
    """Price of input that the provider writes to its cache. None: as other input."""
    cache_write_1h: float | None = sparse(None, ge=0, le=10**12)
    """Price of input that the provider caches for an hour. None: as `cache_write`."""

    def cost(self, usage: Usage) -> float:
        """Input tokens are given with those that were cached or are written to the cache."""
        cached, written = usage.cache_input_tokens, usage.cache_creation_input_tokens
        hour = min(usage.cache_creation_1h_input_tokens, written)
        plain = max(usage.input_tokens - cached - written, 0)
        write = self.input if self.cache_write is None else self.cache_write
        total = plain * self.input + usage.output_tokens * self.output + (written - hour) * write
        total += cached * (self.input if self.cached is None else self.cached)
        total += hour * (write if self.cache_write_1h is None else self.cache_write_1h)
        return total / MILLION


class HigherRates(Rates):
    """Prices for a call with longer input; they count for the whole call."""

    tokens: int = Field(ge=1, le=10**12)
    """Input tokens above which a call has these prices, for all of its tokens."""


class Price(Rates):
    """Prices of a million tokens, in any currency; US dollars if agents have budgets in money."""

    above: Many[HigherRates] = sparse((), max_length=10)
    as_of: date | None = sparse(None)
    """Day on which somebody last looked up the prices, such as 2026-11-23."""
    source: str = sparse("", max_length=500)
    """Where the prices were found."""

    def rates(self, input_tokens: int) -> Rates:
        """Those of one call with so much input."""
        higher = [each for each in self.above if input_tokens > each.tokens]
        return max(higher, key=lambda each: each.tokens) if higher else self

    def of(self, usage: Usage) -> float:
        """Of one call: of the sum of several the higher rates would be read wrongly."""
        return self.rates(usage.input_tokens).cost(usage)


MOST = 10**15

LimitName = Literal["tokens", "cost", "calls", "steps", "seconds"]
LIMITS: tuple[LimitName, ...] = ("tokens", "cost", "calls", "steps", "seconds")
End = Literal["", "stop", "summarise"]


class Budget(Value):
    """Limits of one session, over all of its replies. A limit that is not set does not exist."""

    max_tokens: int | None = sparse(None, ge=1, le=MOST)
    """Input and output tokens, cached ones included, also of summaries and risk analyses by a model."""
    max_cost: float | None = sparse(None, gt=0, le=1e6, allow_inf_nan=False)
    """Cost by the workers' prices. A model without a price is not called."""
    currency: Literal["USD"] = sparse("USD")
    max_calls: int | None = sparse(None, ge=1, le=MOST)
    """Model calls."""
    max_steps: int | None = sparse(None, ge=1, le=MOST)
    """Steps: model calls with all of their results."""
    max_seconds: float | None = sparse(None, gt=0, le=1e9, allow_inf_nan=False)
    """Seconds of wall-clock time of replies. Waiting for people counts; waiting for budget does not. Longhaul checks it
    before each model call, and never ends a running call."""
    on_exhaustion: Literal["ask", "stop", "summarise"] = sparse("ask")
    """`ask`: the reply waits until somebody raises a limit or ends it. `stop`: the reply ends. `summarise`: the reply
    ends with a last model call that says what is done; the budget reserves room for that call."""

    @model_validator(mode="after")
    def _limits_something(self) -> "Budget":
        if not any(self.limits()):
            raise ValueError(f"it has no limit; set one of {', '.join(f'max_{name}' for name in LIMITS)}")
        return self

    def limit(self, name: LimitName) -> float | None:
        return {
            "tokens": self.max_tokens,
            "cost": self.max_cost,
            "calls": self.max_calls,
            "steps": self.max_steps,
            "seconds": self.max_seconds,
        }[name]

    def limits(self) -> Iterator[tuple[LimitName, float]]:
        """Those that are set."""
        for name in LIMITS:
            if (limit := self.limit(name)) is not None:
                yield name, limit

    def rest(self, held: Amount, steps: int) -> Amount:
        """What is left of the limits that sums are put aside of; 0 of those that are not set. `steps`: the session's
        own."""
        nanos = 0 if self.max_cost is None else round(self.max_cost * NANOS) - held.nanos
        return Amount(
            tokens=max((self.max_tokens or 0) - held.tokens, 0),
            nanos=max(nanos, 0),
            calls=max((self.max_calls or 0) - held.calls, 0),
            steps=max((self.max_steps or 0) - held.steps - steps, 0),
        )

    def told(self) -> dict[str, float]:
        return {name: limit for name, limit in self.limits()}  # noqa: C416  by plain strings

    def raised(self, by: "Raise") -> "Budget":
        """ValueError for a limit that is not set, or that would be too high."""
        changed: dict[str, float] = {}
        for name, more in by.given():
            limit = self.limit(name)
            if limit is None:
                limits = ", ".join(known for known, _ in self.limits())
                raise ValueError(f"{name}: the budget has no limit of it; there is one of {limits}")
            # In billionths: a budget that is raised ten times by ten cents has one dollar more.
            changed[f"max_{name}"] = round((limit + more) * NANOS) / NANOS if name == "cost" else limit + more
        return Budget.model_validate({**self.model_dump(), **changed})


class Raise(Value):
    """Amounts to add to the limits."""

    tokens: int | None = sparse(None, ge=1, le=MOST)
    cost: float | None = sparse(None, gt=0, le=1e6, allow_inf_nan=False)
    calls: int | None = sparse(None, ge=1, le=MOST)
    steps: int | None = sparse(None, ge=1, le=MOST)
    seconds: float | None = sparse(None, gt=0, le=1e9, allow_inf_nan=False)

    def given(self) -> Iterator[tuple[LimitName, float]]:
        of: dict[LimitName, float | None] = {
            "tokens": self.tokens,
            "cost": self.cost,
            "calls": self.calls,
            "steps": self.steps,
            "seconds": self.seconds,
        }
        for name, more in of.items():
            if more is not None:
                yield name, more


class Spending(OpenValue):
    """What was spent, and what is put aside. A reservation is settled once: settling it again changes nothing."""

    spent: Amount = sparse(NOTHING)
    """With what is doubtful."""
    doubtful: Amount = sparse(NOTHING)
    """Of attempts that were lost or cut short, which a provider may have billed: counted as they were estimated."""
    reserved: dict[str, Amount] = sparse({})
    """By key."""

    @property
    def held(self) -> Amount:
        """Spent and put aside."""
        return sum(self.reserved.values(), self.spent)

    def reserve(self, key: str, amount: Amount) -> "Spending":
        return self.model_copy(update={"reserved": {**self.reserved, key: amount}})

    def settle(self, key: str, used: Amount, lost: int = 0, doubtful: Amount = NOTHING) -> "Spending":
        """`used`: what was reported, with what is doubtful of it. `lost`: attempts beside it that may have been
        billed."""
        amount = self.reserved.get(key)
        if amount is None:
            return self
        gone = amount.times(lost)
        return Spending(
            spent=self.spent + used + gone,
            doubtful=self.doubtful + gone + doubtful,
            reserved={other: held for other, held in self.reserved.items() if other != key},
        )

    def add(self, used: Amount) -> "Spending":
        """What nothing was put aside for."""
        return self.model_copy(update={"spent": self.spent + used})


class Tariff(OpenValue):
    """What a worker knows of a model before it is called."""

    output_tokens: int = 0
    """The most that it writes at a call, thoughts included."""
    price: Price | None = sparse(None)

    def of(self, usage: Usage) -> Amount:
        """What a call took."""
        nanos = 0 if self.price is None else round(self.price.of(usage) * NANOS)
        return Amount(tokens=usage.input_tokens + usage.output_tokens, nanos=nanos, calls=1)

    def at_most(self, input_tokens: int, output_tokens: int) -> Amount:
        """What a call may take that reads so much: at the price of what is written to a cache, if that is dearer."""
        written = max(output_tokens, self.output_tokens)
        nanos = 0
        if self.price is not None:
            rates = self.price.rates(input_tokens)
            dearest = max(rates.input, rates.cache_write or 0.0, rates.cache_write_1h or 0.0)
            nanos = round((input_tokens * dearest + written * rates.output) / MILLION * NANOS)
        return Amount(tokens=input_tokens + written, nanos=nanos, calls=1)


UNKNOWN_TARIFF = Tariff()


class Lack(OpenValue):
    """A limit that the next call would pass."""

    name: LimitName
    limit: float
    held: float
    """Spent and put aside."""
    needs: float = sparse(0.0)
    """What the next call may take."""

    def told(self) -> str:
        needs = f", and the next call may take {limit_text(self.name, self.needs)}" if self.needs else ""
        return f"{limit_text(self.name, self.held)} of {limit_text(self.name, self.limit)}{needs}"


def limit_text(name: LimitName, number: float) -> str:
    """For a person: `$0.42`, `1,200 tokens`, `3 calls`."""
    if name == "cost":
        if 0 < number < 0.0001:
            return f"${number:.9f}".rstrip("0")
        return f"${number:,.2f}" if number >= 1 else f"${number:.4f}"
    if name == "seconds":
        return f"{number:,.0f} s"
    return f"{number:,.0f} {name if number != 1 else name[:-1]}"


class BudgetQuestion(OpenValue):
    """That a reply waits for more budget."""

    at: int
    """Milliseconds since 1970."""
    lacks: tuple[Lack, ...]

    @property
    def why(self) -> str:
        return "; ".join(lack.told() for lack in self.lacks)


class Account(OpenValue):
    """How a session stands with its budget."""

    spending: Spending = sparse(Spending())
    open: str = sparse("")
    """Key of what is put aside for the call that is under way or next."""
    model: str = sparse("")
    """The model of that call, as the agent names it."""
    tariffs: dict[str, Tariff] = sparse({})
    """By the agent's names of its models."""
    steps: int = sparse(0, ge=0)
    """Of the replies that have ended."""
    ms: int = sparse(0, ge=0)
    """How long they took, in milliseconds, without what they waited for budget."""
    waited_ms: int = sparse(0, ge=0)
    """So long the reply that is being made has waited for budget."""
    question: BudgetQuestion | None = sparse(None)
    end: End = sparse("")
    """How the reply that is being made is to end."""
    closed: bool = sparse(False)
    """It has started its last call."""
    handled: tuple[str, ...] = sparse(())
    """Ids of the newest changes, so that one sent again changes nothing."""


KEPT_CHANGES = 100
NEW_ACCOUNT = Account()
