"""Sessions whose workers can, or can't, hold what runs unasked in a sandbox."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.agent.values.conversation.messages import ToolResultState
from tests.workflows.conftest import Stage
from tests.workflows.operations import approve_and_finish, calls, results

pytestmark = pytest.mark.server

READS = (
    calls("Bash", command="pwd"),
    calls("Bash", command="cat kept.txt"),
    {"text": "I have read it."},
)


@pytest.fixture
def without_bwrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine whose kernel lets bubblewrap make nothing."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("LONGHAUL_SANDBOX", "proven")
    bwrap_problem.cache_clear()
    yield
    bwrap_problem.cache_clear()


def stage_with_file(stage: Stage) -> Stage:
    (stage.workspace / "kept.txt").write_text("in plain sight\n")
    return stage


async def test_what_only_reads_runs_unasked_in_its_sandbox(stage: Stage, bubblewrap: None) -> None:
    session = stage_with_file(stage).session(*READS, tools=["Bash"])

    done = await session.reply("Read it")

    assert results(done) == [
        (ToolResultState.SUCCESS, str(stage.workspace)),
        (ToolResultState.SUCCESS, "in plain sight"),
    ]


@pytest.mark.usefixtures("without_bwrap")
@pytest.mark.parametrize("mode", ["default", "explore", "plan", "accept_edits"])
async def test_without_one_a_person_is_asked_and_told_why(stage: Stage, mode: str) -> None:
    session = stage_with_file(stage).session(*READS, tools=["Bash"], permission={"mode": mode})

    waiting = await session.reply("Read it")
    (call,) = await session.pending()

    assert results(waiting) == [(ToolResultState.SUCCESS, str(stage.workspace))]
    assert "no sandbox holds it to that: bubblewrap does not work here" in call.reason
    assert call.preview is not None
    assert [part.name for part in call.preview.findings] == ["sandbox", "touches", "commands"]
    assert await approve_and_finish(session, waiting.id) == "I have read it."


@pytest.mark.usefixtures("without_bwrap")
async def test_an_operator_may_do_without_by_name(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"sandbox": "off"})
    session = stage_with_file(unserved).session(*READS, tools=["Bash"])

    async with unserved.another_worker():
        done = await session.reply("Read it")

    assert results(done)[-1] == (ToolResultState.SUCCESS, "in plain sight")


async def test_edits_run_unasked_in_theirs(stage: Stage, bubblewrap: None) -> None:
    session = stage_with_file(stage).session(
        calls("Bash", command="cp kept.txt copy.txt && mkdir -p made && mv copy.txt made"),
        {"text": "Copied."},
        tools=["Bash"],
        permission={"mode": "accept_edits"},
    )

    await session.reply("Copy it")

    assert (stage.workspace / "made" / "copy.txt").read_text() == "in plain sight\n"
