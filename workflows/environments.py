"""A workflow that asks one worker what it has around it, for `longhaul doctor`. It lives for a moment."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from longhaul.activities.contract import TELL_ENVIRONMENT, WorkerEnvironment
    from longhaul.workflows.contract import ENVIRONMENT


@workflow.defn(name=ENVIRONMENT)
class EnvironmentQuestion:
    """Any worker of the task queue answers."""

    @workflow.run
    async def run(self) -> WorkerEnvironment:
        told: WorkerEnvironment = await workflow.execute_activity(
            TELL_ENVIRONMENT,
            result_type=WorkerEnvironment,
            schedule_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        return told
