"""Says once in a session what a provider's API could not express, and not at each of its calls."""

import logging

from longhaul.activities.models.model import ModelReply

log = logging.getLogger(__name__)

MOST_NOTES = 20
"""Of one reply, that are recorded."""
SESSIONS_KEPT = 1_000
"""Of one that was forgotten it is said again."""


class SaidOnce:
    """What this worker has said, by session."""

    def __init__(self) -> None:
        self._said: dict[str, set[tuple[str, str]]] = {}

    def tell(self, session: str, model: str, reply: ModelReply) -> None:
        """Log those notes of the reply that are new in this session, for whoever looks after the worker."""
        said = self._said.pop(session, set[tuple[str, str]]())
        self._said[session] = said
        for note in reply.notes:
            if (model, note) not in said:
                said.add((model, note))
                log.warning("%s in session %s: %s", model, session, note)
        if len(self._said) > SESSIONS_KEPT:
            del self._said[next(iter(self._said))]
