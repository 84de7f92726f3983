"""Estimates, and how the provider's numbers correct them."""

import pytest

from longhaul.agent.plain.measures import believable, corrected, outside_estimate


@pytest.mark.parametrize(
    ("estimate", "reported", "estimated", "expected"),
    [
        (300, 13_000, 10_000, 375),
        (300, 7_000, 10_000, 225),
        (300, 10_000, 10_000, 300),
        (1, 10_001, 10_000, 2),
        (0, 13_000, 10_000, 0),
    ],
)
def test_an_estimate_is_scaled_as_the_last_one_was_off(
    estimate: int, reported: int, estimated: int, expected: int
) -> None:
    assert corrected(estimate, reported, estimated) == expected


@pytest.mark.parametrize(("reported", "estimated"), [(0, 1_000), (1_000, 0), (-5, 1_000), (0, 0)])
def test_without_a_report_an_estimate_stays_as_it_is(reported: int, estimated: int) -> None:
    assert corrected(300, reported, estimated) == 300


@pytest.mark.parametrize(
    ("reported", "estimated", "expected"),
    [(30_000, 10_000, 267), (3_334, 10_000, 45), (2_000, 20, 199), (5_000, 1_000, 234), (1, 3, 100)],
)
def test_a_report_may_be_three_times_as_much_or_a_third(reported: int, estimated: int, expected: int) -> None:
    assert corrected(100, reported, estimated) == expected


@pytest.mark.parametrize(
    ("reported", "estimated"),
    [(18_383, 4_596), (4_596, 18_383), (100, 6_000), (1, 100_000), (3_333, 10_000), (32_001, 10_000), (10**9, 5)],
)
def test_a_report_that_can_not_be_believed_changes_nothing(reported: int, estimated: int) -> None:
    assert not believable(reported, estimated)
    assert corrected(100, reported, estimated) == 100


def test_what_a_provider_adds_to_a_first_short_call_hardly_changes_estimates() -> None:
    assert corrected(100, reported=400, estimated=20) == 119


def test_numbers_far_past_what_a_float_holds_stay_exact() -> None:
    assert corrected(10**30 + 1, 2 * 10**20 + 2_000, 10**20) == 2 * 10**30 + 2


@pytest.mark.parametrize(("size_bytes", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (3_000, 1_000)])
def test_text_from_outside_counts_a_token_for_three_bytes(size_bytes: int, tokens: int) -> None:
    assert outside_estimate(size_bytes) == tokens
