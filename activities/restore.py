"""restore: what an earlier incarnation of a session left behind, found before the session does anything.

The truth about a session is its newest run's history while the server has it, and the state store's record for a run
that closed of itself; `activities.recovery` says which. Here it is found out, and said in the store that a
new incarnation has started.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from temporalio import activity
from temporalio.client import WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.activities import recovery
from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.fused_reads import unfused
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.checkpoint import own_run
from longhaul.activities.contract import RESTORE, RestoreInput
from longhaul.activities.prepare_reply import Preparation
from longhaul.activities.recovery import (
    Claim,
    Ended,
    Gone,
    IncarnationKey,
    Past,
    StoredIncarnation,
    base_of_reset,
    claim_of,
    earlier_runs,
    empty_record,
    ended_run,
    first_sentence,
    found_in,
    place_of,
    session_record,
    was_edited,
    why_task_failed,
)
from longhaul.agent.entries import Restored, SessionOpened
from longhaul.agent.incarnation.continued_state import Carried, imported, slimmed, with_state
from longhaul.agent.values.conversation.messages import problem
from longhaul.stores.state.store import DamagedRecord, SessionRecord, StateStore, StoreError, carried_of

QUERY_TRIES = 4
"""Attempts of this activity after which a history that can't be read counts as lost: a worker may just be starting."""
DELETING_SECONDS = 30.0
"""So long a new session waits for the deletion of the one before: whoever deletes it may have died in the midst."""
EDITOR = "the state store"
_NO_ANSWER = {RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
"""The server's words when a run's last tasks have failed, which stays so when it is over, and for want of a worker."""


class Restoring:
    def __init__(self, store: StateStore, workspaces: Workspaces, preparation: Preparation) -> None:
        self._store, self._workspaces = store, workspaces
        self._preparation = preparation

    @activity.defn(name=RESTORE)
    async def restore(self, ask: RestoreInput) -> Restored:
        """Raises ApplicationError, named for what is wrong: DamagedRecord when trying again does not help."""
        async with beating():
            try:
                found = await self._restore(ask)
            except DamagedRecord as error:
                raise ApplicationError(str(error), type="DamagedRecord", non_retryable=True) from error
            except StoreError as error:
                raise ApplicationError(str(error), type=type(error).__name__) from error
            if ask.ahead is None or found.carried is not None or found.quarantine:
                return found
            return found.model_copy(update={"prepared": await self._preparation.ahead(ask.ahead)})

    async def _restore(self, ask: RestoreInput) -> Restored:
        if activity.info().is_local and (first := await self._started_first(ask)):
            return first
        try:
            record = await self._store.get_session(ask.user_id, ask.agent, ask.session_id)
            if record is not None and record.run_id == own_run() and (claim := claim_of(record)):
                # An earlier attempt of this activity has found it all.
                carried = carried_of(record)
                return Restored(
                    incarnation=record.incarnation,
                    source=claim.source,
                    carried=carried.model_dump(mode="json") if carried else None,
                    quarantine=claim.quarantine,
                    note=claim.note,
                )
            past = await _past(record)
        except DamagedRecord as damage:
            record, past = None, Past(damage=damage)
        if activity.info().is_local:
            # Of a sub-agent's first incarnation, within its first task: the server begins none a second time under its
            # id, so that the store alone may know of an earlier one. Raises ApplicationError where it does.
            if past.stored is not None or past.damage is not None:
                raise unfused("something of it is stored")
        elif not past.deleted:
            await _look_back(past, record, ask.reset_run)
            if past == Past() and (left := await asyncio.to_thread(self._workspaces.left_behind, own_session.key())):
                past.lost = f"the server has deleted its history (its workspace {str(left)!r} is still there)"
        # Of nothing it is found at once.
        found = found_in(past) if past == Past() else await asyncio.to_thread(found_in, past)
        await self._claim(ask, found, past)
        return found

    async def _started_first(self, ask: RestoreInput) -> Restored | None:
        """Of an incarnation before which the store has nothing, as mostly within a first task: it is looked and written
        there in one step. None where something lies there, or the store does not say."""
        found = found_in(Past())
        with suppress(StoreError):
            if await self._store.replace_session(_empty(ask, found), None):
                return found
        return None

    async def _claim(self, ask: RestoreInput, found: Restored, past: Past) -> None:
        """Say in the store that this incarnation has started, and with what: a later one must not go on from an older
        state although the server's list of runs is behind, nor may a late checkpoint of an earlier incarnation replace
        this."""
        if found.carried is None:
            record = _empty(ask, found, after_deletion=past.deleted > 0)
        else:
            incarnation, claim = _incarnation(ask, found), _claim_of(found)
            record = await asyncio.to_thread(
                lambda: session_record(incarnation, Carried.model_validate(found.carried), claim=claim)
            )
        if past.damage is not None:
            await self._store.upsert_session(record)
        elif not await self._store.save_checkpoint(record):
            raise ApplicationError("the store was written to by another life of this session", type="StoreBusy")


def _empty(ask: RestoreInput, found: Restored, *, after_deletion: bool = False) -> SessionRecord:
    claim = _claim_of(found).model_copy(update={"after_deletion": after_deletion})
    return empty_record(_incarnation(ask, found), claim)


def _incarnation(ask: RestoreInput, found: Restored) -> IncarnationKey:
    return IncarnationKey(ask.user_id, ask.agent, ask.session_id, found.incarnation, own_run())


def _claim_of(found: Restored) -> Claim:
    return Claim(source=found.source, quarantine=found.quarantine, note=found.note)


async def _past(record: SessionRecord | None) -> Past:
    """What the store says. Raises DamagedRecord, and ApplicationError while the session is being deleted: the new one
    begins when nothing of the old one is left."""
    if record is None:
        return Past()
    if not record.deleted_at:
        return Past(stored=await _stored(record))
    age = datetime.now(UTC) - datetime.fromisoformat(record.updated_at)
    if record.deleting and age < timedelta(seconds=DELETING_SECONDS):
        if activity.info().is_local:
            raise unfused("what was there before it is being deleted")
        raise ApplicationError("what was there before it is being deleted", type="BeingDeleted")
    return Past(deleted=record.incarnation)


async def _stored(record: SessionRecord) -> StoredIncarnation:
    """The record with the state that somebody may have put there. Raises DamagedRecord."""
    carried, claim, edited = await asyncio.to_thread(lambda: (carried_of(record), claim_of(record), was_edited(record)))
    place = (carried.session.incarnation.number, carried.session.seq) if carried else (0, 0)
    quarantine = claim.quarantine if claim else ""
    if carried is None and claim is not None:
        return StoredIncarnation(record.incarnation, quarantine=quarantine)
    edited = edited or carried is None
    if edited:
        if wrong := problem(record.state.context):
            raise DamagedRecord(EDITOR, record.session_id, f"state.context: {wrong}")
        if carried is not None:
            carried = with_state(carried, record.state, EDITOR, "the stored state was edited")
        else:
            # How this session was opened: who talks with which agent.
            entries = await recovery.entries_after(own_session.handle(), 0)
            if not entries or not isinstance(entries[0], SessionOpened):
                raise ApplicationError("the session has no first entry that says who opened it", type="NoOpening")
            carried = imported(entries[0], record.state, EDITOR)
    return StoredIncarnation(record.incarnation, record.closed, carried, place, edited, quarantine)


async def _look_back(past: Past, record: SessionRecord | None, reset_run: str) -> None:
    """Run by run, from the newest one, until one tells all or can't be read. Raises what may pass."""
    known = record.run_id if record else ""
    client, key = activity.client(), own_session.key()
    base = await base_of_reset(client, key, reset_run) if reset_run else ""
    past.reset = bool(reset_run)
    runs, past.gone = await earlier_runs(client, key, own_run(), known, base)
    if record is not None and (claim := claim_of(record)) and claim.after_deletion:
        runs = [run for run in runs if run.run_id == known]
    for run in runs:
        if not run.began:
            continue
        if record is not None and _holds_all_of(record, run):
            past.closed = True
            return
        carried = await _read_out(run, past)
        if carried is None:
            return
        if carried.session.incarnation.restored:
            past.history = await _furthest(run, carried, past)
            return
        past.started.append(carried)
        past.claimed = past.claimed or run.run_id == known


def _holds_all_of(record: SessionRecord, run: Ended) -> bool:
    closed = run.closed
    return closed is not None and record.incarnation == closed.incarnation and record.seq >= closed.seq


async def _furthest(run: Ended, carried: Carried, past: Past) -> Carried | None:
    """What that run had come to, or the one that it was reset from, if that had come further: a reset that no worker
    has noticed leaves a run which knows nothing of what came behind its point. None: `past.lost` says why."""
    while run.base:
        try:
            run = await ended_run(activity.client(), own_session.key(), run.base)
        except Gone:
            past.lost = "the history of the run that was reset has been deleted"
            return None
        before = await _read_out(run, past)
        if before is None:
            return None
        if before.session.incarnation.restored and place_of(before) > place_of(carried):
            carried = before
    return carried


async def _read_out(run: Ended, past: Past) -> Carried | None:
    """All that the run had come to; None, and `past.lost` says why, when it can't be read any more."""
    session = activity.client().get_workflow_handle(own_session.key(), run_id=run.run_id)
    try:
        return slimmed(await recovery.snapshot(session))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            past.lost = "its history has been deleted"
        elif error.status in _NO_ANSWER and activity.info().attempt >= QUERY_TRIES:
            past.lost = await _why_silent(run, error)
        else:
            raise
    except WorkflowQueryFailedError as error:
        if activity.info().attempt < QUERY_TRIES:
            raise
        past.lost = f"its history can't be read: {first_sentence(str(error))}"
    return None


async def _why_silent(run: Ended, error: RPCError) -> str:
    """Of a run that is over and answers nothing: a worker that failed to replay it, or none that polls its queue."""
    if error.status is not RPCStatusCode.FAILED_PRECONDITION or "poller" in error.message:
        return f"no worker answers for it ({error.message})"
    failed = await why_task_failed(activity.client(), own_session.key(), run.run_id)
    return f"its history can't be read: {failed or error.message}"
