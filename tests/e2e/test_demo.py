"""`make demo`: the first thing that anybody sees has to work, with and without a terminal."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import ROOT, running_with

pytestmark = pytest.mark.server

DEMO = [sys.executable, "-P", "-m", "longhaul.starter.demo"]


@pytest.fixture
def environment(temporal_cli: Path, tmp_path: Path) -> dict[str, str]:
    """As a user has it, but with temporary files where the test sees them."""
    return os.environ | {
        "LONGHAUL_TEMPORAL_CLI": str(temporal_cli),
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(tmp_path),
        "TERM": "xterm",
        # Must not lead the demo to somebody's real server.
        "TEMPORAL_ADDRESS": "127.0.0.1:1",
        "LONGHAUL_TASK_QUEUE": "somebody-elses",
    }


def at_a_terminal(command: list[str], environment: dict[str, str], answer: str, end: str) -> tuple[int, str]:
    """Exit code, and what a terminal showed. `answer` is typed at the question; at the text `end` SIGINT is sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, asked, ended = "", False, False
    while data := _read(ours):
        shown += data
        if not asked and "[Y/n]" in shown:
            asked = os.write(ours, answer.encode()) > 0
        if not ended and end in shown:
            ended = True
            process.send_signal(signal.SIGINT)
    os.close(ours)
    return process.wait(), shown


def _read(terminal: int) -> str:
    """Empty when the program has left the terminal."""
    try:
        return os.read(terminal, 65_536).decode(errors="replace")
    except OSError:  # how Linux says that the other side is closed
        return ""


def test_the_demo_fixes_the_project_without_a_terminal(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        DEMO, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 processes killed" in done.stdout
    assert "✗ Bash python3 -m unittest" in done.stdout
    assert "FAILED (failures=1)" in done.stdout
    assert "+    if goods_cents >= FREE_FROM_CENTS:" in done.stdout
    assert "the tests are green, and the edit was made exactly once" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.glob("longhaul-demo-*")) == []
    assert running_with(str(tmp_path)) == []


def test_a_person_who_says_no_ends_the_demo(environment: dict[str, str], tmp_path: Path) -> None:
    code, shown = at_a_terminal(DEMO, environment, answer="n\n", end="never shown")

    assert code == 1, shown
    assert "you denied it, so the file stays as it was" in shown
    assert "green" not in shown
    assert running_with(str(tmp_path)) == []


def test_a_person_says_yes_with_enter_and_looks_around(environment: dict[str, str], tmp_path: Path) -> None:
    code, shown = at_a_terminal([*DEMO, "--keep"], environment, answer="\n", end="Ctrl-C stops it")

    assert code == 0, shown
    assert "the tests are green, and the edit was made exactly once" in shown
    assert running_with(str(tmp_path)) == []
