"""A glance is what the server says of a session without asking it: no worker is woken, and nothing is billed.

The server also knows of each try to reach a model's provider, the session only of some.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, timedelta

from temporalio.api.failure.v1 import Failure
from temporalio.client import WorkflowExecutionStatus
from temporalio.converter import WorkflowSerializationContext
from temporalio.exceptions import FailureError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.plain.measures import iso
from longhaul.starter.client.reading.queries import Asking
from longhaul.starter.connection.query_retries import Pauses
from longhaul.workflows.contract import CALL_MODEL, CHECKPOINT, COMPRESS, STATUS, Status

TIMEOUT = timedelta(seconds=5)
TOLD_TIMES = 4
"""So many times as seldom is asked while a live stream speaks: it tells nearly all that an answer would."""
FAILING_TRIES = 3
"""Of one task: whoever asks its session hears why it fails."""


@dataclass(frozen=True, slots=True)
class Glance:
    """Between two that are equal nothing was recorded."""

    run_id: str
    is_open: bool
    length: int
    """Events of the run's history."""
    tries: int
    """Of the task that decides what is next; 0 where nothing is to be decided."""
    is_at_rest: bool
    """Whether nothing is under way but a checkpoint, or somebody's answer is awaited."""


GONE = Glance(run_id="", is_open=False, length=0, tries=0, is_at_rest=True)


async def glance(asking: Asking) -> Glance | None:
    """None where the server does not say just now."""
    try:
        seen = await asking.handle.describe(rpc_timeout=TIMEOUT)
    except RPCError as error:
        return GONE if error.status is RPCStatusCode.NOT_FOUND else None
    told = seen.raw_description
    working = [one for one in told.pending_activities if one.activity_type.name != CHECKPOINT]
    return Glance(
        run_id=str(seen.run_id),
        is_open=seen.status is WorkflowExecutionStatus.RUNNING,
        length=seen.history_length,
        tries=max(told.pending_workflow_task.attempt, 1) if told.HasField("pending_workflow_task") else 0,
        is_at_rest=not working or seen.typed_search_attributes.get(STATUS) == "waiting",
    )


Look = Callable[[], Awaitable[Glance | None]]


class Moves:
    """When a session is worth asking again, for one who waits for something in it."""

    def __init__(self, look: Look, seconds: float, *, for_rest: bool = False) -> None:
        """`seconds`: the longest between questions while it moves or can't be seen. `for_rest`: before that, only what
        it says when it has come to rest is of use."""
        self._look = look
        self._seconds = seconds
        self._for_rest = for_rest
        self._seen: Glance | None = None
        self._answered: Glance | None = None
        """As it stood when it was asked last, or before."""
        self._asked_at = asyncio.get_running_loop().time()
        self.stirred_at = self._asked_at
        """When two glances differed last."""

    async def note(self) -> None:
        """It will be asked next, whatever for. Beside the question the glance could show what the answer lacks."""
        self._asked_at = asyncio.get_running_loop().time()
        self._answered = self._seen = await self._look()

    async def due(self, *, told: bool = False) -> bool:
        """Whether a question may be answered otherwise than the last one; it is taken to be put then. `told`: a live
        stream speaks of the session."""
        now = asyncio.get_running_loop().time()
        before, seen = self._seen, await self._look()
        self._seen = seen
        if seen != before:
            self.stirred_at = now
        late = now - self._asked_at >= self._seconds * (TOLD_TIMES if told else 1)
        if seen is None:
            asks = late
        elif seen.tries >= FAILING_TRIES:
            # Once a try: the server can't tell a task that fails from one that a busy worker did not end in time, and
            # each question more would keep it busier.
            asks = seen != self._answered
        else:
            # While no worker takes its task nothing changes, and nobody would answer.
            asks = seen != self._answered and (self._is_ripe(seen) or (late and (not seen.tries or seen != before)))
        if asks:
            self._asked_at, self._answered = now, seen
        return asks

    def _is_ripe(self, seen: Glance) -> bool:
        """In the midst of a task a question would wait for its end."""
        return not seen.tries and (not self._for_rest or seen.is_at_rest or not seen.is_open)

    async def rest(self) -> None:
        """Until it is worth asking."""
        pauses = Pauses()
        await pauses.rest()
        while not await self.due():
            await pauses.rest()


async def with_newest_try(asking: Asking, status: Status) -> Status:
    """The status of a session whose provider is away, with the newest try; as it is where the server does not say."""
    if status.outage is None:
        return status
    try:
        described = await asking.handle.describe()
    except RPCError:
        return status
    for one in described.raw_description.pending_activities:
        if one.activity_type.name in {CALL_MODEL, COMPRESS} and one.HasField("last_failure"):
            next_try = iso(round(one.scheduled_time.ToDatetime(UTC).timestamp() * 1000))
            # Of one that is under way, `attempt` is its own number; of one that waits, that of the next.
            newest = {
                "attempt": max(one.attempt - 1, 1),
                "next_try": next_try,
                "why": await _reason_of(asking, one.last_failure),
            }
            return status.model_copy(update={"outage": status.outage.model_copy(update=newest)})
    return status


async def _reason_of(asking: Asking, failure: Failure) -> str:
    """Why it failed; it may be encrypted."""
    context = WorkflowSerializationContext(asking.client.namespace, asking.handle.id)
    told = await asking.client.data_converter.with_context(context).decode_failure(failure)
    return told.message if isinstance(told, FailureError) else str(told)
