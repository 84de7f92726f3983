"""What may be skipped where CI=true: no test of anything that the tests install themselves."""

import os
from collections.abc import Generator

import pytest

LISTED = {
    "only Linux counts what a process writes": "the platform's",
    "only Linux tells a child that its parent died": "the platform's",
    "/proc and prctl are Linux's": "the platform's",
    "/proc is Linux's": "the platform's",
    "only root sees what processes that keep to themselves have open": "the system's: they hide it from their own user",
    "/dev/shm is Linux's": "the platform's",
    "no XFS can be made and mounted": "the system's: it takes root, loop devices and xfsprogs",
    "no share of the processor can be set": "the system's: it takes root and cgroups",
    "tmux is not on PATH": "the system's: a terminal of each test's own stands in for it",
}
"""How reasons end, and why the test can't be had."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.endswith(tuple(LISTED)):
            report.outcome = "failed"
            report.longrepr = f"{reason}\nCI=true skips nothing that tests/suite/skips.py does not list"
    return report
