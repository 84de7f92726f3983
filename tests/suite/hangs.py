"""A plugin: a test that hangs where no exception reaches it ends its process, with what each thread was doing.

tests/limits.py and pytest-timeout raise in a test that takes too long, once. What hangs then in a fixture's end, or in
a call that heeds no signal, would hold the whole run up for ever. pytest-xdist counts such a test as failed, and runs
the rest of its file in a new process.
"""

import faulthandler
import os
from collections.abc import Generator

import pytest

HANG_SECONDS = 150.0
"""So long after its own time a test may still end: LAST_RESORT_SECONDS of these by itself, the rest for fixtures."""

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
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
