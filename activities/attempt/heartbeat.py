"""Heartbeats while an activity works, from the worker's own loop: no tool and no provider runs on it.

Each is a request and a write on the server, and is billed: they come as seldom as a death must be noticed. That an
activity was cancelled is learnt with a beat, so whoever hears of a cancellation pokes: then a beat comes at once.

Word between workers that calls of a session were cancelled: who runs them asks the server at once.

Without it they learn of it with their next heartbeat. The word may get lost, and nothing is done on it but to ask.

A long call notes how far it has come with its heartbeats, and the attempt that goes on after it gets the notes.

For tools that may run more than once. What is noted is not in the history; it lies on the server until the call has
ended, with the worker's secrets masked.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

from temporalio import activity

from longhaul.activities.masker import Masker
from longhaul.stores.streams.streams import Streams, StreamsUnavailable, key_of

BEATS_PER_TIMEOUT = 2.5
"""So one may be lost."""
LONG_PAUSE_SECONDS = 15.0
"""Where as much of the timeout is left after it. A model call of ten seconds costs no beat then."""
NOTED_PAUSE_SECONDS = 1.0
"""At most, for a call that has new details to tell: they are lost with its worker as far as no beat has taken them."""
AFTER_A_POKE_SECONDS = (0.02, 0.12, 0.4, 1.2)
"""When to beat: the word of a cancellation may come before the server has written it down."""


class Stalled(Exception):
    """This attempt could not beat in time: the server has given it up, so it stops itself before it does harm."""


@asynccontextmanager
async def beating(
    details: Callable[[], tuple[str, ...]] = tuple, presses: Callable[[], object] | None = None
) -> AsyncIterator[None]:
    """Beat until the block is left, each time with these details, and at once when what `presses` gives has changed:
    the details, if it is not given. Cancels the block, and raises Stalled, when beats came too late."""
    timeout = activity.info().heartbeat_timeout
    if timeout is None:
        yield
        return
    watch = _Watch(timeout.total_seconds(), details, presses or details)
    _watching.add(watch)
    for started in _listening:
        started.set()
    try:
        yield
    except asyncio.CancelledError:
        if watch.late and not activity.is_cancelled():
            raise Stalled(f"no heartbeat left this worker for {watch.late:.1f} s") from None
        _last_beat(details)
        raise
    except Exception:
        _last_beat(details)
        raise
    finally:
        _watching.remove(watch)
        watch.end()


def _last_beat(details: Callable[[], tuple[str, ...]]) -> None:
    if last := details():
        activity.heartbeat(*last)  # the attempt after this one begins where this one was cut short


def pause_seconds(timeout: float) -> float:
    """Between beats of a call that counts as lost after so many seconds without one."""
    return max(timeout / BEATS_PER_TIMEOUT, min(timeout - LONG_PAUSE_SECONDS, LONG_PAUSE_SECONDS))


def poke(workflow_id: str) -> None:
    """Let what this worker runs of the workflow beat now, and a few times soon: it may have been cancelled. On the
    worker's loop."""
    for watch in _watching:
        if watch.workflow_id == workflow_id:
            for seconds in AFTER_A_POKE_SECONDS:
                watch.poke_within(seconds)


def poke_all() -> None:
    """Let all that this worker runs beat now: the server may have given it to another worker."""
    for watch in _watching:
        watch.poke_within(0)


def calls() -> int:
    """How many activities that beat run on this worker."""
    return len(_watching)


async def some_call() -> None:
    """Return when an activity runs on this worker that beats."""
    started = asyncio.Event()
    _listening.add(started)
    try:
        while not _watching:
            started.clear()
            await started.wait()
    finally:
        _listening.discard(started)


class _Watch:
    """Timers, and no task of its own: most calls are done before their first beat is due."""

    def __init__(self, timeout: float, details: Callable[[], tuple[str, ...]], presses: Callable[[], object]) -> None:
        self._details, self._presses = details, presses
        self._told: object = presses() if not details() else None
        self.workflow_id = activity.info().workflow_id
        self.late = 0.0
        self._timeout, self._pause = timeout, pause_seconds(timeout)
        self._between = self._pause if details is tuple else NOTED_PAUSE_SECONDS
        self._block = asyncio.current_task()
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._armed()

    def poke_within(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._poked, context=self._context)

    def end(self) -> None:
        self._timer.cancel()
        self._block = None

    def _armed(self) -> asyncio.TimerHandle:
        due = min(self._last + self._pause, self._loop.time() + self._between)
        return self._loop.call_at(due, self._look, context=self._context)

    def _look(self) -> None:
        """Beat when the pause is over, or there are new details."""
        if self._loop.time() >= self._last + self._pause or self._presses() != self._told:
            self._beat()
        else:
            self._timer = self._armed()

    def _poked(self) -> None:
        if self._block is not None:
            self._timer.cancel()
            self._beat()

    def _beat(self) -> None:
        # The first beat comes after the first pause: a call that is done by then costs the server no heartbeat at all.
        # After a stall there is no pause left to make, so that the block is cancelled before it comes to do more.
        self._told = self._presses()
        activity.heartbeat(*self._details())
        gap, self._last = self._loop.time() - self._last, self._loop.time()
        if gap > self._timeout and self._block is not None:
            self.late = gap
            block, self._block = self._block, None
            block.cancel()
            return
        self._timer = self._armed()


