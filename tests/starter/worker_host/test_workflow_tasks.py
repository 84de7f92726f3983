"""What a worker says when more tasks come than it can end."""

from datetime import timedelta

import pytest
from temporalio.common import MetricMeter

from longhaul.starter.connection.pollers import Backlog
from longhaul.starter.worker_host.workflow_tasks import SAY_AGAIN_SECONDS, FallingBehind

EMPTY = Backlog(0, timedelta())
SHORT = Backlog(90, timedelta(seconds=2))
LATE = Backlog(37, timedelta(seconds=42))
LATER = Backlog(51, timedelta(seconds=99))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return lines


def test_that_tasks_wait_too_long_is_said_at_once_then_once_a_minute_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    behind = FallingBehind("orders", MetricMeter.noop, clock)

    behind.seen("workflow", SHORT)
    assert told(caplog) == []
    behind.seen("workflow", LATE)
    (first,) = told(caplog)
    assert "'orders' fall behind: 37 workflow tasks wait, the oldest for 42 s" in first
    clock.now += SAY_AGAIN_SECONDS - 1
    behind.seen("workflow", LATER)
    assert told(caplog) == []
    clock.now += 1
    behind.seen("workflow", LATER)
    assert ["51 workflow tasks wait, the oldest for 99 s" in line for line in told(caplog)] == [True]
    behind.seen("workflow", EMPTY)
    assert told(caplog) == ["workflow tasks of the queue 'orders' are no longer late"]
    behind.seen("workflow", EMPTY)
    assert told(caplog) == []


def test_workflows_and_activities_are_behind_each_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    behind = FallingBehind("orders", MetricMeter.noop, Clock())

    behind.seen("workflow", LATE)
    behind.seen("activity", LATE)
    assert ["workflow tasks" in line for line in told(caplog)] == [True, False]
    behind.seen("activity", EMPTY)
    assert told(caplog) == ["activity tasks of the queue 'orders' are no longer late"]
