"""Beside a part that a rule allows no proof counts, for such a line runs outside of the sandbox; plain parts pass."""

import json

import pytest

from longhaul.agent.permission.call_analysis import Boundary, CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.decision_table import PermissionDecision, decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule

BASH = ToolDescriptor(name="Bash")
BOUNDARIES: list[Boundary] = ["off", "none", "proven", "all"]


def decided(
    beside: tuple[str, ...],
    boundary: Boundary = "proven",
    mode: PermissionMode = PermissionMode.DEFAULT,
    *,
    rules: tuple[str, ...] = ("make test",),
    edits: bool = False,
    inside: bool = True,
) -> PermissionDecision:
    """Of a line with `make test`, which a rule allows, and another part, which is proven."""
    part = SubCommand(words=beside, read_only=not edits, edits_only=edits)
    analysis = CallAnalysis(
        commands=(SubCommand(words=("make", "test")), part),
        paths=(PathUse(path="/proj/f", access="write" if edits else "read", inside=inside),),
        boundary=boundary,
    )
    context = PermissionContext(
        mode=mode, rules=tuple(PermissionRule(tool_name="Bash", rule_content=rule) for rule in rules)
    )
    return decide_call(BASH, json.dumps({"command": "make test; ..."}), analysis, context, "/proj")


PROVEN = [
    "cat f", "tail -5 f", "head -n 5 f", "grep x f", "grep -r x", "grep -f f x", "grep -e x f", "rg x", "git status",
    "git log", "sort f", "sort -o f", "sort --compress-program=sh", "sort -S1", "sed -n p", "find .", "wc f",
    "uniq a b",
    "cut -f1 f", "cut --output-delimiter=x -f1", "tr a b c", "jq .", "diff a b", "node --version", "ls -L", "ls -R",
    "ls *", "ls --color", "cd", "cd -", "cd ~", "test -v x", "test a = b", "date -f f", "date -s 1", "id -x", "pwd -P",
    "hostname x", "head -c1 f", "tail -f", "tail -f f", "timeout 5 cat f", "nice cat f", "cat -", "cat -A",
    "wc --files0-from=f",
    "printf x", "command -v x", "env", "xargs cat", "tee f", "nl f", "tac f", "stat f", "du", "true x",
]  # fmt: skip
PLAIN = [
    "cat", "tail -5", "tail -n 20", "head -n5", "tail --lines=3", "grep -i fail", "grep -vE -A 3 x|y", "sort -rn",
    "uniq -c",
    "wc -l", "cut -d: -f1", "cut -f 1,3", "tr a b", "tr -d x", "cd deep/er", "cd /proj", "ls", "ls -la src", "echo",
    "echo -n done", "test -f Makefile", "date", "true", "pwd", "nl", "tac",
]  # fmt: skip


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("line", PROVEN)
def test_what_is_only_proven_needs_a_rule_of_its_own_beside_one(line: str, boundary: Boundary) -> None:
    words = tuple(line.split())

    assert decided(words, boundary).behavior is Behavior.ASK
    assert decided(words, boundary, PermissionMode.DONT_ASK).behavior is Behavior.DENY
    covered = decided(words, boundary, rules=("make test", f"{words[0]}:*"))
    assert (covered.behavior, covered.confined) == (Behavior.ALLOW, "")


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("line", PLAIN)
def test_the_plainest_parts_need_none(line: str, boundary: Boundary) -> None:
    assert decided(tuple(line.split()), boundary).behavior is Behavior.ALLOW


@pytest.mark.parametrize(
    ("words", "behavior"),
    [
        (("grep", "-i", "not ok; $x"), Behavior.ALLOW),
        (("cut", "-d", " ", "-f2"), Behavior.ALLOW),
        (("echo", "a  b"), Behavior.ALLOW),
        (("tr", "\n", " "), Behavior.ALLOW),
        (("tail", "-n 5"), Behavior.ASK),
        (("cd", "a b"), Behavior.ASK),
        (("grep", "x", "-f"), Behavior.ASK),
        (("grep", "-f x", "y"), Behavior.ASK),
        (("cat -n",), Behavior.ASK),
    ],
)
def test_a_blank_within_a_word_divides_nothing(words: tuple[str, ...], behavior: Behavior) -> None:
    assert decided(words).behavior is behavior


@pytest.mark.parametrize("mode", [PermissionMode.ACCEPT_EDITS, PermissionMode.DONT_ASK])
def test_nor_does_an_edit_that_the_mode_lets_pass_count_beside_a_rule(mode: PermissionMode) -> None:
    assert decided(("touch", "f"), mode=mode, edits=True).behavior is not Behavior.ALLOW
    assert decided(("mkdir", "f"), mode=mode, edits=True).behavior is not Behavior.ALLOW


def test_the_plainest_part_needs_a_rule_where_the_line_reads_what_is_not_open() -> None:
    assert decided(("ls", "/elsewhere"), inside=False).behavior is Behavior.ASK


@pytest.mark.parametrize("wrapper", ["timeout 5", "timeout -k 3s 5m", "nice", "nice -n 5", "time", "time -p"])
def test_what_only_runs_the_allowed_part_needs_none(wrapper: str) -> None:
    assert decided((*wrapper.split(), "make", "test")).behavior is Behavior.ALLOW
    assert decided((*wrapper.split(), "make", "other")).behavior is Behavior.ASK


def test_plain_parts_alone_are_no_rule() -> None:
    analysis = CallAnalysis(
        commands=(SubCommand(words=("cat",), read_only=True),), boundary="none", no_boundary="none here"
    )
    decision = decide_call(BASH, '{"command": "cat -"}', analysis, PermissionContext(), "/proj")

    assert decision.behavior is Behavior.ASK


def test_what_is_suggested_covers_the_line() -> None:
    asked = decided(("cat", "f"), rules=())

    assert [rule.rule_content for rule in asked.suggested_rules] == ["make test", "cat f"]
    rules = tuple(str(rule.rule_content) for rule in asked.suggested_rules)
    assert decided(("cat", "f"), rules=rules).behavior is Behavior.ALLOW
