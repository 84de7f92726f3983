"""A file with a second name (a hard link), which may lie outside of the workspace, is read by no search unasked."""

import json
import os
from pathlib import Path

import pytest

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.repository import tree_of
from longhaul.activities.tool import Place, ToolCall
from longhaul.activities.tools.file_search import Grep
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from tests.activities.corpora.stage import git
from tests.activities.tools.calls import RIPGREP

OUTSIDE = "marmalade of somebody else"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace in which two names, one of them tracked by git, are of files that lie outside of it."""
    root = (tmp_path / "root").resolve()
    (root / "sub").mkdir(parents=True)
    (root / "plain.txt").write_text("marmalade\n")
    (root / "tracked.txt").write_text("marmalade\n")
    (root / "src.py").write_text("marmalade\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (tmp_path / "theirs").write_text(f"{OUTSIDE}\n")
    (root / "sub" / "hard.txt").hardlink_to(tmp_path / "theirs")
    (root / "tracked.txt").unlink()
    (root / "tracked.txt").hardlink_to(tmp_path / "theirs")
    return root


async def _said(line: str, root: Path, mode: str = "default") -> str:
    rehearsal = Rehearsal(Toolbox(default_tools()), PermissionContext(mode=PermissionMode(mode)), root)
    return (await rehearsal.decide("Bash", json.dumps({"command": line}))).behavior


READING = [
    "cat sub/hard.txt", "cat sub/*.txt", "grep marmalade tracked.txt", "git blame tracked.txt",
    "grep -r marmalade .", "grep -rl marmalade", "grep -c -r --include=*.txt marmalade .",
    "cd sub && grep -r marmalade ..", "grep -d recurse marmalade .", "egrep -r marmalade .", "fgrep -rh marmalade sub",
    "rg marmalade", "rg -l marmalade sub", "rg -uu marmalade", "rg -g '*.txt' marmalade .", "cd sub && rg marmalade",
    "find . -name hard.txt | xargs cat", "find . -type f -print0 | xargs -0 grep -h marmalade",
    "find sub -name '*.txt' -or -name x | xargs head -n 1", "find . -type f | xargs wc -l",
    "git grep --untracked marmalade", "git grep marmalade", "git grep marmalade -- '*.txt'",
    "git -C sub grep --untracked m",
    "git diff", "git diff HEAD", "git diff -- tracked.txt", "git --no-pager diff -U0", "nice grep -r marmalade .",
]  # fmt: skip


@pytest.mark.parametrize("line", READING)
async def test_a_search_asks_where_it_comes_by_a_second_name(line: str, root: Path) -> None:
    said = [await _said(line, root, mode) for mode in ("default", "accept_edits", "explore", "dont_ask")]

    assert said == ["ask", "ask", "deny", "deny"]


@pytest.mark.parametrize("line", READING)
async def test_it_passes_where_all_names_are_in_what_is_searched(line: str, root: Path) -> None:
    for name in ("sub/hard.txt", "tracked.txt"):
        (root / name).unlink()
    (root / "sub" / "hard.txt").write_text("marmalade\n")
    (root / "tracked.txt").write_text("marmalade\n")

    assert await _said(line, root) == "allow"


async def test_searches_that_come_by_none_still_pass(root: Path) -> None:
    (root / "target").mkdir()
    (root / "target" / "one").write_text("marmalade\n")
    (root / "target" / "two").hardlink_to(root / "target" / "one")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "index.js").hardlink_to(root.parent / "theirs")
    lines = [
        "grep -rn marmalade target", "grep -r --include=*.py marmalade .", "rg -t py marmalade", "rg marmalade src.py",
        "rg -g '!*.txt' marmalade", "find . -name '*.py' | xargs cat", "git diff -- src.py", "git log -p",
        "git show HEAD", "git diff --stat", "git diff --cached", "ls -R", "find . -type f",
        "grep -r marmalade node_modules", "du -a .",
    ]  # fmt: skip

    assert [line for line in lines if await _said(line, root) != "allow"] == []


async def _grepped(root: Path, **arguments: object) -> str:
    tool, place = Grep(RIPGREP), Place(root, root)
    call = {"pattern": "marmalade", **arguments}
    analysis = await tool.examine(call, place)
    return str((await tool.run(ToolCall(id="1", arguments=call, place=place, analysis=analysis))).output)


@pytest.mark.parametrize("path", [{}, {"path": "sub"}, {"path": "."}])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"output_mode": "content"},
        {"output_mode": "content", "-n": False},
        {"output_mode": "count"},
        {"glob": "*.txt", "output_mode": "content", "-C": 2},
        {"output_mode": "content", "multiline": True, "pattern": r"mar[\s\S]*else"},
        {"output_mode": "content", "head_limit": 1},
    ],
)
async def test_grep_leaves_it_out_and_says_so(how: dict[str, object], path: dict[str, object], root: Path) -> None:
    shown = await _grepped(root, **how, **path)

    assert "hard.txt" not in shown
    assert "tracked.txt" not in shown
    assert OUTSIDE not in shown
    assert "with a second name (a hard link)" in shown or how.get("head_limit") or path == {"path": "sub"}


async def test_grep_shows_all_others_as_before(root: Path) -> None:
    (root / "plain.txt").write_text("before\nmarmalade: 3-4\nafter\n")

    assert (await _grepped(root, output_mode="content", glob="plain.*")) == "plain.txt:2:marmalade: 3-4"
    assert (await _grepped(root, output_mode="content", glob="plain.*", **{"-n": False})) == "plain.txt:marmalade: 3-4"
    assert (await _grepped(root, output_mode="content", glob="plain.*", **{"-C": 1})).splitlines() == [
        "plain.txt-1-before", "plain.txt:2:marmalade: 3-4", "plain.txt-3-after",
    ]  # fmt: skip
    assert (await _grepped(root, output_mode="count", glob="plain.*")) == "plain.txt:1"
    assert (await _grepped(root, output_mode="content", path="sub/hard.txt")) == f"sub/hard.txt:1:{OUTSIDE}"


@pytest.mark.parametrize("name", ["a\nplain.txt", "a\n", "a:1:b", "a\x1b[2J", "plain.txt-1-", "-e", "a\nb/c.txt"])
@pytest.mark.parametrize("mode", ["files_with_matches", "content", "count"])
async def test_no_name_hides_that_it_is_a_second_one(name: str, mode: str, root: Path) -> None:
    link = root / "sub" / name
    link.parent.mkdir(exist_ok=True)
    (root / "sub" / "hard.txt").unlink()
    link.hardlink_to(root.parent / "theirs")

    shown = await _grepped(root, path="sub", output_mode=mode)

    assert OUTSIDE not in shown
    assert shown.startswith("No matches.")


def test_names_that_are_all_below_count_for_one_file(root: Path) -> None:
    os.link(root / "plain.txt", root / "sub" / "plain.txt")

    assert [Path(path).name for path in tree_of(str(root), with_links=False).second_names] == [
        "tracked.txt",
        "hard.txt",
    ]
    assert {Path(path).name for path in tree_of(str(root / "sub"), with_links=False).second_names} == {
        "hard.txt",
        "plain.txt",
    }
