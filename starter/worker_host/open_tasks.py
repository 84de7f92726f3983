"""Asks the server whether a worker's own task of a run is done, and whether the run is over."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowExecutionStatus

Answer = TypeVar("Answer")
LONGEST = timedelta(seconds=1)
"""The SDK fails a workflow task that takes two seconds of its thread."""
NEWEST_EVENTS = 24
"""That are looked through for a task's end: behind it stands what it has started."""


class OpenTasks:
    """For `workflows.unbegun_task_guard`: to be made on the loop of the client, and asked from the threads in which
    workflows run."""

    def __init__(self, client: Client, identity: str) -> None:
        self._client = client
        self._identity = identity
        self._loop = asyncio.get_running_loop()

    def decided(self, workflow_id: str, run_id: str, started_event: int) -> bool:
        """True: the task that began with this event was completed by the worker with this identity. False: it was not,
        or the server did not say."""
        run = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        return self._ask(self._completed_by(run, started_event)) == self._identity

    def over(self, workflow_id: str, run_id: str) -> bool:
        """True: the run has ended, for good. False: it has not, or the server did not say."""
        status = self._ask(self._status(workflow_id, run_id))
        return status not in (None, WorkflowExecutionStatus.RUNNING)

    def _ask(self, asking: Coroutine[Any, Any, Answer]) -> Answer | None:
        asked = asyncio.run_coroutine_threadsafe(asking, self._loop)
        try:
            return asked.result(LONGEST.total_seconds())
        except Exception:  # noqa: BLE001  whatever went wrong, the server has not said it
            asked.cancel()
            return None

    async def _completed_by(self, run: WorkflowExecution, started_event: int) -> str:
        """Identity of the worker; empty for a task that is open, or too long ago. Raises RPCError."""
        newest = await self._client.workflow_service.get_workflow_execution_history_reverse(
            GetWorkflowExecutionHistoryReverseRequest(
                namespace=self._client.namespace, execution=run, maximum_page_size=NEWEST_EVENTS
            ),
            timeout=LONGEST,
        )
        ends = [event for event in newest.history.events if event.event_id == started_event + 1]
        return ends[0].workflow_task_completed_event_attributes.identity if ends else ""

    async def _status(self, workflow_id: str, run_id: str) -> WorkflowExecutionStatus | None:
        """Raises RPCError."""
        run = self._client.get_workflow_handle(workflow_id, run_id=run_id)
        return (await run.describe(rpc_timeout=LONGEST)).status
