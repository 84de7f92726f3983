"""Decides when a session is written down outside."""

from longhaul.agent.decisions.rollover import Load
from longhaul.agent.record import Record


def should_save(record: Record, load: Load) -> bool:
    """After a reply, and when somebody else's answer is awaited; the same state is not tried twice."""
    tried = record.keeping.failed
    return (
        not load.checkpointing
        and record.keeping.mirrored < record.keeping.changed
        and (tried is None or tried.changed < record.keeping.changed)
    )
