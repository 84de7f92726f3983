"""checkpoint: what a session has recorded goes into segments, and its state into the store, beside all that it does. Of
one that closes with little to say the entries stay with the state: they may never be read, and a session that is opened
again holds them, as after a history that was read.

It may be killed at any point, and run twice or late: segments are named by what is in them, and the store takes nothing
that is older than what it holds.
"""

import asyncio

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus

from longhaul.activities import recovery
from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.call_attempts import while_polling
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.contract import CHECKPOINT, CheckpointInput
from longhaul.activities.notify.notifications import Notifying
from longhaul.activities.recovery import IncarnationKey, session_record
from longhaul.activities.telemetry import attempts, operator_lines
from longhaul.agent.entries import AnyEntry, Checkpointed
from longhaul.agent.incarnation.continued_state import Carried, once_saved
from longhaul.agent.incarnation.history import boundary_of
from longhaul.stores.segments import Segments
from longhaul.stores.state.store import DamagedRecord, SessionRecord, StateStore, StoreError, StoreUnavailable

STORE_SECONDS = 5.0
"""For one try; the session hears of a store that stays away while its checkpoint still has time."""
PAUSES_SECONDS = (0.2, 1.0)

LATER_IS_STORED = (
    "the store holds a later state of this session than the one that was to be written, so it was left as it is"
)


class Checkpointing:
    def __init__(self, store: StateStore, segments: Segments, notifying: Notifying) -> None:
        self._notifying = notifying
        self._store = store
        self._segments = segments

    @activity.defn(name=CHECKPOINT)
    async def checkpoint(self, ask: CheckpointInput) -> Checkpointed:
        """Raises what the blob store raises: without segments nothing is saved, and all is tried again."""
        async with while_polling(), beating():
            few = 0 < len(ask.whole) < recovery.QUICK_CHARS
            if ask.whole and ask.closing:
                carried = await recovery.read(ask.whole)
                new = carried.session.log
                keep = ask.segments_before + len(ask.segments)
                saved = Checkpointed(through=carried.session.seq, with_state=True, keep=keep, closing=True)
            else:
                new, carried, saved = await self._sealed(ask, few=few)
            attempts.written(new, carried.session)
            incarnation = IncarnationKey(ask.user_id, ask.agent, ask.session_id, ask.incarnation, own_run())
            after = once_saved(carried, saved)
            if few:
                record = session_record(incarnation, after, closed=saved.closing)
            else:
                record = await asyncio.to_thread(session_record, incarnation, after, closed=saved.closing)
            trouble = await self._save(record)
            told = await self._notifying.tell(carried.session, own_session.blobs_prefix())
            operator_lines.report(own_session.key(), new, carried.session)
            update = {"store_error": trouble, "notified": told.notified, "notify_error": told.error}
            return saved.model_copy(update=update)

    async def _sealed(self, ask: CheckpointInput, *, few: bool) -> tuple[list[AnyEntry], Carried, Checkpointed]:
        """What is new, which is in segments now, and the rest."""
        whole = recovery.parted(ask.whole) if ask.whole else recovery.since(own_session.handle(), ask.saved)
        new, carried = await whole
        prefix = own_session.blobs_prefix()
        keep, written = await self._segments.extend(prefix, ask.segments, new, ask.saved_boundary, few=few)
        saved = Checkpointed(
            through=carried.session.seq,
            messages=carried.session.messages_total,
            boundary=boundary_of(carried.session),
            keep=ask.segments_before + keep,
            segments=written,
            closing=ask.closing,
        )
        return new, carried, saved

    async def _save(self, record: SessionRecord) -> str:
        """Empty, or why the state could not be stored: the segments are written, and that must not be lost."""
        trouble = ""
        for pause in (*PAUSES_SECONDS, 0.0):
            try:
                async with asyncio.timeout(STORE_SECONDS):
                    return "" if await self._saved(record) else LATER_IS_STORED
            except (StoreUnavailable, TimeoutError) as error:
                trouble = str(error) or f"the state store did not answer within {STORE_SECONDS:g} s"
            except StoreError as error:
                return str(error)
            except Exception as error:  # noqa: BLE001  a store of one's own may raise anything
                trouble = f"the state store failed: {type(error).__name__}: {error}"
            await asyncio.sleep(pause)
        return trouble

    async def _saved(self, record: SessionRecord) -> bool:
        try:
            return await self._store.save_checkpoint(record)
        except DamagedRecord:
            # What lies there is of no use to anybody, and the session itself is the truth; but only the run that is
            # the session now may say so, or a late attempt could put an old state over it.
            if not await is_current_run():
                raise
            await self._store.upsert_session(record)
            return True


def own_run() -> str:
    return activity.info().workflow_run_id or ""


async def is_current_run() -> bool:
    """Whether the session that this activity works for is still open in the run that asked for it."""
    now = await activity.client().get_workflow_handle(own_session.key()).describe()
    return now.run_id == own_run() and now.status is WorkflowExecutionStatus.RUNNING
