"""The durable timers of a session: one for the earliest thing that is due, and none when nothing ever will be; and one
for the time when it has been idle for long; and of a sub-agent one for the end of its task.

Metrics that only a session knows: how long its calls have waited. The SDK's meter counts nothing at a replay.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import workflow

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import next_due, reached, retry_is_due, sleep_is_over
from longhaul.agent.decisions.model_turn import task_is_over, task_under_way
from longhaul.agent.decisions.subagent_start import ends_with_report
from longhaul.agent.entries import AnyEntry
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.views.session_views import waits_ended

SHORTEST_SECONDS = 0.001
"""The SDK makes no timer of a shorter time, and one that is overdue has to fire."""

MIN_SLEEP_SECONDS = 1.0
"""A session that may not close yet is not asked more often."""
LOOK_AGAIN_SECONDS = 3_600.0
"""How often one is asked that has been idle for long enough and could not close."""

Beside = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class DeadlineClock:
    """Set it at each pause of the session. It writes an entry when something is due, whatever else happens then."""

    def __init__(self, journal: Journal, write: Callable[[e.AnyEntry], None], beside: Beside) -> None:
        self._journal = journal
        self._write = write
        self._beside = beside
        self._running: asyncio.Task[None] | None = None
        self._aim: int | None = None
        """Milliseconds since 1970."""

    def set(self) -> None:
        """Start, move or stop the timer. It is left alone while it is right, for each one costs two events."""
        due = next_due(self._journal)
        if due == self._aim:
            return
        if self._running is not None:
            self._running.cancel()
        self._aim = due
        self._running = self._beside(self._fire_at(due)) if due is not None else None

    async def _fire_at(self, due: int) -> None:
        left = due / 1000 - workflow.time()
        what = "wake-up of a call that sleeps" if sleep_is_over(self._journal, due) else "deadline of a call that waits"
        await workflow.sleep(max(left, SHORTEST_SECONDS), summary=what)
        self._running, self._aim = None, None
        # Decided or answered in the meantime: then nothing is due any more, and what came first has won.
        now = workflow.time_ns() // 1_000_000
        if due_now := reached(self._journal, now):
            self._write(e.DeadlineReached(due=due_now))
        elif retry_is_due(self._journal, now) or sleep_is_over(self._journal, now):
            self._write(e.TimeReached())
        else:
            self.set()


class TaskClock:
    """Ends the task of a sub-agent when its time is over, whatever the session does then. One timer in each run, and
    none where the task has no such time."""

    def __init__(
        self, journal: Journal, write: Callable[[e.AnyEntry], None], beside: Beside, interrupt: Callable[[], None]
    ) -> None:
        """`interrupt`: cancels what is under way for the reply."""
        self._journal = journal
        self._write = write
        self._beside = beside
        self._interrupt = interrupt
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """To be called at the begin of a run, and when an earlier incarnation was found."""
        parent = self._journal.parent
        if self._running is None and parent is not None and parent.ends_at and not task_is_over(self._journal):
            self._running = self._beside(self._end_at(parent.ends_at))

    async def _end_at(self, moment: int) -> None:
        left = moment / 1000 - workflow.time()
        await workflow.sleep(max(left, SHORTEST_SECONDS), summary="the time of the task")
        # A session that does not know yet whether it has started before has no reply that could end.
        await workflow.wait_condition(lambda: task_is_over(self._journal) or self._journal.reply is not None)
        if (reply := task_under_way(self._journal)) is not None:
            self._write(e.InterruptAsked(reply_id=reply.reply_id, overdue=True))
            self._interrupt()


class IdleClock:
    """Wakes a session that has been idle for as long as its agent allows; one timer, whatever happens."""

    def __init__(self, journal: Journal, write: Callable[[e.AnyEntry], None], beside: Beside) -> None:
        self._journal = journal
        self._write = write
        self._beside = beside
        self._running: asyncio.Task[None] | None = None
        self._limit = 0
        """Seconds; 0 = it may be idle for ever."""
        self._started = False

    def start_at_once(self) -> None:
        """To be called at the begin of a run. A sub-agent that closes with its task needs no timer for most of its
        life."""
        if self._journal.parent is None or not self._journal.parent.by_result:
            self._start()

    def start_late(self) -> None:
        """For a sub-agent that is kept open behind its task."""
        if not self._started and self._journal.reply is None and not ends_with_report(self._journal):
            self._start()

    def _start(self) -> None:
        self._started = True
        self._limit = self._journal.spec.idle_close_seconds
        self._running = self._beside(self._watch(self._limit)) if self._limit else None

    def follow(self) -> None:
        """To be called when an earlier incarnation was found: its agent may have another limit, or one at all."""
        if self._journal.spec.idle_close_seconds == self._limit:
            return
        if self._running is not None:
            self._running.cancel()
        self._start()

    async def _watch(self, limit: int) -> None:
        again = 0.0
        while True:
            left = max(self._journal.keeping.active_at / 1000 + limit, again) - workflow.time()
            await workflow.sleep(max(left, MIN_SLEEP_SECONDS), summary="look whether it has been idle for too long")
            if self._journal.keeping.active_at / 1000 + limit <= workflow.time():
                self._write(e.TimeReached())
                # A session that waits for a person for weeks, or for a store, would else count the seconds.
                again = workflow.time() + min(limit, LOOK_AGAIN_SECONDS)


NAME = "longhaul_wait_seconds"


def tell_waits(session: SessionState, entry: AnyEntry, now: int) -> None:
    """Before the entry is written: then the calls wait still. Where nobody measures, nothing is recorded."""
    for wait in waits_ended(session, entry, now):
        seconds = workflow.metric_meter().create_histogram_float(NAME, unit="s")
        seconds.record(wait.seconds, {"tool": wait.tool, "waits_for": wait.waits_for, "outcome": wait.outcome})
