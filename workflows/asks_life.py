"""What a session asks about its own life: what was there before it, and to write down what has come."""

from activities import contract as world
from agent import entries as e
from agent.decision import decide
from agent.keeping import Load
from agent.record import Record
from agent.steps import Prepare
from workflows.asks import prepare_reply

NEWEST_SEGMENTS = 12
"""Enough to write small ones again as one, and few enough to cross the history with each checkpoint."""


def restore(record: Record, session_key: str) -> world.Restore:
    state = record.state
    return world.Restore(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        ahead=_ahead(record, session_key),
    )


def _ahead(record: Record, session_key: str) -> world.PrepareReply | None:
    """What would be asked next if there were no earlier life."""
    begun = Record.of(record.log)
    begun.restore(e.Restored(generation=1, source="nothing"), None, record.latest_at)
    step = decide(begun, Load(at=record.latest_at))
    if not isinstance(step, Prepare):
        return None
    begun.write(e.ReplyStarted(reply_id=step.reply_id), record.latest_at)
    return prepare_reply(begun, session_key)


def checkpoint(record: Record, *, closing: bool) -> world.Checkpoint:
    state, newest = record.state, record.segments[-NEWEST_SEGMENTS:]
    return world.Checkpoint(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        generation=record.generation,
        saved=record.saved,
        saved_seam=record.saved_seam,
        segments=tuple(newest),
        segments_before=len(record.segments) - len(newest),
        closing=closing,
    )
