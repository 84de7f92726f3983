"""Carries from attempt to attempt at a model call what those before have told, in the details of their heartbeats."""

from collections.abc import Callable

from temporalio import activity


class EarlierAttempts:
    """Of the attempt that runs, which tells on with what it adds itself."""

    def __init__(self) -> None:
        info = activity.info()
        free, heard, streamed = (*info.heartbeat_details, 0, 0, 0)[:3]
        self._attempt, self._heard = info.attempt, int(heard)
        self.free = int(free)
        """How many have cost nothing."""
        self.streamed = int(streamed)
        """Bytes that those before this one had heard of answers of which nobody has heard the end."""
        self.hears = 0
        """The same of this one."""

    @property
    def lost_in_a_row(self) -> int:
        """Attempts just before this one that ended with their worker, or in silence."""
        return self._attempt - 1 - self._heard

    def ends_in_words(self) -> None:
        """The one that runs fails, and is here to say so."""
        self._heard = self._attempt

    def details(self) -> tuple[str, ...]:
        """For each heartbeat: one without them would make the next attempt forget."""
        told = (self.free, self._heard, self.streamed + self.hears)
        return tuple(str(number) for number in told) if any(told) else ()

    @property
    def telling(self) -> tuple[Callable[[], tuple[str, ...]], Callable[[], object]]:
        """As `beating` takes it."""
        return self.details, self._presses

    def _presses(self) -> tuple[int, int]:
        """What of it can't wait for the next heartbeat. Each piece of an answer would be one."""
        return self.free, self._heard
