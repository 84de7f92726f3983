"""Carries from attempt to attempt at a model call what those before have told, in the details of their heartbeats."""

from temporalio import activity


class EarlierAttempts:
    """Of the attempt that runs, which tells on with what it adds itself."""

    def __init__(self) -> None:
        info = activity.info()
        free, heard = (*info.heartbeat_details, 0, 0)[:2]
        self._attempt, self._heard = info.attempt, int(heard)
        self.free = int(free)
        """How many have cost nothing; counted for sessions with a budget."""

    @property
    def lost_in_a_row(self) -> int:
        """Attempts just before this one that ended with their worker, or in silence."""
        return self._attempt - 1 - self._heard

    def ends_in_words(self) -> None:
        """The one that runs fails, and is here to say so."""
        self._heard = self._attempt

    def details(self) -> tuple[str, ...]:
        """For each heartbeat: one without them would make the next attempt forget."""
        return (str(self.free), str(self._heard)) if self.free or self._heard else ()
