"""Decides when a session that nobody has used for long closes, and that it was written down before."""

from longhaul.agent.decisions.rollover import Load
from longhaul.agent.record import Record
from longhaul.agent.steps import Checkpoint, Close, Idle, Step


def idle_for_long(record: Record) -> bool:
    limit = record.spec.idle_close_seconds
    if any(child.background and not child.outcome for child in record.children.values()):
        return False  # what they say last would find nobody
    if any(not command.fate for command in record.commands.values()):
        return False
    return limit > 0 and record.latest_at - record.keeping.active_at >= limit * 1000


def close(record: Record, load: Load) -> Step:
    """Only what a checkpoint has confirmed may end; a session that can't be written down stays open."""
    if load.checkpointing or record.keeping.failed is not None:
        return Idle()
    return (
        Close()
        if record.keeping.mirrored >= record.keeping.changed and record.keeping.closing
        else Checkpoint(closing=True)
    )
