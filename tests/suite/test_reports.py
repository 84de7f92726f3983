"""Odd text in a log or in a failure ends no run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ODD = r"""
import logging

def test_logs(): logging.getLogger("odd").warning("half \ud800 of a pair")

def test_fails(): raise ValueError("half \udfff of a pair")

def test_is_run_too(): pass
"""


def test_lone_surrogates_in_logs_and_failures_reach_the_report(tmp_path: Path) -> None:
    (tmp_path / "test_odd.py").write_text(ODD)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "-p",
        "tests.suite.reports",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]

    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout

    assert "1 failed, 2 passed" in said
    assert r"half \udfff of a pair" in said
    assert "INTERNALERROR" not in said
