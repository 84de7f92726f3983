"""A sandbox that may hold only so much: what would write is refused, what passes the bound is ended."""

import os
from pathlib import Path

import pytest

from longhaul.activities.process.box import bwrap_problem
from longhaul.activities.tool import Place, ToolError
from longhaul.activities.tools import folder_size
from longhaul.activities.tools.boxed import Boxes
from longhaul.activities.tools.folder_size import LEAST_BYTES, size_of
from longhaul.agent.values.spec.workspace import Seal
from tests.activities.tools.calls import called
from tests.activities.tools.test_boxed import BOX, TOOLS

pytestmark = pytest.mark.skipif(bool(bwrap_problem()), reason="there is no bubblewrap")

SMALL = Seal(workspace_mb=2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "poem.txt").write_text("Rose\n")
    return root


async def run(boxes: Boxes, name: str, root: Path, **arguments: object) -> str:
    place = Place(root=root, cwd=root, seal=SMALL)
    facts = await TOOLS[name].examine(arguments, place)
    return str((await boxes.run(TOOLS[name], called(arguments, place, facts))).output)


def fill(root: Path) -> Path:
    full = root / "full"
    full.write_bytes(os.urandom(3_000_000))
    return full


async def test_in_one_that_is_full_only_reading_goes_on_until_somebody_makes_room(root: Path) -> None:
    boxes, full = Boxes(BOX), fill(root)

    for name, arguments in (
        ("Write", {"file_path": str(root / "new.txt"), "content": "x"}),
        ("Bash", {"command": "touch new.txt"}),
    ):
        with pytest.raises(ToolError, match=r"^Nothing ran: the workspace holds more than 2 MB"):
            await run(boxes, name, root, **arguments)
    assert "Rose" in await run(boxes, "Read", root, file_path=str(root / "poem.txt"))
    assert await run(boxes, "Bash", root, command="cat poem.txt") == "Rose"
    assert not (root / "new.txt").exists()
    full.unlink()
    await run(boxes, "Write", root, file_path=str(root / "new.txt"), content="x")
    assert (root / "new.txt").read_text() == "x"


async def test_a_command_that_passes_the_bound_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_size, "PAUSE_SECONDS", 0.1)
    writes = "for n in 1 2 3 4 5; do head -c 1000000 /dev/urandom > part$n; done; sleep 60; touch late"

    with pytest.raises(ToolError, match=r"^The call was ended, and may have done part of its work: the workspace"):
        await run(Boxes(BOX), "Bash", root, command=writes)

    assert (root / "part1").exists()
    assert not (root / "late").exists()


async def test_what_can_not_be_counted_is_refused(root: Path) -> None:
    deep = os.open(root, os.O_RDONLY)
    for _ in range(40):  # longer than any path may be
        os.mkdir("d" * 200, dir_fd=deep)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)

    with pytest.raises(
        ToolError, match=r"^Nothing ran: how much the workspace holds can't be counted, for '.*File name"
    ):
        await run(Boxes(BOX), "Bash", root, command="touch new.txt")


def test_a_file_of_two_names_counts_once_and_an_empty_one_counts_too(root: Path) -> None:
    before = size_of(root, 10**9)
    full = fill(root)
    (root / "again").hardlink_to(full)
    (root / "link").symlink_to("/usr")
    (root / "empty").touch()

    assert size_of(root, 10**9) - before == full.stat().st_blocks * 512 + 3 * LEAST_BYTES
    assert size_of(root, 1_000_000) > 1_000_000
