"""How much a worker takes on at once and in a second, as its settings say."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import (
    FixedSizeSlotSupplier,
    PollerBehaviorAutoscaling,
    PollerBehaviorSimpleMaximum,
    ResourceBasedSlotConfig,
    ResourceBasedSlotSupplier,
    ResourceBasedTunerConfig,
    WorkerTuner,
)

from longhaul.starter.settings import BadVariable
from longhaul.starter.worker_host.activity_slots import limits_of
from longhaul.testing import settings_for
from tests.workflows.conftest import Stage
from tests.workflows.slot_tools import SHIFTS, TOOLS, Shift

CALLS = 8


async def worked(stage: Stage, seconds: float, **settings: Any) -> Shift:
    """A shift of so many calls of one turn, which may run side by side, on a worker with these settings."""
    served = stage.with_settings(tools=TOOLS, **settings)
    call = {"name": "toil", "input": {"shift": stage.name, "seconds": seconds}}
    turn = {"tool_calls": [{"id": f"t{number}", **call} for number in range(CALLS)]}
    session = served.session(turn, {"text": "Done."}, tools=("toil",), permission={"mode": "bypass"})
    async with served.another_worker():
        await session.reply("Go")
    return SHIFTS[stage.name]


@pytest.mark.server
async def test_a_worker_takes_no_more_calls_at_once_than_it_has_slots(unserved: Stage) -> None:
    done = await worked(unserved, 1, activity_slots=3)

    assert (done.most, len(done.started)) == (3, CALLS)


@pytest.mark.server
async def test_on_a_machine_above_its_target_calls_are_made_one_by_one(unserved: Stage) -> None:
    done = await worked(unserved, 0.3, target_memory=0.0001)

    assert (done.most, len(done.started)) == (1, CALLS)


@pytest.mark.server
@pytest.mark.parametrize("limit", ["activities_per_second", "queue_activities_per_second"])
async def test_no_more_calls_begin_in_a_second_than_the_limit(unserved: Stage, limit: str) -> None:
    done = await worked(unserved, 0, activity_pollers=1, **{limit: 2.0})

    # One may have been allowed before the first of them came, and one is cut off at each end.
    assert done.started[-1] - done.started[0] > (CALLS - 2) / 2.0


def test_without_a_setting_a_worker_is_as_it_was(tmp_path: Path) -> None:
    assert limits_of(settings_for(tmp_path)) == {
        "max_concurrent_workflow_tasks": 8,
        "max_concurrent_activities": 100,
        "activity_task_poller_behavior": PollerBehaviorSimpleMaximum(5),
        "max_activities_per_second": None,
        "disable_eager_activity_execution": False,
        "max_task_queue_activities_per_second": None,
    }


def test_a_target_is_of_activities_alone_and_their_slots_are_the_most(tmp_path: Path) -> None:
    limits = limits_of(settings_for(tmp_path, target_cpu=0.8, activity_slots=40, activity_pollers=0))

    activities = ResourceBasedSlotSupplier(
        ResourceBasedSlotConfig(maximum_slots=40),
        ResourceBasedTunerConfig(target_memory_usage=1.0, target_cpu_usage=0.8),
    )
    assert limits["tuner"] == WorkerTuner.create_composite(
        workflow_supplier=FixedSizeSlotSupplier(8),
        activity_supplier=activities,
        local_activity_supplier=FixedSizeSlotSupplier(100),
        nexus_supplier=FixedSizeSlotSupplier(100),
    )
    assert limits["activity_task_poller_behavior"] == PollerBehaviorAutoscaling()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("activity_slots", 0), ("target_cpu", 80), ("activity_pollers", -1), ("activities_per_second", -1)],
)
def test_a_number_that_can_not_be_meant_is_refused_by_its_name(tmp_path: Path, setting: str, value: Any) -> None:
    with pytest.raises(BadVariable, match=rf"^{setting}: .*\(it is {value}\); set another value, or leave it out"):
        settings_for(tmp_path, **{setting: value})
