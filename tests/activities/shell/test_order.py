"""No part of a line is proven for what another part of it may change first; what runs unasked runs hardened."""

import json
from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command
from longhaul.activities.tool import NeedsDecision, Place, ToolCall
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from tests.activities.corpora.stage import git

BASH = ToolDescriptor(name="Bash")
MODES = [PermissionMode.ACCEPT_EDITS, PermissionMode.DONT_ASK]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = (tmp_path / "root").resolve()
    for name in ("f", "deep/inner/plain", "evil/HEAD", "evil/config", "g"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("f\n")
    (tmp_path / "outside").write_text("kept\n")
    (root / "deep" / "inner" / "link").symlink_to("../../f")
    (root / "deep" / "inner" / "up").symlink_to("../../../outside")
    git(root, "init", "-q")
    return root


def _behavior(line: str, root: Path, mode: PermissionMode, *allowed: str) -> Behavior:
    rules = tuple(PermissionRule(tool_name="Bash", rule_content=content) for content in allowed)
    analysis = examine_command(line, root, root)
    context = PermissionContext(mode=mode, rules=rules)
    return decide_call(BASH, json.dumps({"command": line}), analysis, context, str(root)).behavior


MOVERS = ["mv deep/inner in2", "mv deep in2", "rm f", "rmdir deep", "sed -i s/a/b/ f", "cp -d deep/inner/link in2",
          "cp -P deep/inner/link in2", "mv f in2", "mv -t deep f", "sed -i.bak s/a/b/ f"]  # fmt: skip
FOLLOWERS = ["cp f in2/up", "cat in2/up", "touch in2/new", "rm g", "cd in2", "ls in2", "wc -l < in2/up",
             "echo x > in2/up", "mkdir in2/x", "sed -n p in2/up", "grep -r x in2", "git status",
             "test -f in2/up", "mv in2/up x"]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("joint", [" && ", "; ", "\n", " || ", " | ", " & "])
def test_behind_what_moves_names_nothing_that_names_a_path_is_proven(
    joint: str, mode: PermissionMode, root: Path
) -> None:
    lines = [f"{mover}{joint}{follower}" for mover in MOVERS for follower in FOLLOWERS]
    if joint in (" | ", " & "):
        lines += [f"{follower}{joint}{mover}" for mover in MOVERS for follower in FOLLOWERS if follower != "cd in2"]

    assert [line for line in lines if _behavior(line, root, mode) is Behavior.ALLOW] == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "maker", ["mkdir -p evil/objects evil/refs", "touch x", "echo x > y", "cp f x", "mkdir x; cp f x/HEAD", "rm f"]
)
@pytest.mark.parametrize(
    "reader", ["git -C evil status", "git status", "rg x", "pip list", "sort *", "sort ?*", "node -v"]
)
def test_behind_what_makes_files_nothing_is_proven_that_they_steer(
    reader: str, maker: str, mode: PermissionMode, root: Path
) -> None:
    for joint in (" && ", "; ", " | ", " & "):
        assert _behavior(f"{maker}{joint}{reader}", root, mode) is not Behavior.ALLOW
    assert _behavior(f"{reader} > x", root, mode) is not Behavior.ALLOW


@pytest.mark.parametrize(
    "line", ["make test && git status", "git status; make test", "make test; cat f", "make test | grep -r x .",
             "make test & cat f", "make test && cd deep && ls", "make test || cat f", "make test > f; cat f",
             "rg x; make test", "cat f | make test", "cat f; make test | sort", "cat f && make test",
             "timeout 5 make test && head f"],
)  # fmt: skip
def test_beside_what_a_rule_lets_run_only_what_is_done_before_or_names_no_file_is_proven(line: str, root: Path) -> None:
    assert _behavior(line, root, PermissionMode.DEFAULT, "make test") is Behavior.ASK


@pytest.mark.parametrize(
    "line", ["make test | tail -5", "make test 2>&1 | grep -i fail | head", "cd deep && make test", "ls && make test",
             "make test; echo $?", "make test && echo done", "ls; make test | sort | uniq -c", "make test | wc -l"],
)  # fmt: skip
def test_what_is_done_before_or_works_on_text_needs_no_rule_of_its_own(line: str, root: Path) -> None:
    assert _behavior(line, root, PermissionMode.DEFAULT, "make test") is Behavior.ALLOW


@pytest.mark.parametrize(
    "line", ["git status && touch x", "cd deep && mv inner in2", "cat f && rm f", "cat f | sort > x",
             "mkdir x && touch x/y && echo hi > x/z", "ls 2> x", "echo a; rm f; echo b"],
)  # fmt: skip
def test_edits_that_follow_each_other_harmlessly_pass(line: str, root: Path) -> None:
    assert _behavior(line, root, PermissionMode.ACCEPT_EDITS) is Behavior.ALLOW


@pytest.mark.parametrize("line", ["git status", "git status && touch x", "cd deep && git diff && mkdir y"])
async def test_a_line_that_runs_unasked_meets_no_program_of_the_repository(line: str, root: Path) -> None:
    git(root, "config", "core.fsmonitor", "touch ran; false")
    analysis = examine_command(line, root, root)

    await Bash().run(ToolCall(id="1", arguments={"command": line}, place=Place(root, root), analysis=analysis))

    assert _behavior(line, root, PermissionMode.ACCEPT_EDITS) is Behavior.ALLOW
    assert not _ran(root)


def _ran(root: Path) -> list[Path]:
    return list(root.rglob("ran"))


async def test_a_line_is_decided_again_when_a_name_has_turned_up_that_is_an_option(root: Path) -> None:
    line = "sort --key=1 --field-separator=?"
    analysis = examine_command(line, root, root)
    (root / "--field-separator=x").touch()

    with pytest.raises(NeedsDecision):
        await Bash().run(ToolCall(id="1", arguments={"command": line}, place=Place(root, root), analysis=analysis))
    assert analysis.read_only
