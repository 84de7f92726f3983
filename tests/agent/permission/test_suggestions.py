"""Suggested rules are narrow, and none is better than a wide one."""

import pytest

from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.rule_matching import allow_matches
from longhaul.agent.permission.rulebook import suggest_rules
from longhaul.agent.values.conversation.tools import ToolDescriptor

ROOT = "/proj"


def _suggested(*lines: str, tool: str = "Bash", **more: str) -> list[str | None]:
    commands = tuple(SubCommand(words=tuple(line.split())) for line in lines)
    analysis = CallAnalysis.model_validate({"commands": commands, **more})
    return [rule.rule_content for rule in suggest_rules(ToolDescriptor(name=tool), analysis, ROOT)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git add .", ["git add ."]),
        ("npm run build", ["npm run build"]),
        ("pip install requests", ["pip install requests"]),
        ("make test", ["make test"]),
        ("make -f x", ["make -f x"]),
        ("git config a b", ["git config a b"]),
        ("git rebase --exec x", ["git rebase --exec x"]),
        ("touch x", ["touch x"]),
        ("./run.sh now", ["./run.sh now"]),
        ("A=1 make all", ["A=1 make all"]),
        ("> /proj/out.txt", ["> /proj/out.txt"]),
        ("echo $x;y", ["echo '$x;y'"]),
        ("touch :*", ["touch ':*'"]),
    ],
)
def test_commands_get_narrow_rules(line: str, expected: list[str]) -> None:
    assert _suggested(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "python -c 1", "python3.12 x.py", "/usr/bin/python3 x", "sh -c x", "bash x.sh", "node -e 1", "perl -e 1",
        "ruby x", "awk x", "env ls", "xargs rm", "sudo ls", "eval x", "source x", ". x", "ssh host", "npx x",
        "uv run x", "A=1 sh -c x",
        "npm exec x", "docker run x", "find . -exec x", "touch " + "x" * 300,
    ],
)  # fmt: skip
def test_nothing_is_suggested_for_what_can_run_anything(line: str) -> None:
    assert _suggested(line) == []


FOLLOWING = {
    "git fetch origin": "git fetch origin --upload-pack=x", "git pull": "git pull --upload-pack=x .",
    "git clone a": "git clone a -u x", "git push origin": "git push origin --receive-pack=x",
    "make test": "make test -f x", "git archive HEAD": "git archive HEAD --remote=. --exec=x",
    "npm test": "npm test --script-shell=x",
    "npm run build": "npm run other", "go vet": "go vet -vettool=x", "git init": "git init /elsewhere",
    "git worktree add x": "git worktree add /elsewhere", "git bundle create x": "git bundle create /elsewhere",
    "git add .": "git add --pathspec-from-file=x",
    "cargo test": "cargo test --config x", "pip install a": "pip install b",
}  # fmt: skip


@pytest.mark.parametrize("line", FOLLOWING)
def test_a_suggested_rule_covers_no_other_command(line: str) -> None:
    contents = [content for content in _suggested(line) if content]

    assert any(allow_matches(content, tuple(line.split())) for content in contents)
    assert not any(allow_matches(content, tuple(FOLLOWING[line].split())) for content in contents)


def test_each_part_gets_its_rule_and_one_without_leaves_none() -> None:
    assert _suggested("git add .", "npm run build", "git add x") == ["git add .", "npm run build", "git add x"]
    assert _suggested("git add .", "python x.py") == []
    assert _suggested(*(f"touch {name}" for name in "abcdef")) == []
    assert len(_suggested(*(f"touch {name}" for name in "abcde"))) == 5


def test_read_only_parts_need_no_rule() -> None:
    analysis = CallAnalysis(commands=(SubCommand(words=("ls",), read_only=True), SubCommand(words=("git", "add", "."))))

    assert [rule.rule_content for rule in suggest_rules(ToolDescriptor(name="Bash"), analysis, ROOT)] == ["git add ."]


def test_nothing_is_suggested_for_danger() -> None:
    assert _suggested("git add .", safety="much") == []
    assert _suggested("git add .", not_understood="a loop") == []
    danger = CallAnalysis(paths=(PathUse(path="/proj/.env", danger="secret"),))
    assert suggest_rules(ToolDescriptor(name="Read"), danger, ROOT) == ()


@pytest.mark.parametrize(
    ("path", "inside", "expected"),
    [
        ("/proj/src/a.py", True, "/proj/src/**"),
        ("/proj/a.py", True, "/proj/**"),
        ("/proj/s*c/a.py", True, "/proj/s*c/a.py"),
        ("/etc/hosts", False, "/etc/hosts"),
        ("/proj-evil/a", False, "/proj-evil/a"),
        ("/proj", True, "/proj"),
    ],
)
def test_file_tools_get_the_folder_within_the_workspace_else_the_file(path: str, inside: bool, expected: str) -> None:
    analysis = CallAnalysis(paths=(PathUse(path=path, access="write", inside=inside),))

    (rule,) = suggest_rules(ToolDescriptor(name="Write"), analysis, ROOT)

    assert (rule.tool_name, rule.rule_content, rule.behavior.value) == ("Write", expected, "allow")


def test_other_tools_get_a_rule_for_the_tool() -> None:
    assert _suggested(tool="mcp__mail__send") == [None]
