"""Deletes what there is of a workflow beside its run, and gives an account of what there was of a session."""

from contextlib import suppress
from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.starter.client.session_keys import delete_key
from longhaul.starter.reach.connection import opened_blobs
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import delete_session_blobs
from longhaul.workflows.contract import BlobGone


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted of a session."""

    terminated: bool
    """It was open until then."""
    runs: int
    """Histories on the server."""
    record: bool
    """In the state store."""
    blobs: int
    offloaded: int
    """Files, and keys in Redis."""
    stream: bool = False
    """The live stream."""
    snapshots: int = 0
    """Clones of the files of its workspace."""
    key: bool = False
    """What it was encrypted with: copies that lie elsewhere, as in backups, can't be read any more."""

    @property
    def anything(self) -> bool:
        return (
            self.terminated
            or self.record
            or self.stream
            or self.key
            or self.runs + self.blobs + self.offloaded + self.snapshots > 0
        )


async def delete_ended(client: Client, settings: Settings, workflow_id: str) -> None:
    """Wait until a workflow that keeps nothing else is over, and delete its key, its histories and its blobs; what
    fails on the way is done by deleting again. Raises Unreachable, BlobsUnavailable."""
    with suppress(WorkflowFailureError, BlobGone):  # ended by force, or its key is gone: it is over too
        try:
            await client.get_workflow_handle(workflow_id).result()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
    await delete_key(client, workflow_id)
    await delete_histories(client, workflow_id)
    async with opened_blobs(client, settings) as blobs:
        await delete_session_blobs(blobs, workflow_id, namespace=client.namespace)


async def delete_histories(client: Client, workflow_id: str) -> int:
    """How many there were on the server."""
    query = f"WorkflowId = '{workflow_id}'"  # ids are escaped: they hold no quote
    runs = {run.run_id async for run in client.list_workflows(query)}
    with suppress(RPCError):  # the server's index may not know the newest one yet
        runs.add((await client.get_workflow_handle(workflow_id).describe()).run_id)
    for run_id in runs:
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        try:
            await client.workflow_service.delete_workflow_execution(
                DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=execution)
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
    return len(runs)
