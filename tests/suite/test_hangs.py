"""A test that no signal reaches ends, and the others are run."""

import subprocess
import sys
from pathlib import Path

from tests.suite.again import INTERRUPTED, broke_off

ROOT = Path(__file__).parents[2]
PLUGINS = ("-p", "tests.suite.hangs", "-p", "no:schemathesis")
HANGS = """
import signal, threading
import pytest
import tests.suite.hangs

tests.suite.hangs.HANG_SECONDS = 1.0

@pytest.fixture
def deaf():
    yield
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    threading.Event().wait()

@pytest.mark.timeout(1)
def test_hangs_behind_its_failure(deaf): raise ValueError("fog")

@pytest.mark.timeout(1)
def test_hangs(deaf): pass

def test_is_run_too(): pass
"""


def test_what_hangs_is_ended_with_what_it_was_doing(tmp_path: Path) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    command = [sys.executable, "-m", "pytest", "-n", "1", *PLUGINS, "-o", "timeout=30"]

    run = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert "crashed while running 'test_hangs.py::test_hangs'" in run.stdout
    assert "crashed while running 'test_hangs.py::test_hangs_behind_its_failure'" in run.stdout
    assert "3 failed, 2 passed" in run.stdout
    assert run.stderr.count("in deaf") == 2


BETWEEN = """
import threading
import tests.suite.hangs

tests.suite.hangs.SILENT_SECONDS = 3.0

def pytest_runtest_logfinish(nodeid, location):
    import os
    if "PYTEST_XDIST_WORKER" in os.environ: threading.Event().wait()
"""


def test_a_run_that_says_nothing_any_more_is_ended_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "test_any.py").write_text("def test_one(): pass\ndef test_two(): pass")
    (tmp_path / "conftest.py").write_text(BETWEEN)
    command = [sys.executable, "-m", "pytest", "-n", "1", *PLUGINS, "-p", "no:randomly"]

    run = subprocess.run(
        [*command, "-o", "timeout=30", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert run.returncode == INTERRUPTED
    assert "nothing was heard for 3 s; tests that had started: " in broke_off(tmp_path / ".pytest_cache")
