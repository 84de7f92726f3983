"""How a session stands that is paused."""

from typing import Literal

from agent.values import Guest, sparse


class Pause(Guest):
    """Part of the ledger, and carried with it: a roll-over, a restart or another life changes nothing of it."""

    at: int
    """Milliseconds since 1970."""
    by: str = sparse("")
    why: str = sparse("")
    step: Literal["", "asked", "begun"] = sparse("")
    """One step is to be taken, or is being taken, before it stands still again."""
