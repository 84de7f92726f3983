"""A sandbox that may hold only so much: what would write is refused, what passes the bound is ended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.activities.tool import Place, ToolError
from longhaul.activities.tools import sandbox_call
from longhaul.activities.tools.sandbox_call import LEAST_BYTES, Sandboxes, size_of
from longhaul.agent.values.spec.workspace import Seal
from tests.activities.tools.calls import called
from tests.activities.tools.test_sandbox_call import SANDBOX, TOOLS

pytestmark = pytest.mark.skipif(bool(bwrap_problem()), reason="there is no bubblewrap")

SMALL = Seal(workspace_mb=2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "poem.txt").write_text("Rose\n")
    return root


async def run(sandboxes: Sandboxes, name: str, root: Path, **arguments: object) -> str:
    place = Place(root=root, cwd=root, seal=SMALL)
    analysis = await TOOLS[name].examine(arguments, place)
    return str((await sandboxes.run(TOOLS[name], called(arguments, place, analysis))).output)


def fill(root: Path) -> Path:
    full = root / "full"
    full.write_bytes(os.urandom(3_000_000))
    return full


async def test_in_one_that_is_full_only_reading_goes_on_until_somebody_makes_room(root: Path) -> None:
    sandboxes, full = Sandboxes(SANDBOX), fill(root)

    for name, arguments in (
        ("Write", {"file_path": str(root / "new.txt"), "content": "x"}),
        ("Bash", {"command": "touch new.txt"}),
    ):
        with pytest.raises(ToolError, match=r"^Nothing ran: the workspace holds more than 2 MB"):
            await run(sandboxes, name, root, **arguments)
    assert "Rose" in await run(sandboxes, "Read", root, file_path=str(root / "poem.txt"))
    assert await run(sandboxes, "Bash", root, command="cat poem.txt") == "Rose"
    assert not (root / "new.txt").exists()
    full.unlink()
    await run(sandboxes, "Write", root, file_path=str(root / "new.txt"), content="x")
    assert (root / "new.txt").read_text() == "x"


@pytest.mark.proves("E12")
async def test_a_command_that_passes_the_bound_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_call, "PAUSE_SECONDS", 0.1)
    writes = "for n in 1 2 3 4 5; do head -c 1000000 /dev/urandom > part$n; done; sleep 60; touch late"

    with pytest.raises(ToolError, match=r"^The call was ended, and may have done part of its work: the workspace"):
        await run(Sandboxes(SANDBOX), "Bash", root, command=writes)

    assert (root / "part1").exists()
    assert not (root / "late").exists()


def deep_folder(root: Path) -> int:
    """The last of forty folders within each other: its path is longer than any may be."""
    deep = os.open(root, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=deep)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    return deep


async def test_what_lies_deeper_than_a_path_reaches_is_counted(root: Path) -> None:
    deep = deep_folder(root)
    await run(Sandboxes(SANDBOX), "Bash", root, command="touch new.txt")
    full = os.open("full", os.O_WRONLY | os.O_CREAT, dir_fd=deep)
    os.write(full, os.urandom(3_000_000))
    os.close(full)
    os.close(deep)

    assert (root / "new.txt").exists()
    with pytest.raises(ToolError, match=r"^Nothing ran: the workspace holds more than 2 MB"):
        await run(Sandboxes(SANDBOX), "Bash", root, command="touch late.txt")


NOBODY = 65534
COUNT = f"""
import ctypes, os
from pathlib import Path
from longhaul.activities.tools.sandbox_call import size_of
if os.geteuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # else its own entries in /proc are root's
print(size_of(Path(), 10**9))
"""


def test_what_lies_in_a_closed_folder_is_counted_and_the_folder_stays_closed(root: Path) -> None:
    """Counted by somebody who is not root: to root nothing is closed."""
    closed, is_root = root / "closed", os.geteuid() == 0
    closed.mkdir()
    full = fill(closed)
    if is_root:
        for each in (root, closed, full):
            os.chown(each, NOBODY, NOBODY)
        (root / "theirs").mkdir(mode=0o700)
        fill(root / "theirs")
    closed.chmod(0)

    told = subprocess.run(
        [sys.executable, "-c", COUNT],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )

    names = 3 if is_root else 2  # the folders and the poem: in that of somebody else nobody looks
    assert int(told.stdout) == full.stat().st_blocks * 512 + names * LEAST_BYTES
    assert closed.stat().st_mode & 0o777 == 0
    closed.chmod(0o700)


def test_a_file_of_two_names_counts_once_and_an_empty_one_counts_too(root: Path) -> None:
    before = size_of(root, 10**9)
    full = fill(root)
    (root / "again").hardlink_to(full)
    (root / "link").symlink_to("/usr")
    (root / "empty").touch()

    assert size_of(root, 10**9) - before == full.stat().st_blocks * 512 + 3 * LEAST_BYTES
    assert size_of(root, 1_000_000) > 1_000_000
