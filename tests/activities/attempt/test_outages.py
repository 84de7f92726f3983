"""How long the pauses between the tries of a model call are."""

from datetime import timedelta

import pytest
from temporalio.common import RetryPolicy

from longhaul.activities.models.failures.retries import pause_seconds

POLICY = RetryPolicy(initial_interval=timedelta(seconds=0.2), maximum_interval=timedelta(seconds=120))


@pytest.mark.parametrize(
    ("attempt", "told", "shortest", "longest"),
    [
        (1, 0.0, 0.1, 0.2),
        (3, 0.0, 0.4, 0.8),
        (3, 0.03, 0.4, 0.8),
        (3, 300.0, 300.0, 330.0),
        (9, 0.3, 25.6, 51.2),
        (12, 0.3, 60.0, 120.0),
        (12, 90.0, 90.0, 120.0),
        (10_000, 0.0, 60.0, 120.0),
    ],
)
def test_a_pause_is_the_longer_of_what_is_asked_for_and_the_growing_one(
    attempt: int, told: float, shortest: float, longest: float
) -> None:
    pauses = {pause_seconds(attempt, told, POLICY) for _ in range(200)}

    assert shortest <= min(pauses)
    assert max(pauses) <= longest
    assert len(pauses) > 100, "calls that failed together come back together"
