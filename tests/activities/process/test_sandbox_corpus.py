"""Lines that pass unasked say the same in their sandbox as they do without one."""

import asyncio
import difflib
import re
from pathlib import Path

import pytest

from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.tool import ToolCall, ToolOutput
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_analysis import Confined
from tests.activities.corpora.harness import picture
from tests.activities.corpora.stage import Stage, build, corpus

pytestmark = pytest.mark.usefixtures("bubblewrap")

LINES = [line.text for line in corpus("benign.txt")]
PORTION = 40
NOT_THE_SAME = re.compile(r"\bps\b|\bdf\b|\bfree\b|\buptime\b|\btime\b|\bdu\b|\bdate\b|\bblame\b|-laS")
"""They tell of other processes, of mounts, of what the machine does just now, of the time, and of how large covered
files are."""
COVERED = re.compile(r".* (?:\.\.|\.env\.local)|total \d+|\./\.env\.local|link-out/")
"""Lines about the folder around the workspace, a file with secrets, and links that lead out."""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = build(tmp_path)
    monkeypatch.setenv("HOME", str(stage.home))
    return stage


async def _run(text: str, stage: Stage, sandbox: SandboxPolicy, confined: Confined) -> ToolOutput | None:
    """None: it is not proven to only read."""
    bash = Bash(sandbox=sandbox)
    analysis = await bash.examine({"command": text}, stage.place)
    if not analysis.read_only:
        return None
    return await bash.run(ToolCall("call-1", {"command": text}, stage.place, analysis, confined=confined))


@pytest.mark.parametrize("first", range(0, len(LINES), PORTION))
async def test_plain_commands_say_the_same(first: int, stage: Stage) -> None:
    before, compared, differing = picture(stage.root), 0, []

    for text in LINES[first : first + PORTION]:
        ways = (_run(text, stage, SandboxPolicy("off"), ""), _run(text, stage, SandboxPolicy("proven"), "read"))
        outside, held = await asyncio.gather(*ways)
        if outside is None or held is None:
            continue
        compared += 1
        assert held.metadata["sandbox"] == "read"
        one, other = (str(result.output).splitlines() for result in (outside, held))
        if text.startswith("rg "):  # which walks in as many threads as there are processors
            one, other = sorted(one), sorted(other)
        changed = [line[2:] for line in difflib.ndiff(one, other) if line[0] in "+-"]
        if not NOT_THE_SAME.search(text) and not all(COVERED.fullmatch(line) for line in changed):
            differing.append((text, changed))

    assert differing == []
    assert picture(stage.root) == before
    assert compared >= min(PORTION, len(LINES) - first) * 0.6
