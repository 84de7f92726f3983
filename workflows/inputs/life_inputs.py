"""Makes the inputs of activities about a session's own life: what was there before it, and to write down what has
come."""

from longhaul.activities import contract as world
from longhaul.agent import entries as e
from longhaul.agent.decision import decide
from longhaul.agent.decisions.rollover import Load
from longhaul.agent.record import Record
from longhaul.agent.steps import Prepare
from longhaul.workflows.inputs.activity_inputs import prepare_reply

NEWEST_SEGMENTS = 12
"""Enough to write small ones again as one, and few enough to cross the history with each checkpoint."""


def restore(record: Record, session_key: str, reset_run: str) -> world.RestoreInput:
    """`reset_run`: as in the input; empty where nobody has reset the session."""
    state = record.state
    return world.RestoreInput(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        ahead=None if reset_run else _ahead(record, session_key),
        reset_run=reset_run,
    )


def _ahead(record: Record, session_key: str) -> world.PrepareReply | None:
    """What would be asked next if there were no earlier life."""
    begun = Record.of(record.log)
    begun.restore(e.Restored(generation=1, source="nothing"), None, record.latest_at)
    step = decide(begun, Load(at=record.latest_at))
    if not isinstance(step, Prepare) or record.spec.host:
        return None
    begun.write(e.ReplyStarted(reply_id=step.reply_id), record.latest_at)
    return prepare_reply(begun, session_key)


def checkpoint(record: Record, *, closing: bool) -> world.CheckpointInput:
    state, newest = record.state, record.keeping.segments[-NEWEST_SEGMENTS:]
    return world.CheckpointInput(
        session_id=state.session_id,
        user_id=state.user_id,
        agent=record.spec.name,
        generation=record.life.generation,
        saved=record.keeping.saved,
        saved_seam=record.keeping.saved_seam,
        segments=tuple(newest),
        segments_before=len(record.keeping.segments) - len(newest),
        closing=closing,
    )
