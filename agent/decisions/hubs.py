"""Decides when a hub is told what a reply came to."""

from longhaul.agent.record import Record
from longhaul.agent.steps import TellHub


def to_tell_hub(record: Record) -> TellHub | None:
    """The oldest reply that a hub has not been told; None in a session that is in no hub."""
    return next((TellHub(hub, known.owed[0]) for hub, known in record.hubs.items() if known.owed), None)
