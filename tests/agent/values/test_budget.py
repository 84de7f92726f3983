"""Sums of a budget: what may be set, what is put aside and spent, and that each reservation counts once."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.values.budget import LIMITS, Amount, Budget, Price, Raise, Spending, Tariff, limit_text
from longhaul.agent.values.conversation.messages import Usage

AMOUNTS = st.builds(Amount, tokens=st.integers(0, 10_000), nanos=st.integers(0, 10**10), calls=st.integers(0, 3))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1 (it is 0)"),
        ({"max_cost": 0}, "max_cost: Input should be greater than 0 (it is 0)"),
        ({"max_cost": 2e6}, "max_cost: Input should be less than or equal to 1000000 (it is 2000000.0)"),
        ({"max_cost": float("inf")}, "max_cost: Input should be a finite number (it is inf)"),
        ({"max_cost": 1, "currency": "EUR"}, "currency: Input should be 'USD' (it is 'EUR')"),
        ({"max_calls": -3}, "max_calls: Input should be greater than or equal to 1 (it is -3)"),
        (
            {"max_steps": 1.5},
            "max_steps: Input should be a valid integer, got a number with a fractional part (it is 1.5)",
        ),
        ({"max_seconds": "an hour"}, "max_seconds: Input should be a valid number, unable to parse string as a number"),
        (
            {"max_calls": 1, "on_exhaustion": "beg"},
            "on_exhaustion: Input should be 'ask', 'stop' or 'summarise' (it is",
        ),
        ({"max_calls": 1, "max_euros": 4}, "max_euros: Extra inputs are not permitted (it is 4)"),
        ({"on_exhaustion": "stop"}, "it has no limit; set one of max_tokens, max_cost, max_calls, max_steps, max_seco"),
    ],
)
def test_a_budget_that_can_t_be_is_refused_by_field_and_value(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Budget.model_validate(given)

    assert told in what_is_wrong(refused.value)


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_is_raised_by_so_much_and_no_other(name: str) -> None:
    budget = Budget.model_validate({f"max_{each}": 10 for each in LIMITS})

    raised = budget.raised(Raise.model_validate({name: 3})).told()

    assert raised == {**budget.told(), name: 13}
    with pytest.raises(ValueError, match=f"{name}: the budget has no limit of it; there is one of (tokens|calls)"):
        Budget.model_validate({"max_calls" if name == "tokens" else "max_tokens": 1}).raised(
            Raise.model_validate({name: 3})
        )


def test_ten_times_ten_cents_are_a_dollar() -> None:
    budget = Budget(max_cost=1)

    for _ in range(10):
        budget = budget.raised(Raise(cost=0.1))

    assert budget.max_cost == 2


def test_a_call_costs_what_its_tokens_cost_and_at_most_what_they_may() -> None:
    tariff = Tariff(output_tokens=1_000, price=Price(input=3, output=15, cached=0.3, cache_write=3.75))
    usage = Usage(input_tokens=1_200, output_tokens=400, cache_input_tokens=800, cache_creation_input_tokens=100)

    assert tariff.of(usage) == Amount(tokens=1_600, nanos=7_515_000, calls=1)
    assert Decimal(7_515_000) / 10**9 == Decimal("0.007515") == (300 * 3 + 800 * Decimal("0.3") + 375 + 6_000) / 10**6
    assert tariff.at_most(1_200, 500) == Amount(tokens=2_200, nanos=19_500_000, calls=1)
    assert tariff.at_most(1_200, 2_000).tokens == 3_200


def test_numbers_are_shown_with_their_units() -> None:
    assert [
        limit_text("cost", 0.0042),
        limit_text("cost", 1234.5),
        limit_text("calls", 1),
        limit_text("tokens", 1200),
    ] == [
        *("$0.0042", "$1,234.50", "1 call", "1,200 tokens"),
    ]
    assert [limit_text("steps", 2), limit_text("seconds", 3600.4)] == ["2 steps", "3,600 s"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), AMOUNTS, st.integers(0, 2)), max_size=30))
def test_a_reservation_is_settled_once_whoever_settles_it_how_often(
    acts: list[tuple[str, bool, Amount, int]],
) -> None:
    spending, held, spent, doubtful = Spending(), dict[str, Amount](), Amount(), Amount()
    for key, reserves, amount, lost in acts:
        if reserves and key not in held:
            spending, held = spending.reserve(key, amount), {**held, key: amount}
        elif not reserves:
            if key in held:
                lost_for = held.pop(key).times(lost)
                spent, doubtful = spent + amount + lost_for, doubtful + lost_for
            spending = spending.settle(key, amount, lost)

        assert (spending.spent, spending.doubtful, spending.reserved) == (spent, doubtful, held)
        assert Spending.model_validate_json(spending.model_dump_json()) == spending


@given(
    st.integers(1, 50_000),
    st.lists(st.tuples(st.integers(1, 9_000), st.floats(0, 1), st.booleans()), max_size=40),
)
def test_calls_side_by_side_never_spend_more_than_was_put_aside(
    limit: int, calls: list[tuple[int, float, bool]]
) -> None:
    """As of children that draw on one sum: what is under way counts before it has ended."""
    spending = Spending()
    for number, (needs, share, ends_first) in enumerate(calls):
        if (spending.held + Amount(tokens=needs)).tokens <= limit:
            spending = spending.reserve(str(number), Amount(tokens=needs))
        if spending.reserved and ends_first:
            key, put_aside = next(iter(spending.reserved.items()))
            spending = spending.settle(key, Amount(tokens=int(put_aside.tokens * share)))

        assert spending.held.tokens <= limit
    for key, put_aside in spending.reserved.items():
        spending = spending.settle(key, put_aside)
    assert spending.spent.tokens <= limit
    assert spending.reserved == {}
