"""Plain commands that change nothing and should not bother anyone."""

import json
import time
from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext
from tests.activities.corpora.stage import build, corpus
from tests.limits import usual

BASH = ToolDescriptor(name="Bash")

LINES = [line.text for line in corpus("benign.txt")]


@pytest.fixture(autouse=True)
def _programs_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine's version managers, which choose programs by the folder, are asked about."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    (root / "src").mkdir()
    (root / ".git").mkdir()
    for name in ("README.md", "data.csv", "data.json", "src/app.py"):
        (root / name).write_text("a,b\n")
    return root


def _behavior(line: str, root: Path) -> Behavior:
    analysis = examine_command(line, root, root)
    return decide_call(BASH, json.dumps({"command": line}), analysis, PermissionContext(), str(root)).behavior


def test_at_most_one_plain_command_in_twenty_is_asked_about(workspace: Path) -> None:
    asked = [line for line in LINES if _behavior(line, workspace) is not Behavior.ALLOW]

    assert len(LINES) >= 350
    assert len(asked) <= len(LINES) * 0.02, asked
    assert {"env | sort", "make -n"} <= set(asked)


def test_it_stays_so_in_a_repository_that_tracks_secrets(tmp_path: Path) -> None:
    root = build(tmp_path).root

    asked = [line for line in LINES if _behavior(line, root) is not Behavior.ALLOW]

    # Of these two the one prints the environment and the other may run what a file says: they are no plain reads.
    assert len(set(asked) - {"env | sort", "make -n"}) <= len(LINES) * 0.05, asked
    assert {"git diff", "grep -rn TODO .", "env | sort"} <= set(asked)


def test_a_thousand_decisions_are_timed(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixed = (LINES + [f"{line} && npm run build" for line in LINES] + [f"echo $({line})" for line in LINES]) * 3
    seconds = []
    for line in mixed[:1000]:
        started = time.perf_counter()
        _behavior(line, workspace)
        seconds.append(time.perf_counter() - started)

    seconds.sort()
    with capsys.disabled():
        print(f"\n{len(seconds)} decisions: p50 {seconds[499] * 1e3:.2f} ms, p95 {seconds[949] * 1e3:.2f} ms")
    assert len(seconds) == 1000
    assert seconds[499] < usual(0.1)
