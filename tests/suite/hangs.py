"""A plugin: a test that hangs where no exception reaches it ends its process, with what each thread was doing. A run of
several processes, of which none says anything any more, is ended.

tests/limits.py and pytest-timeout raise in a test that takes too long, once. What hangs then in a fixture's end, or in
a call that heeds no signal, would hold the whole run up for ever. pytest-xdist counts such a test as failed, and runs
the rest of its file in a new process. Silence has causes outside of a test: tests/suite/again.py makes such a run
again.
"""

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Generator

import pytest

from tests.suite.reports import write_cause

HANG_SECONDS = 150.0
"""So long after its own time a test may still end: LAST_RESORT_SECONDS of these by itself, the rest for fixtures."""

SILENT_SECONDS = 600.0
"""Of a run in several processes: none of its tests takes so long."""

_stderr = pytest.StashKey[int]()


class Silence:
    """In the process that hears of the others' tests: ends the run when it has heard nothing for long."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._heard_at = time.monotonic()
        self._running: set[str] = set()
        self._over = threading.Event()
        threading.Thread(target=self._listen, name="silence", daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._heard_at = time.monotonic()
        self._running.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._heard_at = time.monotonic()
        self._running.discard(nodeid)

    def pytest_sessionfinish(self) -> None:
        self._over.set()

    def _listen(self) -> None:
        while not self._over.wait(SILENT_SECONDS / 20):
            if time.monotonic() - self._heard_at > SILENT_SECONDS:
                running = ", ".join(sorted(self._running)) or "none"
                said = f"nothing was heard for {SILENT_SECONDS:g} s; tests that had started: {running}"
                print(f"\n{said}", file=sys.__stderr__, flush=True)
                write_cause(self._config, said)
                os.kill(os.getpid(), signal.SIGINT)
                return


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(Silence(config))
    # Now, because a test's own is written down and shown with its report, which there will be none of.
    config.stash[_stderr] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _end_later(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """pytest takes the time back at a failure, for a debugger: its fixtures still have to end."""
    if isinstance(node, pytest.Item) and not node.config.getoption("usepdb"):
        _end_later(node)


def _end_later(item: pytest.Item) -> None:
    mark = item.get_closest_marker("timeout")
    seconds = float(mark.args[0] if mark else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(seconds + HANG_SECONDS, exit=True, file=item.config.stash[_stderr])
