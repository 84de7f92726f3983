"""Limits the workflow tasks that a worker takes at once and the runs that it keeps in memory, and says when it falls
behind."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client
from temporalio.common import MetricMeter
from temporalio.service import RPCError
from temporalio.worker import PollerBehaviorSimpleMaximum

from longhaul.starter.connection.pollers import Backlog, backlog_of

log = logging.getLogger(__name__)

TASKS_AT_ONCE = 8
"""Workflow tasks that a worker holds, those that its polls wait for included. Each session that is not in memory has
its whole history replayed first, which costs ten to a hundred times what a step does, and all replays compete for the
one interpreter of the process, while the server gives each of them the same few seconds. A hundred at once, which is
the SDK's number, end too late after a restart under load, and begin again, for ever. More than these end no sooner."""
POLLS_OF_OWN = 4
"""Polls for sessions that are in memory; each holds one of the places, so replays hardly ever get all of them."""

LIMITS: dict[str, Any] = {
    # One poll more, for sessions that no worker has in memory: the SDK rounds its share of them down, but to no less.
    "workflow_task_poller_behavior": PollerBehaviorSimpleMaximum(POLLS_OF_OWN + 1),
    "nonsticky_to_sticky_poll_ratio": 0.0,
}
"""Of a worker of the SDK, beside the number of its slots (`activity_slots`)."""

LOOK_SECONDS = 10.0
BEHIND_SECONDS = 10.0
"""A task that has waited for so long says that its queue has too few workers, or too slow ones."""
SAY_AGAIN_SECONDS = 60.0
WAITED = "longhaul_backlog_seconds"
WAITING = "longhaul_backlog_tasks"
KINDS = {
    "workflow": TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    "activity": TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
}
"""By the word for it in the log and in the metrics."""


class FallingBehind:
    """Says when tasks wait for longer than they should: at once, then each minute, and when it is over. Counts it in
    the metrics too."""

    def __init__(self, queue: str, meter: MetricMeter, now: Callable[[], float] = time.monotonic) -> None:
        self._queue = queue
        self._now = now
        self._waited = meter.create_gauge_float(WAITED, "how long the oldest task has waited for a worker", "s")
        self._waiting = meter.create_gauge(WAITING, "tasks that wait for a worker")
        self._said = dict[str, float]()
        """By kind, of those that were behind when it was looked last: when that was said."""

    def seen(self, kind: str, backlog: Backlog) -> None:
        labels = {"task_queue": self._queue, "task_kind": kind}
        self._waited.set(backlog.oldest.total_seconds(), labels)
        self._waiting.set(backlog.tasks, labels)
        if backlog.oldest.total_seconds() < BEHIND_SECONDS:
            if self._said.pop(kind, None) is not None:
                log.warning("%s tasks of the queue %r are no longer late", kind, self._queue)
            return
        if kind in self._said and self._now() - self._said[kind] < SAY_AGAIN_SECONDS:
            return
        self._said[kind] = self._now()
        log.warning(
            "the workers of the queue %r fall behind: %d %s tasks wait, the oldest for %.0f s; nothing is lost, but "
            "sessions wait their turn; start more workers, or give these more of the processor",
            self._queue,
            backlog.tasks,
            kind,
            backlog.oldest.total_seconds(),
        )


async def watch_backlog(client: Client, queue: str, behind: FallingBehind) -> None:
    """Look at the queue every now and then, until cancelled. A server that does not say is asked the next time."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for kind, of_server in KINDS.items():
            try:
                behind.seen(kind, await backlog_of(client, queue, of_server))
            except RPCError as error:
                log.debug("the number of tasks that wait in %r is unknown: %s", queue, error)


KEPT = 100
"""Of those that wait, the ones that did something last. Each costs some 130 KiB of memory; any other costs a replay of
its few last events, some 20 ms, when it goes on."""


class ParkedRuns:
    """For `workflows.unbegun_task_guard`, which tells of each run whether it waits. Called from workflows' threads."""

    def __init__(self, forget: Callable[[str], None], kept: int = KEPT) -> None:
        self._forget, self._kept = forget, kept
        self._waiting = dict[str, None]()
        """Run ids, the one that has waited for longest first. To forget one of those that are over does nothing."""
        self._lock = threading.Lock()

    def told(self, run_id: str, *, waits: bool) -> None:
        """The run has done what there was to do; `waits`: nothing that it has started is under way."""
        with self._lock:
            self._waiting.pop(run_id, None)
            if not waits:
                return
            self._waiting[run_id] = None
            longest = next(iter(self._waiting)) if len(self._waiting) > self._kept else None
            if longest is not None:
                del self._waiting[longest]
        if longest is not None:
            self._forget(longest)
