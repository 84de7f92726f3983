"""Whatever text a model writes, the findings and the decision come, soon, and never an exception."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.shell.walk import MAX_CHARACTERS, examine_command
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from longhaul.starter.cli.commands.permission import BadLine, answer, read_call
from tests.activities.corpora.stage import corpus
from tests.limits import usual

BASH = ToolDescriptor(name="Bash")
TOOLBOX = Toolbox(default_tools())
NOWHERE = Path("/nowhere/at/all")
RULES = tuple(
    PermissionRule(tool_name="Bash", rule_content=content, behavior=behavior)
    for content in (
        "git add:*",
        "rm -rf",
        "curl:*",
        "'open",
        "a" * 500,
        *(f"program-{number}:*" for number in range(100)),
    )
    for behavior in (Behavior.DENY, Behavior.ASK)
)
SECONDS = 5.0
"""For one decision on the largest line, on a busy machine."""

PIECES = [line.text for line in [*corpus("hostile.txt"), *corpus("benign.txt")]]
MARKS = ["$(", ")", "`", "'", '"', "\\", ";", "&&", "|", ">", "<<X\n", "{", "}", "*", "~", "[", "#", "\n", "\0",
         "\udc80", "\u202e", "文", "\U0001f600", "\U0010ffff", "$'", '$"', "<(", "((", "))", "[[",
         "]]", "${", "!", "=", "\\\n", "\r", "\x85", "2>&1"]  # fmt: skip


def _decide(line: str, mode: PermissionMode, rules: tuple[PermissionRule, ...] = RULES) -> Behavior:
    analysis = examine_command(line, NOWHERE, NOWHERE)
    assert not (analysis.read_only and (analysis.not_understood or analysis.safety))
    raw = json.dumps({"command": line})
    return decide_call(BASH, raw, analysis, PermissionContext(mode=mode, rules=rules), str(NOWHERE)).behavior


mixed = st.lists(st.sampled_from(PIECES + MARKS * 20), max_size=12)
lines = st.one_of(
    st.binary(max_size=300).map(lambda data: data.decode("latin-1")),
    st.binary(max_size=300).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.text(max_size=300),
    mixed.map("".join),
    mixed.map(" ".join),
    st.tuples(st.sampled_from([*MARKS, "ls;", "nice ", "bash -c '"]), st.integers(1, 3000)).map(lambda n: n[0] * n[1]),
)


@settings(max_examples=500, deadline=None)
@given(lines, st.sampled_from(PermissionMode))
def test_no_line_makes_a_decision_fail(line: str, mode: PermissionMode) -> None:
    assert _decide(line, mode) in Behavior


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([line.text for line in corpus("hostile.txt")]), st.sampled_from(MARKS), st.integers(0, 60))
def test_a_deny_rule_for_all_denies_or_asks_whatever_is_put_into_a_line(line: str, mark: str, at: int) -> None:
    rule = PermissionRule(tool_name="Bash", behavior=Behavior.DENY)

    assert _decide(line[:at] + mark + line[at:], PermissionMode.BYPASS, (rule,)) is Behavior.DENY


@pytest.mark.parametrize(
    "line",
    [
        "a" * 1_000_000,
        "ls;" * 333_000,
        "'" * 999_999,
        "\\" * 1_000_000,
        "$(" * 500_000,
        "x=" * 500_000,
        "ls " + "a*" * 49_000,
        "ls " + "*/" * 4_000,
        "ls " + "?" * 9_000,
        "ls " + "../" * 3_000,
        "cd a && " * 1_200 + "ls",
        "cd a; " * 1_600,
        "bash -c '" * 1_000,
        'bash -c "' + "bash -c \\'" * 900,
        "{" * 9_000,
        "(" * 99_000,
        "<<X\n" * 24_000,
        "sudo " * 19_000,
        "xargs " * 16_000 + "rm",
        "\u202e" * 500_000,
        "\0" * 1_000_000,
        "sed -n '" + "1p;" * 3_000 + "' x",
        "sed 's/" + "(a|" * 3_000 + "/x/' x",
        "find . " + "-name x " * 1_200,
        "git log " + "--since=x " * 950,
        "grep -r x . " + "--include=a " * 800,
    ],
    ids=lambda line: f"{line[:12]!r}-{len(line)}",
)
def test_huge_and_nested_lines_are_decided_on_in_time(line: str) -> None:
    started = time.process_time()

    behavior = _decide(line, PermissionMode.DEFAULT)

    assert time.process_time() - started < usual(SECONDS)
    assert behavior is not Behavior.ALLOW or len(line) <= MAX_CHARACTERS


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)
keys = st.sampled_from(
    ["file_path", "pattern", "path", "content", "old_string", "new_string", "command", "offset", "-n"]
)
inputs = st.dictionaries(
    keys, anything | st.sampled_from(["/proc/self/environ", "..", "x\0", ".env", "\udc80"]), max_size=5
)
tools = st.sampled_from(["Bash", "Read", "Write", "Edit", "Grep", "Glob", "Nope", "", "a.b", "Bash "])


@settings(max_examples=300, deadline=None)
@given(tools, inputs, st.sampled_from(PermissionMode))
async def test_no_arguments_make_a_tool_fail(tool: str, given: dict[str, object], mode: PermissionMode) -> None:
    rehearsal = Rehearsal(TOOLBOX, PermissionContext(mode=mode), NOWHERE)

    verdict = await rehearsal.decide(tool, json.dumps(given))

    assert verdict.behavior in ("allow", "ask", "deny", "invalid")


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.binary(max_size=200), anything.map(lambda value: json.dumps(value).encode())))
async def test_no_line_of_the_command_fails_other_than_as_a_bad_line(line: bytes) -> None:
    rehearsal = Rehearsal(TOOLBOX, PermissionContext(), NOWHERE)
    try:
        asked = read_call(line)
    except BadLine:
        return

    assert json.dumps(answer(asked, await rehearsal.decide(asked.tool, asked.input)))


def test_letters_beyond_latin_keep_their_place_in_the_words() -> None:
    analysis = examine_command("cat 日本語.txt 'Ωμέγα 😀' && rm -rf {文,😀}.txt", NOWHERE, NOWHERE)

    assert [command.words for command in analysis.commands] == [
        ("cat", "日本語.txt", "Ωμέγα 😀"),
        ("rm", "-rf", "{文,😀}.txt"),
    ]


FAR_LETTERS = """
import random
from longhaul.activities.shell import tree as shell_tree

chance = random.Random(7)
pieces = ["{", "{1..", "${", "$((", "'", '"', "<<", "a", " ", "😀", chr(0xF0000), chr(0x10FFFF), "文"]
for _ in range(5000):
    shell_tree.parse("".join(chance.choices(pieces, k=40)))
"""


def test_no_letter_of_any_script_ends_the_process_of_the_parser() -> None:
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", FAR_LETTERS], check=False, capture_output=True)

    assert done.returncode == 0, done.stderr.decode()
