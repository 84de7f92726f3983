"""Odd text in a log or in a failure ends no run."""

import subprocess
import sys
from pathlib import Path

from tests.suite.reports import CAUSE

ROOT = Path(__file__).parents[2]
ODD = r"""
import logging

def test_logs(): logging.getLogger("odd").warning("half \ud800 of a pair")

def test_fails(): raise ValueError("half \udfff of a pair")

def test_is_run_too(): pass
"""

PARSES = """
import ast, gc

parsing = False

def parse(phase, info):
    global parsing
    if phase == "start" and not parsing:
        parsing = True
        ast.parse("1 + (2 * (3 - 4))")
        parsing = False

def test_fails():
    gc.callbacks.append(parse)
    gc.set_threshold(50)
    raise ValueError("fog")

def test_is_run_too(): gc.callbacks[:] = []
"""


def run(folder: Path) -> str:
    """What pytest says of a folder of tests that another process runs."""
    plugins = ("-p", "tests.suite.reports", "-p", "no:schemathesis")
    command = [sys.executable, "-m", "pytest", "-n", "1", *plugins, "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_lone_surrogates_in_logs_and_failures_reach_the_report(tmp_path: Path) -> None:
    (tmp_path / "test_odd.py").write_text(ODD)

    said = run(tmp_path)

    assert "1 failed, 2 passed" in said
    assert r"half \udfff of a pair" in said
    assert "INTERNALERROR" not in said


def test_what_is_parsed_meanwhile_breaks_nothing_off(tmp_path: Path) -> None:
    (tmp_path / "test_parses.py").write_text(PARSES + "tides = [1, (2, [3, 4])]\n" * 200)

    said = run(tmp_path)

    assert "1 failed, 1 passed" in said
    assert "SystemError" not in said


def test_what_broke_pytest_off_is_written_down(tmp_path: Path) -> None:
    (tmp_path / "test_any.py").write_text("def test_any(): pass")
    (tmp_path / "conftest.py").write_text("def pytest_runtest_logreport(report): raise OSError('no room')")

    said = run(tmp_path)

    assert "INTERNALERROR" in said
    assert "OSError: no room" in (tmp_path / ".pytest_cache" / CAUSE).read_text()
