"""Keeps few of the runs that wait in a worker's memory: for a person, an hour, or the next request."""

import threading
from collections.abc import Callable

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
        """The run has done what there was to do; `waits`: nothing that it has begun is under way."""
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
