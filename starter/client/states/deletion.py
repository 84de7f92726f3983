"""Deletes what there is of a session beside its run, its own key among it, and gives an account of what there was.

With that key, what was stored is read before.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.starter.connection.connect import Unreachable, keyring_in, opened_blobs
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import delete_session_blobs
from longhaul.stores.keys.encrypted_store import decrypted_record
from longhaul.stores.keys.keyring import KeysUnavailable
from longhaul.stores.state.store import CantReplace, SessionRecord, StateStore
from longhaul.workflows.contract import BlobGone, owner_of


async def readable(client: Client, workflow_id: str, record: SessionRecord | None) -> SessionRecord | None:
    """What was stored of the session. Raises UnreadableRecord, StoreUnavailable."""
    if record is None:
        return None
    return await decrypted_record(keyring_in(client), lambda: owner_of(client.namespace, workflow_id), record)


async def delete_key(client: Client, workflow_id: str) -> bool:
    """Whether there was one of its own; a sub-agent shares that of the session which started it. Raises Unreachable."""
    keys = keyring_in(client)
    try:
        return keys is not None and await keys.delete(owner_of(client.namespace, workflow_id))
    except KeysUnavailable as error:
        raise Unreachable(f"{error}; nothing is deleted yet") from error


def look_again(client: Client, workflow_id: str) -> None:
    """Before something is sent that may begin the session: another process may just have deleted its key."""
    if (keys := keyring_in(client)) is not None:
        keys.look_again(owner_of(client.namespace, workflow_id))


MARK_TRIES = 50
"""Of a session at work each checkpoint may come between."""
MARKS_KEPT = timedelta(days=30)
"""So long a mark is kept: longer than a server takes to delete a history, and anything that runs to end."""
OVER_DAMAGE = 1_000
"""Generation of a mark over a record that could not be read."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted of a session, as counts and flags."""

    terminated: bool
    """The session was open, and was terminated."""
    runs: int
    """Number of histories deleted from the server."""
    record: bool
    """The session's record in the state store was deleted."""
    blobs: int
    offloaded: int
    """Number of offloaded files and Redis keys deleted."""
    stream: bool = False
    """The live stream was deleted."""
    snapshots: int = 0
    """Number of workspace snapshots deleted."""
    key: bool = False
    """The session's encryption key was deleted. Copies elsewhere, as in backups, can't be read any more."""
    workspaces: tuple[str, ...] = ()
    """Folders that its tools worked in, as its workers name them. They are not deleted."""
    subagents: tuple[str, ...] = ()
    """Sessions below it, which were deleted too. The counts include them."""

    @property
    def anything(self) -> bool:
        return (
            self.terminated
            or self.record
            or self.stream
            or self.key
            or self.runs + self.blobs + self.offloaded + self.snapshots > 0
        )

    def with_subagent(self, session_id: str, done: "Deleted") -> "Deleted":
        return replace(
            self,
            runs=self.runs + done.runs,
            blobs=self.blobs + done.blobs,
            offloaded=self.offloaded + done.offloaded,
            snapshots=self.snapshots + done.snapshots,
            workspaces=tuple(dict.fromkeys((*self.workspaces, *done.workspaces))),
            subagents=(*self.subagents, session_id),
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
    """Those of runs that are over; how many there were on the server."""
    query = f"WorkflowId = '{workflow_id}'"  # ids are escaped: they hold no quote
    runs = {run.run_id async for run in client.list_workflows(query)}
    with suppress(RPCError):  # the server's index may not know the newest one yet, or that it is over
        newest = await client.get_workflow_handle(workflow_id).describe()
        if newest.status is WorkflowExecutionStatus.RUNNING:
            runs.discard(newest.run_id)  # somebody has started it again meanwhile
        else:
            runs.add(newest.run_id)
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


def mark_over(record: SessionRecord | None, user_id: str | None, agent: str, session_id: str) -> SessionRecord:
    """That the session was deleted, and when. Its place is behind all that the lives so far may write: behind the one
    that wrote the record, and one that is just beginning."""
    incarnation = record.incarnation if record is not None else OVER_DAMAGE
    return SessionRecord(
        session_id=session_id,
        user_id=user_id,
        agent_id=agent,
        incarnation=incarnation + 2,
        closed=True,
        deleted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        deleting=True,
        state=AgentState(session_id=session_id, user_id=user_id, agent=agent),
    )


async def written(store: StateStore, mark: SessionRecord, over: SessionRecord | None) -> bool:
    """Whether that was what lay there. Raises StoreError."""
    try:
        return await store.replace_session(mark, over.position() if over is not None else None)
    except CantReplace:
        return await store.save_checkpoint(mark)


async def forget_old_marks(store: StateStore, user_id: str | None) -> None:
    """Of one user: whoever deletes many sessions leaves those of the last weeks. Raises StoreError."""
    until = (datetime.now(UTC) - MARKS_KEPT).isoformat()
    for row in await store.list_sessions(user_id):
        if row.deleted_at and row.deleted_at < until:
            await store.delete_session(row.user_id, row.agent_id, row.session_id)
