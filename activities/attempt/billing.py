"""Tells which attempts at a model call may have been billed, and estimates what was asked and heard in these.

An attempt that never asked, or that the provider has turned away, has cost nothing. How many there were of these goes
from attempt to attempt with the heartbeats; every other one before this may have been billed, whatever became of it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from temporalio import activity
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt.heartbeat_details import EarlierAttempts
from longhaul.activities.contract import LOST_ATTEMPTS, OUT_OF_BUDGET
from longhaul.activities.models.failures.failure_classification import is_turned_away
from longhaul.activities.models.model import Delta
from longhaul.agent.values.conversation.messages import Usage

BYTES_PER_TOKEN = 4
"""Of words, whichever language; of code it is less."""


class Billing:
    """Of the attempt that runs. `paid`: how many the session's budget does for; 0 = it has none."""

    def __init__(self, paid: int) -> None:
        self._paid = paid
        self.earlier = EarlierAttempts()
        self._asks = self._hears = False
        self.lost = max(activity.info().attempt - 1 - self.earlier.free, 0)
        """Attempts before this one that may have been billed."""

    def asks(self, hears: Callable[[Delta], None]) -> Callable[[Delta], None]:
        """The provider is asked now; returns who is to hear its answer."""
        self._asks = True

        def hear(delta: Delta) -> None:
            self._hears = True
            self.earlier.hears += len(delta.text.encode("utf-8", "replace"))
            hears(delta)

        return hear

    def failed(self, error: Exception) -> None:
        """The provider was not reached, or has refused: then this attempt costs nothing, unless it asks once more."""
        self._asks = self._hears or not is_turned_away(error)

    def lost_usage(self, input_estimate: int) -> Usage | None:
        """Of the attempts before this one that may have been billed, if each was asked as much. What they have written
        is known as far as a heartbeat has told of it."""
        if not self.lost:
            return None
        read, written = self.lost * input_estimate, self.earlier.streamed // BYTES_PER_TOKEN
        return Usage(input_tokens=read, output_tokens=written, estimated=True)

    def heard_usage(self, input_estimate: int) -> Usage:
        """Of this attempt, when nobody hears the end of its answer."""
        written = self.earlier.hears // BYTES_PER_TOKEN
        return Usage(input_tokens=input_estimate, output_tokens=written, estimated=True)

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        """Around all of the attempt: its failure says how many may have been billed with it. Raises OutOfBudget where
        no further one is paid."""
        if self._paid and self.lost >= self._paid:
            sentence = f"{self.lost} attempts of this call were lost and may have been billed; no other one is paid"
            raise ApplicationError(sentence, {LOST_ATTEMPTS: self.lost}, type=OUT_OF_BUDGET, non_retryable=True)
        try:
            yield
        except BaseException as error:
            if not self._asks:
                self.earlier.free += 1
            if not self._paid or not isinstance(error, ApplicationError):
                raise
            # What a failed compression was billed is told with its failure.
            reported = len(error.details) > 1
            lost = {LOST_ATTEMPTS: self.lost + (self._asks and not reported)}
            raise ApplicationError(
                error.message,
                *error.details,
                lost,
                type=error.type,
                non_retryable=error.non_retryable,
                next_retry_delay=error.next_retry_delay,
            ) from error
