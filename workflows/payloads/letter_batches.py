"""Bounds how many letters are read in one workflow task. The SDK fails a task that takes two seconds, and the letters
are in the history: with too many of them in one task, every attempt would fail like the first. What is too much for one
task waits for the next, in the order of arrival, and none is lost."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RawValue

LETTERS_AT_ONCE = 200
BYTES_AT_ONCE = 4_000_000
MARKS_AT_ONCE = 20_000
"""Of JSON's marks between values."""


@dataclass(frozen=True, slots=True)
class LetterLoad:
    letters: int = 0
    bytes: int = 0
    marks: int = 0

    @classmethod
    def of(cls, arguments: Sequence[RawValue]) -> "LetterLoad":
        texts = [argument.payload.data for argument in arguments]
        return cls(1, sum(map(len, texts)), sum(text.count(mark) for text in texts for mark in (b",", b"[", b"{")))

    def __add__(self, other: "LetterLoad") -> "LetterLoad":
        return LetterLoad(self.letters + other.letters, self.bytes + other.bytes, self.marks + other.marks)

    @property
    def fits(self) -> bool:
        """A first letter always does."""
        few = self.letters <= LETTERS_AT_ONCE and self.bytes <= BYTES_AT_ONCE and self.marks <= MARKS_AT_ONCE
        return few or self.letters <= 1


class Turns:
    def __init__(self) -> None:
        self._queue: deque[tuple[LetterLoad, asyncio.Future[None]]] = deque()
        self._task = -1
        """Length of the history at the task that `_taken` is about: no two tasks have the same."""
        self._taken = LetterLoad()
        self._unread = 0
        self._passing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether a letter has come that is not read: a run may not end before it is."""
        return self._unread > 0

    async def take(self, arguments: Sequence[RawValue]) -> None:
        """Returns when the letter's turn has come; whoever called reads it at once."""
        load = LetterLoad.of(arguments)
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

    def _fits(self, load: LetterLoad) -> bool:
        task = workflow.info().get_current_history_length()
        taken = load if task != self._task else self._taken + load
        if not taken.fits:
            return False
        self._task, self._taken = task, taken
        return True
