"""Finds what there is of a session beside its run: its record in the state store, its blobs, its offloaded text, its
key; and copies the whole outputs that a state names for another session.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.cards import card_of, children_of
from longhaul.starter.client.reading.queries import SILENCES, SILENT_SECONDS, NoSession, PastSession, Stuck
from longhaul.starter.client.states.deletion import (
    MARK_TRIES,
    Deleted,
    delete_histories,
    delete_key,
    forget_old_marks,
    look_again,
    mark_over,
    readable,
    written,
)
from longhaul.starter.client.wire import Refused, start_of
from longhaul.starter.connection.connect import Unreachable, keyring_in, opened_blobs
from longhaul.starter.connection.query_retries import Pauses
from longhaul.starter.connection.storage_places import why_another_store, why_other_blobs
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line
from longhaul.stores.blobs.blobs import BlobsUnavailable, NoBlob, delete_session_blobs, session_prefix
from longhaul.stores.keys.encrypted_store import UnreadableRecord
from longhaul.stores.offload.local_workspace import forget_files
from longhaul.stores.offload.session_blobs import POINTER, SessionBlobs, digits_in, named_in
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import (
    NO_AGENT,
    BadStoreSetting,
    DamagedRecord,
    SessionRecord,
    SessionRow,
    StateStore,
    StoreError,
    carried_of,
)
from longhaul.stores.streams.open_streams import open_streams
from longhaul.stores.streams.streams import BadStreamsSetting, StreamsUnavailable, key_of
from longhaul.stores.worktrees.snapshots import forget
from longhaul.workflows.contract import WORKFLOW


class KeepsOutputs(Protocol):
    """A session, as far as it keeps outputs."""

    def outputs(self) -> AbstractAsyncContextManager[SessionBlobs]:
        """Raises Unreachable."""
        ...


async def with_own_outputs(state: AgentState, first: KeepsOutputs, copy: KeepsOutputs) -> tuple[AgentState, str]:
    """The state, in which outputs of the first session are named as they lie among the copy's blobs; and a sentence for
    a person about those that could not be copied. What only quotes a name, or was lost, stays as it is."""
    text = state.model_dump_json()
    wanted, lost = named_in(text.encode()), dict[str, str]()
    if not wanted:
        return state, ""
    try:
        async with first.outputs() as there, copy.outputs() as here:
            await here.begin()
            for digits in wanted:
                try:
                    text = text.replace(POINTER + digits, await here.take_over(there, digits))
                except NoBlob:
                    continue
                except (BlobsUnavailable, ValueError) as error:
                    lost[digits] = str(error)
    except (Unreachable, BlobsUnavailable) as error:
        lost = dict.fromkeys(wanted, str(error))
    why = f"{_outputs(len(lost))} could not be copied: {one_line(next(iter(lost.values())))}" if lost else ""
    return AgentState.model_validate_json(text), why


async def outputs_elsewhere(state: AgentState, taker: KeepsOutputs) -> str:
    """A sentence for a person about whole outputs that the taker of a state does not have; empty where it has all. They
    are not fetched: a state may name what belongs to others."""
    results = (result for message in state.context for result in message.get_tool_results())
    wanted = {digits for result in results if (digits := digits_in(result.get_text()))}
    if not wanted:
        return ""
    try:
        async with taker.outputs() as own:
            lacks = wanted - await own.known()
    except (Unreachable, BlobsUnavailable) as error:
        return f"whether {_outputs(len(wanted))} can be read here is unknown: {one_line(str(error))}"
    if not lacks:
        return ""
    return f"{_outputs(len(lacks))} cannot be read here: left in the blobs of the session that made them"


def _outputs(count: int) -> str:
    return f"{count} whole output{'' if count == 1 else 's'}"


class FoundState(NamedTuple):
    """A state, and what may be missing from it."""

    state: AgentState
    note: str = ""


class StoredCopies(NamedTuple):
    """What there was of a session when its deletion was marked."""

    open: WorkflowExecutionDescription | None
    mark: SessionRecord | None
    record: bool


class StoppedSession(NamedTuple):
    """A session that is being deleted: it is marked so, and does not run any more."""

    kept: "Kept"
    found: StoredCopies
    terminated: bool
    workspace: str
    """The folder that its tools worked in; empty where nobody has said."""


def _may_lack(seq: int) -> str:
    return (
        f"this is the checkpoint of entry {seq}: the session did not close of itself, and what it may have done after "
        "that is not in it"
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """Of one session, where this client's settings lead: they must be the workers' own."""

    client: Client
    settings: Settings
    session_id: str
    user_id: str | None
    agent: str
    workflow_id: str

    async def is_stored(self) -> bool:
        """Whether the store has it. Raises Unreachable."""
        async with self._store() as store:
            record = await store.get_session(self.user_id, self.agent, self.session_id)
            return record is not None and not record.deleted_at

    async def bring_back(self, ask: Callable[[], Awaitable[SessionState]], *, was_there: bool) -> None:
        """Open the session again that has closed, and wait until it knows what it was. Raises NoSession when nothing
        is known of it, by the server (`was_there`) or in the store, and Unreachable."""
        if not was_there and not await self.is_stored():
            raise NoSession(f"there is no session {self.session_id!r} of agent {self.agent!r}, open or stored")
        session = await self.known_state()
        known = AgentSpec() if session is None else session.spec
        # All else that it was set up with comes with what is restored; by these the server orders its first task.
        turn = {"priority": known.priority, "fairness_key": known.fairness_key, "team": known.team}
        spec = AgentSpec.model_validate({"name": self.agent, **turn})
        start = start_of(self.settings, self.session_id, self.user_id, spec, self.workflow_id)
        look_again(self.client, self.workflow_id)
        await self.client.start_workflow(WORKFLOW, **start)
        pauses = Pauses()
        while True:
            session = await ask()
            if session.incarnation.restored or session.incarnation.quarantine:
                return
            await pauses.rest()

    async def state_or(self, ask: Callable[[], Awaitable[AgentState]]) -> FoundState:
        """What the session says; when it is gone, or over and nobody answers for it, what it wrote down last. Raises
        NoSession, Stuck, Unreachable."""
        over = await self.is_over()
        if over and await self.is_deleted():
            raise NoSession(f"there is no {self._named} any more: it was deleted")
        try:
            async with asyncio.timeout(SILENT_SECONDS if over else None):
                return FoundState(await ask())
        except (NoSession, *SILENCES, TimeoutError) as error:
            if not over and not isinstance(error, NoSession):
                raise
            if (record := await self._record()) is not None:
                return FoundState(record.state, "" if record.closed else _may_lack(record.seq))
            if isinstance(error, TimeoutError):
                raise Stuck(f"{self._named} is over, no worker answers for it, and no store has it") from error
            raise

    async def past(self) -> PastSession | None:
        """What it wrote down last, as far as it answers questions; None when no store has it. Raises Unreachable."""
        record = await self._record()
        carried = await asyncio.to_thread(carried_of, record) if record is not None else None
        if record is None or carried is None:
            return None
        return PastSession(carried, "" if record.closed else _may_lack(record.seq))

    async def output(self, digits: str) -> str:
        """The whole of one that was shortened. Raises NoBlob, BlobsUnavailable."""
        async with self.outputs() as outputs:
            _, data = await outputs.read(digits)
        return data.decode(errors="replace")

    @asynccontextmanager
    async def outputs(self) -> AsyncIterator[SessionBlobs]:
        """Whole outputs among its blobs. Raises Unreachable."""
        prefix = session_prefix(self.client.namespace, self.workflow_id)
        async with opened_blobs(self.client, self.settings) as blobs:
            yield SessionBlobs(blobs, keyring_in(self.client), prefix)

    async def delete(self, ask: Callable[[], Awaitable[SessionState]], *, by: str, terminate: bool) -> Deleted:
        """Everything, as far as it is there, of the session and of its sub-agents; what fails on the way is done by
        deleting again. `ask`: what the session says, should nothing be stored of it.

        Raises Refused where one of them is open, unless it is to be terminated, and Unreachable, also when workers
        keep it elsewhere: then nothing is deleted.
        """
        async with self._store(), opened_blobs(self.client, self.settings) as blobs:
            if why := await why_other_blobs(self.client, self.settings, blobs):
                raise Unreachable(why)
        session = await self.known_state(ask)
        if not terminate:
            await self.check_closed_below(session)
        async with self._store() as store:
            # All of them stop, and are known by their names, before the key that their names are read with is gone.
            stopped = await self.stop_tree(store, session, by=by, terminate=terminate)
            done = await stopped[0].kept.forget_parts(store, stopped[0], by)
            for each in stopped[1:]:
                done = done.with_subagent(each.kept.session_id, await each.kept.forget_parts(store, each, by))
            await forget_old_marks(store, self.user_id)
            return done

    async def known_state(self, ask: Callable[[], Awaitable[SessionState]] | None = None) -> SessionState | None:
        """What was stored of it, or else what it says; None where neither can be read: deleting goes on without."""
        with suppress(LonghaulError, RPCError, TimeoutError):
            record = await self._record()
            carried = await asyncio.to_thread(carried_of, record) if record is not None else None
            if carried is not None:
                return carried.session
            if ask is not None and await self.open_run() is not None:
                async with asyncio.timeout(SILENT_SECONDS):
                    return await ask()
        return None

    async def check_closed_below(self, session: SessionState | None) -> None:
        """Raises Refused for a sub-agent that is open: nothing is deleted yet."""
        for child in await self._started_ones(session, None):
            if await child.open_run() is not None:
                raise Refused(
                    f"{self._named} has a sub-agent that is open, {child.session_id!r}; terminate both to delete"
                )
            await child.check_closed_below(await child.known_state())

    async def stop_tree(
        self, store: StateStore, session: SessionState | None, *, by: str, terminate: bool
    ) -> "list[StoppedSession]":
        """Marked as deleted and ended: the session first, then those below it."""
        found = await self._marked(store, terminate=terminate)
        terminated = found.open is not None and await self._ended(found.open, by)
        stopped = [StoppedSession(self, found, terminated, session.provided.workspace_root if session else "")]
        for child in await self._started_ones(session, found.open):
            stopped += await child.stop_tree(store, await child.known_state(), by=by, terminate=True)
        return stopped

    async def _started_ones(
        self, session: SessionState | None, run: WorkflowExecutionDescription | None
    ) -> "list[Kept]":
        """The sub-agents that it has started itself: by its own account, by the server's index, and, for the index may
        lack the newest, by what the server says of the run."""
        known = session.children.values() if session is not None else ()
        found = {
            child.workflow_id: self._other(child.session_id, child.agent, child.workflow_id)
            for child in known
            if child.workflow_id
        }
        rows: list[WorkflowExecution] = []
        if wanted := children_of(self.workflow_id):
            rows = [row async for row in self.client.list_workflows(wanted)]
        for each in run.raw_description.pending_children if run is not None else ():
            if each.workflow_id not in found:
                rows.append(await self.client.get_workflow_handle(each.workflow_id).describe())
        for row in rows:
            if row.id not in found:
                card = await card_of(row)
                found[row.id] = self._other(card.session_id, card.agent, row.id)
        return list(found.values())

    def _other(self, session_id: str, agent: str, workflow_id: str) -> "Kept":
        return replace(self, session_id=session_id, agent=agent, workflow_id=workflow_id)

    async def forget_parts(self, store: StateStore, stopped: "StoppedSession", by: str) -> Deleted:
        found = stopped.found
        # The key before all else: whatever fails on the way, or lies where nobody looks, is unreadable by then.
        key = await delete_key(self.client, self.workflow_id)
        if key and (started := await self.open_run()):  # with what was encrypted before that: it could not go on
            await self._ended(started, by)
        runs = await delete_histories(self.client, self.workflow_id)
        names = (self.agent, self.user_id, self.session_id)
        offloaded = await forget_files(self.settings.data_dir, *names)
        if self.settings.redis_url:
            from longhaul.stores.offload.redis_offloader import forget_keys  # noqa: PLC0415  only who uses Redis waits

            offloaded += await forget_keys(self.settings.redis_url, *names)
        files = await asyncio.to_thread(forget, self.settings.data_dir, self.workflow_id)
        large, stream = await self._without_blobs(), await self._without_stream()
        if found.mark is not None:
            await written(store, found.mark.model_copy(update={"deleting": False}), found.mark)
        folders = (stopped.workspace,) if stopped.workspace else ()
        return Deleted(stopped.terminated, runs, found.record, large, offloaded, stream, files, key, folders)

    async def is_deleted(self) -> bool:
        """Whether a mark of that is what there is of it, and nobody has started it again. Raises Unreachable."""
        async with self._store() as store:
            record = await store.get_session(self.user_id, self.agent, self.session_id)
        return record is not None and record.deleted_at != "" and await self.open_run() is None

    async def _marked(self, store: StateStore, *, terminate: bool) -> StoredCopies:
        """Leave the mark of the deletion in the place of the record, in one step: an incarnation that has started
        before it is among what is found and ended, and one that comes to its beginning after it finds the mark. Where
        nothing is known of a session there is none. Raises Refused, Unreachable."""
        for _ in range(MARK_TRIES):
            try:
                record = await store.get_session(self.user_id, self.agent, self.session_id)
            except DamagedRecord:
                await store.delete_session(self.user_id, self.agent, self.session_id)
                record = None
            run = await self._newest()
            is_open = run is not None and run.status is WorkflowExecutionStatus.RUNNING
            if is_open and not terminate:
                raise Refused(f"{self._named} is open; terminate it to delete it")
            if record is None and run is None:
                return StoredCopies(None, None, record=False)
            mark = mark_over(record, self.user_id, self.agent, self.session_id)
            if await written(store, mark, record):
                return StoredCopies(run if is_open else None, mark, record=record is not None and not record.deleted_at)
        raise Unreachable(f"{self._named} was written by others repeatedly; nothing is deleted yet")

    @property
    def _named(self) -> str:
        return f"session {self.session_id!r} of agent {self.agent!r}"

    async def is_over(self) -> bool:
        """Whether the server knows it as one that runs no more."""
        try:
            described = await self.client.get_workflow_handle(self.workflow_id).describe()
        except RPCError:
            return False  # unknown, which whoever asks it hears too
        return described.status is not WorkflowExecutionStatus.RUNNING

    async def _newest(self) -> WorkflowExecutionDescription | None:
        try:
            return await self.client.get_workflow_handle(self.workflow_id).describe()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return None

    async def open_run(self) -> WorkflowExecutionDescription | None:
        newest = await self._newest()
        return newest if newest is not None and newest.status is WorkflowExecutionStatus.RUNNING else None

    async def _ended(self, run: WorkflowExecutionDescription, by: str) -> bool:
        """And no run that somebody has started since; that this one goes on in another makes no difference."""
        first = run.raw_description.workflow_execution_info.first_run_id or None
        handle = self.client.get_workflow_handle(self.workflow_id, first_execution_run_id=first)
        try:
            await handle.terminate(f"deleted by {by}" if by else "deleted")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    async def _record(self) -> SessionRecord | None:
        async with self._store() as store:
            record = await store.get_session(self.user_id, self.agent, self.session_id)
            return await readable(self.client, self.workflow_id, None if record and record.deleted_at else record)

    async def _without_blobs(self) -> int:
        async with opened_blobs(self.client, self.settings) as blobs:
            return await delete_session_blobs(blobs, self.workflow_id, namespace=self.client.namespace)

    async def _without_stream(self) -> bool:
        streams = open_streams(self.settings.redis_url, data_dir=self.settings.data_dir)
        try:
            return await streams.delete(key_of(self.client.namespace, self.workflow_id))
        finally:
            await streams.close()

    def _store(self) -> AbstractAsyncContextManager[StateStore]:
        return _opened(self.client, self.settings)


async def stored_sessions(client: Client, settings: Settings, user_id: str | None) -> list[SessionRow]:
    """What the store that these settings name holds of a user. Raises Unreachable."""
    async with _opened(client, settings) as store:
        return [row for row in await store.list_sessions(user_id) if row.agent_id != NO_AGENT and not row.deleted_at]


@asynccontextmanager
async def _opened(client: Client, settings: Settings) -> AsyncIterator[StateStore]:
    try:
        store = open_store(settings.store, data_dir=settings.data_dir)
        try:
            if why := await why_another_store(client, settings, store):
                raise Unreachable(why)
            yield store
        finally:
            await store.close()
    except UnreadableRecord:
        raise  # no setting fixes it
    except (StoreError, BadStoreSetting, BlobsUnavailable, BadStreamsSetting, StreamsUnavailable) as error:
        raise Unreachable(
            f"{error}; set LONGHAUL_STORE, LONGHAUL_BLOBS and LONGHAUL_REDIS_URL as for the workers"
        ) from error
