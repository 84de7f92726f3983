"""Files of a folder that is no git repository come back with a copy that goes back to a step, given reflinks."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from longhaul.agent.values.spec.workspace import Workspace
from tests.stores.worktrees.reflinked import reflinked
from tests.stores.worktrees.repositories import texts
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server

FIRST = {"poem.txt": "Rose\n", "src/main.py": "print(1)\n"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """With the stage's data directory, as others find it."""
    with reflinked(tmp_path) as mounted:
        if mounted is None:
            pytest.skip("no XFS can be made and mounted")
        (mounted / "data").mkdir()
        (tmp_path / "data").symlink_to(mounted / "data")
        yield mounted


@pytest.fixture
async def stage(disk: Path, unserved: Stage) -> AsyncIterator[Stage]:
    """A stage whose data directory and workspace lie on a file system with reflinks."""
    unserved.workspace = disk / "project"
    for name, text in FIRST.items():
        (unserved.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (unserved.workspace / name).write_text(text)
    async with unserved.another_worker():
        yield unserved


@pytest.mark.proves("X10")
async def test_a_copy_has_the_files_from_before_the_calls_that_run_once(stage: Stage) -> None:
    lines = [
        calls("Bash", command="cat a.txt poem.txt; echo one > a.txt"),
        calls("Bash", command="echo two > a.txt; echo Thorn > poem.txt; rm -r src"),
        {"text": "Done."},
    ]
    workspace = Workspace(root=str(stage.workspace), snapshots=True)
    session = stage.session(*lines, tools=("Bash",), permission={"mode": "bypass"}, workspace=workspace)
    await session.reply("Begin")
    clones = stage.settings.data_dir / "clones"

    back = await session.stored.fork(f"{session.id}-back", at=1)
    now = await session.stored.fork(f"{session.id}-now")
    notes = [(await one.status()).note for one in (back, now)]
    first, second = [results(await one.reply("Go on"))[0][1] for one in (back, now)]
    of_back = Path((await back.status()).workspace_root)
    further = await back.stored.fork(f"{session.id}-further", at=1)
    third = results(await further.reply("Go on"))[0][1]
    kept = len(list(clones.glob("*/" + "?" * 40)))
    gone = await session.stored.delete(terminate=True)

    assert "as they were at that step" in notes[0]
    assert "as they are when it begins" in notes[1]
    assert first == "one\nRose"
    assert second == "two\nThorn"
    assert third == "one\nRose"
    assert texts(stage.workspace) == texts(of_back) == {"a.txt": "two\n", "poem.txt": "Thorn\n"}
    assert of_back.parent == (stage.settings.data_dir / "workspaces").resolve()
    assert (kept, gone.snapshots) == (8, 2)
    assert len(list(clones.glob("*/" + "?" * 40))) == 6