_watching = set[_Watch]()
"""Of the calls that run on this worker."""
_listening = set[asyncio.Event]()
"""Of those who wait for a call."""


AGAIN_SECONDS = 5.0
"""Before an unreachable store is tried again."""
READ_SECONDS = 5.0
BRIEF_SECONDS = 0.05
"""Before the store is looked at for calls that have started: most calls of tools are over by then. No word is
lost by it: a reader begins with the first that is there."""

log = logging.getLogger(__name__)


class CancelHints:
    """Of the workers of one task queue, which share a store of live streams."""

    def __init__(self, streams: Streams, namespace: str, task_queue: str) -> None:
        self._streams = streams
        self._key = key_of(namespace, f"hints/{task_queue}")
        """No session's: theirs begin with `longhaul/`."""
        self._loop = asyncio.get_running_loop()
        self._telling = set[asyncio.Task[None]]()

    def tell(self, workflow_id: str) -> None:
        """That a workflow cancels activities. From the thread in which it runs; returns at once."""
        self._loop.call_soon_threadsafe(self._tell, workflow_id)

    def _tell(self, workflow_id: str) -> None:
        poke(workflow_id)
        task = self._loop.create_task(self._append(workflow_id))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _append(self, workflow_id: str) -> None:
        try:
            await self._streams.append(self._key, workflow_id.encode("utf-8", "replace") + b"\n")
        except StreamsUnavailable as error:
            log.info("other workers hear of an interrupt with their next heartbeat: %s", error)

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Listen while the block runs, and look at the store only while a call runs here."""
        hearing = asyncio.create_task(self._hear())
        try:
            yield
        finally:
            hearing.cancel()
            await asyncio.wait((hearing, *self._telling))

    async def _hear(self) -> None:
        """Until it is cancelled. Whatever befalls the store: who gave up would hear of no interrupt before its next
        heartbeat as long as the worker lives."""
        while True:
            await some_call()
            await asyncio.sleep(BRIEF_SECONDS)
            try:
                await self._hear_while_a_call_runs()
            except StreamsUnavailable:
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception:
                log.exception("the store of interrupts could not be read; trying again")
                await asyncio.sleep(AGAIN_SECONDS)

    async def _hear_while_a_call_runs(self) -> None:
        reader = self._streams.reader(self._key)
        try:
            while calls():
                for line in await reader.read(READ_SECONDS, gently=True):
                    poke(line.decode("utf-8", "replace"))
        finally:
            await reader.close()


LONGEST_NOTE_CHARACTERS = 10_000


class Notes:
    """What one attempt has noted, as JSON text."""

    def __init__(self, masker: Masker, before: str) -> None:
        self._masker = masker
        self._text = before

    def note(self, value: Any) -> None:
        text = json.dumps(value)
        if len(text) > LONGEST_NOTE_CHARACTERS:
            raise ValueError(f"a note of {len(text)} characters is too long; {LONGEST_NOTE_CHARACTERS} is the most")
        self._text = self._masker.masked(text)

    def noted(self) -> Any:
        try:
            return json.loads(self._text) if self._text else None
        except ValueError:
            return None  # masked in a way that is no JSON any more

    def details(self) -> tuple[str, ...]:
        """What each heartbeat carries: the server keeps that of the newest one alone."""
        return (self._text,) if self._text else ()


_running: ContextVar[Notes] = ContextVar("notes of the running call")


def note(value: Any) -> None:
    """Save how far this call has come: any JSON value, which replaces the one before. The next heartbeat takes it to
    the server within a second. Raises ValueError if it is too long, TypeError if it is no JSON."""
    if notes := _running.get(None):
        notes.note(value)


def noted() -> Any:
    """The value that was noted last, by this attempt or by an attempt before it that was cut short. None: there is
    none."""
    notes = _running.get(None)
    return notes.noted() if notes else None


@contextmanager
def attempt_noting(masker: Masker) -> Iterator[Notes]:
    """Within the block, `note` and `noted` are about the running activity."""
    details = activity.info().heartbeat_details
    notes = Notes(masker, details[0] if details and isinstance(details[0], str) else "")
    token = _running.set(notes)
    try:
        yield notes
    finally:
        _running.reset(token)
