"""One scheduled run of a schedule: asks a session, once, and says which. It lives for a moment; the session for its
reply.

A workflow that asks one worker what it has around it, for `longhaul doctor`. It lives for a moment.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from longhaul.activities.contract import REQUEST
    from longhaul.agent.values.scheduled_request import Requested, ScheduledRequest, ScheduledRun
    from longhaul.workflows.contract import SCHEDULED

_DUE_AT = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""Set by the server."""
TRIES = 100
"""With pauses of up to a minute: a session that can't be reached for so long holds the next scheduled runs up no
longer."""


@workflow.defn(name=SCHEDULED)
class ScheduledRequestRun:
    """Started by the server, whose id for it names the scheduled run. So one that is tried again asks for the same
    reply."""

    @workflow.run
    async def run(self, request: ScheduledRequest) -> Requested:
        info = workflow.info()
        due = info.typed_search_attributes.get(_DUE_AT) or info.start_time
        scheduled_run = ScheduledRun(
            request=request,
            request_id=info.workflow_id,
            at=round(due.timestamp() * 1000),
            before=workflow.get_last_completion_result(Requested),
        )
        requested: Requested = await workflow.execute_activity(
            REQUEST,
            scheduled_run,
            result_type=Requested,
            summary=f"ask for what schedule {request.schedule!r} wants",
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=60), maximum_attempts=TRIES),
        )
        return requested


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
