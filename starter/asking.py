"""Queries to one session, and what its silence means."""

from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from starter.patience import insist

Answer = TypeVar("Answer")
QUERY_TIMEOUT = timedelta(seconds=5)
LOOK_BACK_EVENTS = 20


class NoSession(Exception):
    """Nobody has sent this session a message yet, or it is closed."""


class Stuck(Exception):
    """The session can't go on until somebody mends what the sentence names; then it does so by itself."""


class Asking:
    """One session's queries."""

    def __init__(self, client: Client, workflow_id: str, named: str) -> None:
        self.client = client
        self._workflow_id = workflow_id
        self._named = named
        """As in `session 'x' of agent 'y'`."""

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(self._workflow_id)

    async def query(self, name: str, answer: type[Answer], *arguments: Any) -> Answer:
        """Ask until an answer comes. Raises NoSession, and what time does not mend."""
        try:
            found: Answer = await insist(
                lambda: self.handle.query(name, args=list(arguments), result_type=answer, rpc_timeout=QUERY_TIMEOUT)
            )
        except RPCError as error:
            raise await self.explained(error) from error
        return found

    async def _why_stuck(self) -> str:
        """What its last task failed with."""
        newest = await self.client.workflow_service.get_workflow_execution_history_reverse(
            GetWorkflowExecutionHistoryReverseRequest(
                namespace=self.client.namespace,
                execution=WorkflowExecution(workflow_id=self._workflow_id),
                maximum_page_size=LOOK_BACK_EVENTS,
            )
        )
        failed = [
            event.workflow_task_failed_event_attributes.failure.message
            for event in newest.history.events
            if event.HasField("workflow_task_failed_event_attributes")
        ]
        return failed[0] if failed else "its worker fails, and its history does not say why; look into the worker's log"

    async def was_there(self) -> bool:
        """Whether the server knows of a session of this name, open or closed."""
        try:
            await self.handle.describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    async def explained(self, error: RPCError) -> Exception:
        """What an answer of the server means for whoever asked this session: NoSession, Stuck, or the error itself."""
        if error.status is RPCStatusCode.FAILED_PRECONDITION:
            return Stuck(f"the {self._named} can't go on: {await self._why_stuck()}")
        if error.status is RPCStatusCode.NOT_FOUND:
            return NoSession(f"there is no open {self._named}")
        return error
