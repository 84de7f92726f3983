"""Files of a git repository come back with a copy that goes back to a step; sub-agents work side by side on it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.workspace import Workspace, branch_of
from longhaul.starter.cli.main import app as commands
from longhaul.stores.worktrees import snapshots
from longhaul.stores.worktrees.git import GitProblem, repository_at
from longhaul.stores.worktrees.worktrees import list_worktrees
from tests.stores.worktrees.repositories import FIRST, git, repository, texts
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"mode": "bypass"}


async def typed(command: str, root: Path, *branches: str) -> str:
    """What `longhaul worktree` prints."""
    words = ["worktree", command, *branches, "--repository", str(root), "--json"]
    done = await asyncio.to_thread(CliRunner().invoke, commands, words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.proves("X10")
async def test_a_copy_that_goes_back_to_a_step_has_the_files_of_that_step(stage: Stage) -> None:
    root = repository(stage.folder)
    shows = "cat a.txt poem.txt win.txt"
    lines = [
        calls("Bash", command="echo one > a.txt"),
        calls("Bash", command=f"{shows}; echo two > a.txt; echo Thorn > poem.txt; rm win.txt"),
        {"text": "Done."},
        calls("Bash", command=shows),
        {"text": "Done."},
    ]
    workspace = Workspace(root=str(root), snapshots=True)
    session = stage.session(*lines, tools=("Bash",), permission=FREE, workspace=workspace)
    await session.reply("Begin")

    back = await session.stored.fork(f"{session.id}-back", at=1)
    now = await session.stored.fork(f"{session.id}-now")
    notes = [(await one.status()).note for one in (back, now)]
    first, second = [results(await one.reply("Go on"))[0][1] for one in (back, now)]
    of_back = Path((await back.status()).workspace_root)

    assert "as they were at that step" in notes[0]
    assert "as they are when it begins" in notes[1]
    assert first.startswith("one\nRose\none\r\ntwo\r")
    assert second.startswith("two\nThorn\ncat: win.txt")
    kept = {name: text for name, text in FIRST.items() if name != "win.txt"}
    assert texts(root) == texts(of_back) == {**kept, "a.txt": "two\n", "poem.txt": "Thorn\n"}
    assert git(root, "log", "--oneline").count("\n") == 0


@pytest.mark.proves("X10")
async def test_a_command_in_the_background_spoils_no_files_of_an_earlier_step(stage: Stage) -> None:
    root = repository(stage.folder)
    paint = "echo painted > poem.txt; while [ ! -e go ]; do sleep 0.05; done; echo gone > poem.txt"
    lines = [
        calls("Bash", command="echo one > a.txt"),
        {"tool_calls": [{"id": "bg", "name": "Bash", "input": {"command": paint, "run_in_background": True}}]},
        calls("Bash", command="until grep -q painted poem.txt; do sleep 0.05; done; echo two > a.txt; touch go"),
        {"text": "Done."},
        {"text": "Heard."},
    ]
    workspace = Workspace(root=str(root), snapshots=True)
    session = stage.session(*lines, tools=("Bash",), permission=FREE, workspace=workspace)
    await session.reply("Begin")

    async def over() -> bool:
        return [command.fate for command in (await session.status()).commands] == ["ended"]

    await until(over)
    back = await session.stored.fork(f"{session.id}-back", at=1)
    await back.configure(model=stage.script(lines[0], calls("Bash", command="cat poem.txt"), {"text": "Done."}))
    shown = results(await back.reply("Go on"))[0][1]

    assert "as they were at that step" in (await back.status()).note
    assert shown.strip() == "Rose"
    assert (root / "poem.txt").read_text() == "gone\n"


async def test_without_snapshots_nothing_of_git_is_touched(stage: Stage) -> None:
    root = repository(stage.folder)
    before = git(root, "for-each-ref")
    session = stage.session(
        calls("Bash", command="echo two > a.txt"),
        {"text": "Done."},
        tools=("Bash",),
        permission=FREE,
        workspace=Workspace(root=str(root)),
    )

    await session.reply("Begin")

    assert (git(root, "for-each-ref"), (stage.settings.data_dir / "git").exists()) == (before, False)


@pytest.mark.proves("E12")
async def test_of_two_sub_agents_in_trees_of_their_own_one_is_merged_and_one_thrown_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(stage.folder)
    lead: list[dict[str, Any]] = [
        {
            "tool_calls": [
                {"name": "Agent", "input": {"agent": name, "task": "Write."}} for name in ("gardener", "vandal")
            ]
        },
        {"text": "Both."},
    ]
    agents = {
        name: {
            "description": name,
            "model": stage.script(calls("Bash", command=f"echo {name} > poem.txt"), {"text": "Written."}),
            "tools": ["Bash"],
            "workspace": {"root": "", "place": "worktree"},
        }
        for name in ("gardener", "vandal")
    }
    session = stage.session(
        *lead, tools=("Agent",), agents=agents, permission=FREE, workspace=Workspace(root=str(root))
    )

    done = await session.reply("Begin")
    children = {child.agent: child for child in (await session.status()).children}
    trees = {one.branch: one for one in list_worktrees(repository_at(root))}
    good, bad = (branch_of(children[name].workflow_id) for name in ("gardener", "vandal"))
    apart = {branch: (one.root / "poem.txt").read_text() for branch, one in trees.items()}
    meanwhile = (root / "poem.txt").read_text()
    monkeypatch.setenv("LONGHAUL_DATA_DIR", str(stage.settings.data_dir))
    shown = await typed("list", root)
    merged = await typed("merge", root, good)
    gone = await typed("discard", root, bad)

    assert f"on branch {good}" in "".join(told for _, told in results(done))
    assert apart == {good: "gardener\n", bad: "vandal\n"}
    assert meanwhile == "Rose\n"
    assert {row["branch"] for row in json.loads(shown)} == {good, bad}
    assert (json.loads(merged)["branch"], json.loads(gone)["branch"]) == (good, bad)
    assert texts(root) == {**FIRST, "poem.txt": "gardener\n"}
    assert git(root, "status", "--porcelain") == "?? .longhaul/"
    assert (git(root, "branch", "--list"), list_worktrees(repository_at(root))) == ("* main", [])


async def test_a_tree_of_a_folder_that_is_no_repository_is_refused_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cant(*_: object) -> None:
        raise GitProblem("there are no reflinks")

    monkeypatch.setattr(snapshots, "clone", cant)
    root = stage.folder / "no-repository"
    root.mkdir()
    agents = {
        "gardener": {
            "description": "Plants.",
            "model": stage.script({"text": "-"}),
            "workspace": {"root": "", "place": "worktree"},
        }
    }
    lead = stage.session(
        calls("Agent", agent="gardener", task="Plant."),
        {"text": "I heard."},
        tools=("Agent",),
        agents=agents,
        permission=FREE,
        workspace=Workspace(root=str(root)),
    )
    own = stage.session({"text": "-"}, workspace=Workspace(root=str(root), place="worktree"))
    first = stage.session({"text": "-"}, workspace=Workspace(root=str(root), snapshots=True))
    await first.reply("Begin")
    copied = await first.stored.fork(f"{first.id}-now")
    sentence = f"{str(root)!r} is not the top of a git repository"

    async with asyncio.timeout(20):
        failed, done, of_copy = await asyncio.gather(*(one.reply("Begin") for one in (own, lead, copied)))

    for one in (failed, of_copy):
        assert one.error is not None
        assert (one.finished_reason, one.error.type) == (FinishedReason.ERROR, "setup")
        assert sentence in one.error.message
    assert sentence in results(done)[0][1]
