"""Estimates, and how the provider's numbers correct them."""

import pytest

from agent.tokens import corrected, outside_estimate


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
    ("reported", "expected"),
    [(1, 25), (23_500, 25), (24_500, 26), (100_000, 100), (400_000, 395), (406_000, 400), (9_000_000, 400)],
)
def test_a_report_changes_an_estimate_by_a_factor_of_four_at_most(reported: int, expected: int) -> None:
    assert corrected(100, reported, 100_000) == expected


def test_what_a_provider_adds_to_a_first_short_call_hardly_changes_estimates() -> None:
    assert corrected(100, reported=400, estimated=20) == 119


def test_numbers_far_past_what_a_float_holds_stay_exact() -> None:
    assert corrected(10**30 + 1, 3 * 10**20 + 4_000, 10**20) == 3 * 10**30 + 3


@pytest.mark.parametrize(("size_bytes", "tokens"), [(0, 0), (1, 1), (3, 1), (4, 2), (3_000, 1_000)])
def test_text_from_outside_counts_a_token_for_three_bytes(size_bytes: int, tokens: int) -> None:
    assert outside_estimate(size_bytes) == tokens
