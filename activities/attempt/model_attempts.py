"""The attempts at one model call, and what each carries on to the next: how many before it may have been billed, and
since when the provider is away.

Tells which attempts at a model call may have been billed, and estimates what was asked and heard in these.

An attempt that never asked, or that the provider has turned away, has cost nothing. How many there were of these goes
from attempt to attempt with the heartbeats; every other one before this may have been billed, whatever became of it.

Waiting for a model's provider that is away: which failures are waited out, for how long, and who is told.

The waiting is Temporal's: an attempt that failed is tried again after a pause, and costs the history nothing until the
last one. The session is told now and then, so that whoever looks at it reads what it waits for.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta

from temporalio import activity
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import own_session
from longhaul.activities.contract import LOST_ATTEMPTS, OUT_OF_BUDGET
from longhaul.activities.models.failures.failure_classification import is_turned_away
from longhaul.activities.models.failures.retry_errors import FewTries, failed_for_good, pause_seconds
from longhaul.activities.models.model import Delta, KeptAnswer
from longhaul.activities.process.threads import is_cancelled_here
from longhaul.agent.operations.bodies import WORKER_LACKS
from longhaul.agent.values.conversation.messages import Usage


class EarlierAttempts:
    """Of the attempt that runs, which tells on with what it adds itself."""

    def __init__(self) -> None:
        info = activity.info()
        told = [*info.heartbeat_details]
        free, heard, streamed = (*told, 0, 0, 0)[:3]
        request, response = (*map(str, told[3:]), "", "")[:2]
        self.kept = KeptAnswer(request, response)
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
        # One that was picked up is the attempt's before, which has cost nothing more.
        numbers = (self.free + self.kept.picked_up, self._heard, self.streamed + self.hears)
        told = (self.kept.request, self.kept.response) if self.kept.response else ()
        return (*(str(number) for number in numbers), *told) if any(numbers) or told else ()

    @property
    def telling(self) -> tuple[Callable[[], tuple[str, ...]], Callable[[], object]]:
        """As `beating` takes it."""
        return self.details, self._presses

    def _presses(self) -> tuple[int, int, str]:
        """What of it can't wait for the next heartbeat. Each piece of an answer would be one."""
        return self.free, self._heard, self.kept.response


BYTES_PER_TOKEN = 4
"""Of words, whichever language; of code it is less."""


class Billing:
    """Of the attempt that runs. `paid`: how many the session's budget does for; 0 = it has none."""

    def __init__(self, paid: int) -> None:
        self._paid = paid
        self.earlier = EarlierAttempts()
        self._asks = self._hears = False

    @property
    def lost(self) -> int:
        """Attempts before this one that may have been billed; not the one whose answer this one has picked up."""
        return max(activity.info().attempt - 1 - self.earlier.free - self.earlier.kept.picked_up, 0)

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
        if self._paid and self.lost - bool(self.earlier.kept.response) >= self._paid:
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


log = logging.getLogger(__name__)

_AT_FIRST = RetryPolicy(initial_interval=timedelta(seconds=0.2))
"""For an attempt that is not told its policy."""
FIRST_TOLD = 5
TOLD_EACH = 30
"""Attempts: some seconds after the first one, and then about each hour. Each word costs the history four events."""
LONG_PAUSE_SECONDS = 2.0
"""A provider that asks for so much is told of before `FIRST_TOLD` too: somebody looks at a session that stands."""
TELL_SECONDS = 3

_started: ContextVar[float] = ContextVar("longhaul_attempt_started")
"""When this attempt began, on the worker's monotonic clock."""


class ProviderUnavailable(ApplicationError):
    """The provider can't be reached, is overloaded, or limits calls: it is tried again."""


async def waited_out(failure: ApplicationError, wait_seconds: float) -> ApplicationError:
    """The failure as the attempt is to end with it: to be tried again after a pause, or for good when it would be tried
    for longer than `wait_seconds`. Where another model is next, or nothing is to be waited out, the server counts."""
    if failure.non_retryable:
        return failure
    info = activity.info()
    told = failure.next_retry_delay.total_seconds() if failure.next_retry_delay else 0.0
    pause = pause_seconds(info.attempt, told, info.retry_policy or _AT_FIRST)
    if not is_patient() or isinstance(failure, FewTries):
        return ApplicationError(failure.message, type=failure.type, next_retry_delay=timedelta(seconds=pause))
    # By the server's clock, as all that it is compared with: a worker's may be hours ahead, and would give up.
    now = info.started_time.timestamp() + time.monotonic() - _started.get(time.monotonic())
    scheduled = info.scheduled_time.timestamp()
    next_at, until = now + pause, scheduled + wait_seconds
    if next_at > until:
        waited = timedelta(seconds=round(now - scheduled))
        sentence = f"{failure.message} It was tried {info.attempt} times in {waited} (h:m:s), and outage_wait_seconds"
        return failed_for_good(failure.type or "connection", f"{sentence} allows no more.")
    early = info.attempt < FIRST_TOLD and told >= LONG_PAUSE_SECONDS
    if early or info.attempt == FIRST_TOLD or info.attempt % TOLD_EACH == 0:
        await _tell_session(failure.message, next_at, until)
    return ProviderUnavailable(failure.message, type=failure.type, next_retry_delay=timedelta(seconds=pause))


def is_patient() -> bool:
    """Whether this call may be tried for hours: then the server counts no attempts. A first attempt that came with the
    workflow task is not told its policy; only such a call has an end for all of its attempts."""
    info = activity.info()
    if info.retry_policy is None:
        return info.schedule_to_close_timeout is not None
    return info.retry_policy.maximum_attempts == 0


@asynccontextmanager
async def counted(retries: int, earlier: EarlierAttempts) -> AsyncIterator[None]:
    """What is no outage is tried no more often than elsewhere, also in a call that may wait for hours: a worker that
    lacks something, a defect, and a call that takes its worker down each time."""
    _started.set(time.monotonic())
    over = is_patient() and activity.info().attempt > retries
    if over and earlier.lost_in_a_row > retries:
        raise failed_for_good("internal", "The workers that made the model call were lost each time.")
    try:
        async with _told_on(earlier):
            yield
    except ProviderUnavailable:
        raise
    except ApplicationError as error:
        if not over or error.non_retryable:
            raise
        raise ApplicationError(error.message, *error.details, type=error.type, non_retryable=True) from error
    except BaseException as error:
        if not over or is_cancelled_here(error):
            raise
        raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error


@asynccontextmanager
async def _told_on(earlier: EarlierAttempts) -> AsyncIterator[None]:
    """Only where tries are not counted by the server: each such word is a heartbeat more for an attempt that failed."""
    try:
        yield
    except BaseException:
        if is_patient():
            earlier.ends_in_words()
        raise


async def _tell_session(why: str, next_at: float, until: float) -> None:
    info = activity.info()
    away = {"attempt": info.attempt, "next_at": round(next_at * 1000), "until": round(until * 1000)}
    lacks = {"worker": activity.client().identity, "doing": info.activity_type, "why": why[:4_000], "away": away}
    try:
        await own_session.handle().signal(WORKER_LACKS, lacks, rpc_timeout=timedelta(seconds=TELL_SECONDS))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  nothing may take the place of the failure
        log.warning("session %s could not be notified that the provider is unavailable: %s", own_session.key(), error)
