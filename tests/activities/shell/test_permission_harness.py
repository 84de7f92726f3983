"""What passes unasked is run, and proven to be harmless: nothing changes, nothing secret is shown, nobody is called."""

import json
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode
from tests.activities.corpora.harness import Listener, listening, picture, run
from tests.activities.corpora.mixing import mixed
from tests.activities.corpora.stage import SECRET, Line, Stage, build, corpus

BASH = ToolDescriptor(name="Bash")
ASKING = [mode for mode in PermissionMode if mode is not PermissionMode.BYPASS]
LINES = corpus("benign.txt")
"""All that passes: of the hostile ones none does, as their own test says."""
PORTION = 60
MIXED_LINES = 150
ENVIRONMENT_SECRET = "quince-9281"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = build(tmp_path)
    monkeypatch.setenv("HOME", str(stage.home))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "LONGHAUL_REDIS_URL"):
        monkeypatch.setenv(name, ENVIRONMENT_SECRET)
    return stage


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async with listening() as listener:
        yield listener


def _passes(text: str, stage: Stage, modes: Sequence[PermissionMode]) -> CallAnalysis | None:
    """The findings on a line that one of the modes lets run unasked."""
    analysis = examine_command(text, stage.root, stage.root)
    said = {
        decide_call(
            BASH, json.dumps({"command": text}), analysis, PermissionContext(mode=mode), str(stage.root)
        ).behavior
        for mode in modes
    }
    return analysis if Behavior.ALLOW in said else None


@pytest.mark.parametrize("first", range(0, len(LINES), PORTION))
async def test_what_is_read_unasked_changes_nothing_and_shows_no_secret(
    first: int, stage: Stage, listener: Listener
) -> None:
    before = {folder: picture(folder) for folder in (stage.root, stage.home, stage.outside)}
    ran, problems = 0, []

    for line in LINES[first : first + PORTION]:
        text = stage.text(line.text, listener.port)
        if (analysis := _passes(text, stage, ASKING)) is None:
            continue
        ran += 1
        printed = await run(text, stage, analysis)
        if SECRET in printed or ENVIRONMENT_SECRET in printed:
            problems.append(("shows a secret", text))
        for folder, seen in before.items():
            if picture(folder) != seen:
                problems.append(("changes files", text))
                before[folder] = picture(folder)

    assert problems == []
    assert listener.calls == 0
    assert ran >= min(PORTION, len(LINES) - first) * 0.6


@pytest.mark.parametrize("line", corpus("edits.txt"), ids=lambda line: repr(line.text))
async def test_what_is_edited_unasked_lies_in_the_workspace(line: Line, stage: Stage, listener: Listener) -> None:
    text = stage.text(line.text, listener.port)
    before = {folder: picture(folder) for folder in (stage.home, stage.outside)}

    assert _passes(text, stage, [PermissionMode.DEFAULT, PermissionMode.EXPLORE]) is None
    analysis = _passes(text, stage, [PermissionMode.ACCEPT_EDITS])
    assert analysis is not None
    printed = await run(text, stage, analysis)

    assert SECRET not in printed
    assert {folder: picture(folder) for folder in before} == before
    assert listener.calls == 0


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
async def test_what_passes_of_lines_that_nobody_has_written_is_harmless_too(
    seed: int, stage: Stage, listener: Listener
) -> None:
    before = {folder: picture(folder) for folder in (stage.root, stage.home, stage.outside)}
    texts = (stage.text(line, listener.port) for line in mixed(seed))
    passing = (
        (text, analysis) for text in texts if (analysis := _passes(text, stage, [PermissionMode.DEFAULT])) is not None
    )

    for text, analysis in islice(passing, MIXED_LINES):
        printed = await run(text, stage, analysis)

        assert SECRET not in printed, text
        assert ENVIRONMENT_SECRET not in printed, text
        assert {folder: picture(folder) for folder in before} == before, text
        assert listener.calls == 0, text


async def test_the_harness_sees_what_a_line_does_that_is_hostile(stage: Stage, listener: Listener) -> None:
    """Were these let through, the tests above would fail."""
    before = picture(stage.outside)
    text = f"touch gone; cat .env; : > /dev/tcp/127.0.0.1/{listener.port}"

    printed = await run(text, stage, examine_command(text, stage.root, stage.root))

    assert SECRET in printed
    assert picture(stage.outside) != before
    assert listener.calls == 1
