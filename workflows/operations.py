"""From the payloads of a signal or update to plain JSON values, whatever was sent.

Bounds how many operations are read in one workflow task. The SDK fails a task that takes two seconds, and the
operations are in the history: with too many of them in one task, every attempt would fail like the first. What is too
much for one task waits for the next, in the order of arrival, and none is lost.
"""

import asyncio
import json
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from longhaul.activities.contract import BAD_START
from longhaul.agent.entries import AskerCame, SessionOpened
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import Unusable
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.json_schemas import TooMuch, check_bounds
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.workflows.contract import WORKFLOW, WRONG_ARITY, SessionStart
from longhaul.workflows.payload_converter import KEY, why_missed, why_start_missed

MAX_NAME = 200
LARGEST_OPERATION = 1_900_000
"""Bytes. An accepted update stands in one event, and the server terminates a session for an event above 2 MiB."""
LARGEST_BY_REFERENCE = 16_000_000
"""Bytes of an argument of which only a reference stands in the event: the session has to carry it all the same."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(name: str, arguments: Sequence[RawValue]) -> list[Any]:
    """The arguments as JSON values; raises Unusable for one that is not there, is too large, or is not plain JSON.

    What passes is read within a fifth of a second, and what does not is refused in less: the SDK fails a workflow task
    that takes two seconds, and the operation is in the history, so that the task would be failed for ever.

    To be called once for each operation, by its handler: see `arrivals.why_missed`.
    """
    # For all of them before any is refused: each takes its number in the order of arrival.
    missed = [why_missed(argument.payload) for argument in arguments]
    for index, why in enumerate(missed, start=1):
        if why is not None:
            raise Unusable(
                f"argument {index} was sent by reference, and {why}; send it again, and see that LONGHAUL_BLOBS is the "
                "same for workers and clients"
            )
    if len(arguments) > 1:
        return [None] * len(arguments)  # none takes more than one: they are refused for their number, unread
    return [_value(name, index, argument) for index, argument in enumerate(arguments, start=1)]


def weigh(arguments: Sequence[RawValue]) -> int:
    """Bytes that came in with the event; what came by reference is not among them."""
    return sum(len(argument.payload.data) for argument in arguments if KEY not in argument.payload.metadata)


def _value(name: str, index: int, argument: RawValue) -> Any:
    if len(argument.payload.data) > LARGEST_BY_REFERENCE:
        raise Unusable(
            f"argument {index} has {len(argument.payload.data) // 1000} kB, and the most is "
            f"{LARGEST_BY_REFERENCE // 1000} kB; put the content into a file and name it"
        )
    encoding = argument.payload.metadata.get("encoding", b"").decode("ascii", "replace")
    if encoding == "binary/null":
        return None
    if encoding != "json/plain":
        raise Unusable(f"argument {index} is encoded as {encoding[:40]!r}; send JSON with encoding 'json/plain'")
    try:
        check_bounds(name, argument.payload.data)
        value = json.loads(argument.payload.data.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
        if _SURROGATE.search(argument.payload.data):
            # A lone one would pass here and fail every later query and continue-as-new.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except TooMuch as bound:
        raise Unusable(f"argument {index}: {bound}") from bound
    except ValueError as error:
        raise Unusable(f"argument {index} is not JSON: {str(error)[:200]}") from error
    return value


def _finite(text: str) -> float:
    """As beyond any float as 1e999: it would fail every later query and continue-as-new."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is beyond any number")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_start(start: RawValue) -> SessionStart:
    """The input of a run. One that can't be read fails the workflow with a sentence: no retry could fix it."""
    if start.payload.metadata.get("encoding") == WRONG_ARITY:
        raise _bad_start(f"{WORKFLOW} takes one argument, a SessionStart, and {start.payload.data.decode()} came")
    if (why := why_start_missed(start.payload)) is not None:
        raise _bad_start(f"the start input was sent by reference, and {why}")
    try:
        return SessionStart.model_validate_json(start.payload.data)
    except ValidationError as error:
        raise _bad_start(f"the start input is not a SessionStart: {what_is_wrong(error)}") from error


def _bad_start(why: str) -> ApplicationError:
    return ApplicationError(why, type=BAD_START, non_retryable=True)


def open_journal(start: SessionStart, at: int) -> Journal:
    """The journal that a run begins with."""
    if start.carried is not None:
        return Journal.over(start.carried.session)
    opening = SessionOpened(
        seq=1,
        at=at,
        session_id=start.session_id,
        user_id=start.user_id,
        spec=start.spec or AgentSpec(),
        search_attributes=start.search_attributes,
        parent=start.parent,
    )
    journal = Journal.of([opening])
    if start.request is not None:
        journal.write(start.request, at)
    if start.asker is not None:
        journal.write(AskerCame(asker=start.asker), at)
    return journal


def opening_of(journal: Journal) -> SessionOpened:
    """The first entry of a session, as it would be written again."""
    return SessionOpened(
        seq=1,
        at=journal.latest_at,
        session_id=journal.state.session_id,
        user_id=journal.state.user_id,
        spec=journal.spec,
        search_attributes=journal.search_attributes,
        parent=journal.parent,
    )


OPERATIONS_AT_ONCE = 200
BYTES_AT_ONCE = 4_000_000
MARKS_AT_ONCE = 20_000
"""Of JSON's marks between values."""


@dataclass(frozen=True, slots=True)
class OperationLoad:
    operations: int = 0
    bytes: int = 0
    marks: int = 0

    @classmethod
    def of(cls, arguments: Sequence[RawValue]) -> "OperationLoad":
        texts = [argument.payload.data for argument in arguments]
        return cls(1, sum(map(len, texts)), sum(text.count(mark) for text in texts for mark in (b",", b"[", b"{")))

    def __add__(self, other: "OperationLoad") -> "OperationLoad":
        return OperationLoad(self.operations + other.operations, self.bytes + other.bytes, self.marks + other.marks)

    @property
    def fits(self) -> bool:
        """A first operation always does."""
        few = self.operations <= OPERATIONS_AT_ONCE and self.bytes <= BYTES_AT_ONCE and self.marks <= MARKS_AT_ONCE
        return few or self.operations <= 1


class Turns:
    def __init__(self) -> None:
        self._queue: deque[tuple[OperationLoad, asyncio.Future[None]]] = deque()
        self._task = -1
        """Length of the history at the task that `_taken` is about: no two tasks have the same."""
        self._taken = OperationLoad()
        self._unread = 0
        self._passing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether an operation has come that is not read: a run may not end before it is."""
        return self._unread > 0

    async def take(self, arguments: Sequence[RawValue]) -> None:
        """Returns when the operation's turn has come; whoever called reads it at once."""
        load = OperationLoad.of(arguments)
        if not self._queue and self._fits(load):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((load, turn))
        self._unread += 1
        if self._passing is None:
            self._passing = asyncio.create_task(self._pass())
        await turn
        self._unread -= 1

    async def all_read(self) -> None:
        await workflow.wait_condition(lambda: not self._unread)

    async def _pass(self) -> None:
        while self._queue:
            await workflow.sleep(timedelta(milliseconds=1))  # a timer that fires begins another task
            while self._queue and self._fits(self._queue[0][0]):
                self._queue.popleft()[1].set_result(None)
        self._passing = None

    def _fits(self, load: OperationLoad) -> bool:
        task = workflow.info().get_current_history_length()
        taken = load if task != self._task else self._taken + load
        if not taken.fits:
            return False
        self._task, self._taken = task, taken
        return True
