"""Limits the activities that a worker takes: how many at once, how many in a second, and how many polls ask for them.

Without a setting all of it is as the SDK has it. Workflow tasks have limits of their own (`workflow_tasks`).
"""

from typing import Any

from temporalio.worker import (
    FixedSizeSlotSupplier,
    PollerBehavior,
    PollerBehaviorAutoscaling,
    PollerBehaviorSimpleMaximum,
    ResourceBasedSlotConfig,
    ResourceBasedSlotSupplier,
    ResourceBasedTunerConfig,
    WorkerTuner,
)

from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.workflow_tasks import TASKS_AT_ONCE

OTHER_SLOTS = 100
"""Reads within workflow tasks, and Nexus tasks: the SDK's number. Such a read ends within seconds. If it finds no slot
in time, it is made as an activity."""


def limits_of(settings: Settings, pollers: PollerBehavior | None = None) -> dict[str, Any]:
    """Arguments of a worker of the SDK, for one queue. `pollers`: in place of those that the settings name."""
    return {
        **_slots_of(settings),
        "activity_task_poller_behavior": pollers or _polls_of(settings.activity_pollers),
        "max_activities_per_second": settings.activities_per_second or None,
        # The worker's own limit counts polls alone: of each workflow task that it completes, it would begin up to three
        # activities without a poll, and without a limit. For that of the queue the SDK sees to it.
        "disable_eager_activity_execution": bool(settings.activities_per_second),
        "max_task_queue_activities_per_second": settings.queue_activities_per_second or None,
    }


def _slots_of(settings: Settings) -> dict[str, Any]:
    """Fixed numbers; or, with a target of CPU or memory, one more activity whenever the machine is below it."""
    most, cpu, memory = settings.activity_slots, settings.target_cpu, settings.target_memory
    if not cpu and not memory:
        return {"max_concurrent_workflow_tasks": TASKS_AT_ONCE, "max_concurrent_activities": most}
    # The SDK takes both or none: the whole machine stands for no target.
    targets = ResourceBasedTunerConfig(target_memory_usage=memory or 1.0, target_cpu_usage=cpu or 1.0)
    tuner = WorkerTuner.create_composite(
        # Fixed here too. After a restart an idle machine would take hundreds, and each replays a whole history.
        workflow_supplier=FixedSizeSlotSupplier(TASKS_AT_ONCE),
        activity_supplier=ResourceBasedSlotSupplier(ResourceBasedSlotConfig(maximum_slots=most), targets),
        local_activity_supplier=FixedSizeSlotSupplier(OTHER_SLOTS),
        nexus_supplier=FixedSizeSlotSupplier(OTHER_SLOTS),
    )
    return {"tuner": tuner}


def _polls_of(number: int) -> PollerBehavior:
    """So many; or, for none, from one to a hundred, as the server says that tasks wait."""
    if number:
        return PollerBehaviorSimpleMaximum(number)
    return PollerBehaviorAutoscaling()
