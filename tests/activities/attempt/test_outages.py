"""How long the pauses between the tries of a model call are, and when it is given up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.model_attempts import ProviderUnavailable, waited_out
from longhaul.activities.models.failures.retry_errors import pause_seconds

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


@pytest.mark.parametrize("ahead_hours", [-3, 0, 3])
@pytest.mark.parametrize(("waited_seconds", "is_over"), [(5, False), (1_900, True)])
async def test_how_long_was_waited_is_counted_by_the_servers_clock(
    ahead_hours: int, waited_seconds: float, *, is_over: bool
) -> None:
    started = datetime.now(UTC) - timedelta(hours=ahead_hours)
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info,
        attempt=2,
        retry_policy=replace(POLICY, maximum_attempts=0),
        scheduled_time=started - timedelta(seconds=waited_seconds),
        started_time=started,
    )

    ended = await environment.run(waited_out, ApplicationError("The tide is out."), 1_800.0)

    assert isinstance(ended, ProviderUnavailable) is not is_over
    assert ended.non_retryable is is_over
