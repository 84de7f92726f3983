"""The decision table, written out row by row."""

# ruff: noqa: E501 - the table is read by columns

import re
from pathlib import Path

import pytest

from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule

ROOT = "/proj"
BASH = ToolDescriptor(name="Bash")
WRITE = ToolDescriptor(name="Write")
READ = ToolDescriptor(name="Read", read_only=True)
OTHER = ToolDescriptor(name="mcp__mail__send")
MODES = ("default", "accept_edits", "explore", "bypass", "dont_ask")


def _bash(*lines: str, read_only: bool = False, safety: str = "", not_understood: str = "") -> CallAnalysis:
    commands = tuple(SubCommand(words=tuple(line.split()), read_only=read_only) for line in lines)
    return CallAnalysis(commands=commands, read_only=read_only, safety=safety, not_understood=not_understood)


def _at(path: str, access: str = "write", danger: str = "") -> CallAnalysis:
    inside = path.startswith(ROOT + "/")
    fact = PathUse.model_validate({"path": path, "access": access, "inside": inside, "danger": danger})
    return CallAnalysis(paths=(fact,), read_only=access == "read")


def _rule(behavior: str, tool: str = "Bash", content: str | None = None) -> PermissionRule:
    return PermissionRule(tool_name=tool, rule_content=content, behavior=Behavior(behavior), source="a test")


ROWS = [
    # what                     tool   facts                                   rules                 default accept explore bypass dont_ask
    ("deny rule",              BASH,  _bash("rm x"),                          ["deny"],             "deny deny deny deny deny"),
    ("deny beats all",         BASH,  _bash("ls", read_only=True),            ["allow", "ask", "deny"], "deny deny deny deny deny"),
    ("ask rule",               BASH,  _bash("ls", read_only=True),            ["ask"],              "ask ask ask ask deny"),
    ("ask beats allow",        BASH,  _bash("npm test"),                      ["allow", "ask"],     "ask ask ask ask deny"),
    ("read-only",              BASH,  _bash("ls", read_only=True),            [],                   "allow allow allow allow allow"),
    ("read inside",            READ,  _at("/proj/a", "read"),                 [],                   "allow allow allow allow allow"),
    ("read in a working dir",  READ,  _at("/lib/a", "read"),                  [],                   "allow allow allow allow allow"),
    ("read outside",           READ,  _at("/etc/hosts", "read"),              [],                   "ask ask deny allow deny"),
    ("read outside, allowed",  READ,  _at("/etc/hosts", "read"),              ["allow"],            "allow allow deny allow allow"),
    ("read of a secret",       READ,  _at("/proj/.env", "read", "secret"),    ["allow"],            "ask ask deny allow deny"),
    ("safety",                 BASH,  _bash("rm -rf x", safety="much"),       [],                   "ask ask deny allow deny"),
    ("safety beats allow",     BASH,  _bash("rm -rf x", safety="much"),       ["allow"],            "ask ask deny allow deny"),
    ("not understood",         BASH,  _bash("ls", not_understood="a loop"),   [],                   "ask ask deny allow deny"),
    ("not understood, allow",  BASH,  _bash("ls", not_understood="a loop"),   ["allow"],            "ask ask deny allow deny"),
    ("claims both",            BASH,  _bash("ls", read_only=True, not_understood="a loop"), [],     "ask ask deny allow deny"),
    ("edit inside",            WRITE, _at("/proj/src/a.py"),                  [],                   "ask allow deny allow allow"),
    ("edit in a working dir",  WRITE, _at("/lib/a.py"),                       [],                   "ask allow deny allow allow"),
    ("edit beside the root",   WRITE, _at("/proj-evil/a.py"),                 [],                   "ask ask deny allow deny"),
    ("edit of configuration",  WRITE, _at("/proj/.git/config", danger="g"),   [],                   "ask ask deny allow deny"),
    ("edit, ask rule",         WRITE, _at("/proj/src/a.py"),                  ["ask"],              "ask ask ask ask deny"),
    ("edit without a path",    WRITE, CallAnalysis(),                            [],                   "ask ask deny allow deny"),
    ("allow rule",             BASH,  _bash("npm test"),                      ["allow"],            "allow allow deny allow allow"),
    ("other tool, allowed",    OTHER, CallAnalysis(),                            ["allow"],            "allow allow deny allow allow"),
    ("nothing",                BASH,  _bash("npm test"),                      [],                   "ask ask deny allow deny"),
    ("other tool",             OTHER, CallAnalysis(),                            [],                   "ask ask deny allow deny"),
    ("unusable arguments",     READ,  CallAnalysis(arguments_error="not JSON", read_only=True), ["allow"], "deny deny deny deny deny"),
    ("no facts of Bash",       BASH,  CallAnalysis(),                            [],                   "ask ask deny allow deny"),
]  # fmt: skip


def test_the_page_has_the_modes_as_they_decide() -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents" / "permission.md").read_text(encoding="utf-8")
    told = [
        line.replace("`", "").strip("| ").split(" | ") for line in re.findall(r"^\| `[a-z_]+` \|.*", page, re.MULTILINE)
    ]
    expected = {row[0]: row[-1].split() for row in ROWS}
    columns = [expected[what] for what in ("read inside", "edit inside", "allow rule", "nothing")]

    known = {mode: [column[MODES.index(mode)] for column in columns] for mode in MODES}
    assert {mode: words for mode, *words in told if mode in MODES} == known


@pytest.mark.parametrize(("what", "tool", "analysis", "rules", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_the_table_decides(
    what: str, tool: ToolDescriptor, analysis: CallAnalysis, rules: list[str], expected: str
) -> None:
    given = tuple(_rule(behavior, tool.name) for behavior in rules)

    decided = []
    for mode in MODES:
        context = PermissionContext(mode=PermissionMode(mode), rules=given, working_directories=("/lib",))
        decided.append(decide_call(tool, "{}", analysis, context, ROOT).behavior.value)

    assert decided == expected.split(), what


def _decide(
    tool: ToolDescriptor, analysis: CallAnalysis, *rules: PermissionRule, mode: str = "default", raw: str = "{}"
) -> str:
    context = PermissionContext(mode=PermissionMode(mode), rules=rules)
    return decide_call(tool, raw, analysis, context, ROOT).behavior.value


def test_path_rules_match_resolved_paths_only() -> None:
    rule = _rule("allow", "Write", "/proj/src/**")

    assert _decide(WRITE, _at("/proj/src/a/b.py"), rule) == "allow"
    assert _decide(WRITE, _at("/etc/passwd"), rule, raw='{"file_path": "/proj/src/../../etc/passwd"}') == "ask"
    assert _decide(WRITE, _at("/proj/src-evil/b.py"), rule) == "ask"


def test_an_allow_rule_must_cover_every_path() -> None:
    both = CallAnalysis(paths=(PathUse(path="/a/x", access="write"), PathUse(path="/b/x", access="write")))

    assert _decide(WRITE, both, _rule("allow", "Write", "/a/*")) == "ask"
    assert _decide(WRITE, both, _rule("allow", "Write", "/a/*"), _rule("allow", "Write", "/b/*")) == "allow"
    assert _decide(WRITE, both, _rule("deny", "Write", "/b/*"), mode="bypass") == "deny"


def test_a_rule_of_another_tool_says_nothing() -> None:
    assert _decide(WRITE, _at("/proj/a"), _rule("allow", "Edit"), _rule("allow", "write")) == "ask"


def test_content_rules_of_tools_without_facts_allow_nothing() -> None:
    assert _decide(OTHER, CallAnalysis(), _rule("allow", OTHER.name, "**")) == "ask"


def test_a_home_pattern_denies_but_never_allows() -> None:
    key = _at("/home/ana/.ssh/key", "read")

    assert _decide(READ, key, _rule("deny", "Read", "~/.ssh/**"), mode="bypass") == "deny"
    assert _decide(READ, key, _rule("allow", "Read", "~/.ssh/**")) == "ask"


def test_deny_rules_read_the_raw_text_when_there_is_nothing_better() -> None:
    raw = '{"command": "ls; /bin/rm $X"}'

    assert (
        _decide(BASH, CallAnalysis(not_understood="x"), _rule("deny", content="rm:*"), mode="bypass", raw=raw) == "deny"
    )
    assert (
        _decide(
            BASH, CallAnalysis(not_understood="x"), _rule("deny", content="rm:*"), mode="bypass", raw="{nonsense; rm a"
        )
        == "deny"
    )


def test_reasons_are_sentences_that_name_what_decided() -> None:
    def reason(analysis: CallAnalysis, *rules: PermissionRule, mode: str = "default") -> str:
        context = PermissionContext(mode=PermissionMode(mode), rules=rules)
        return decide_call(BASH, "{}", analysis, context, ROOT).reason

    assert reason(_bash("rm x"), _rule("deny", content="rm:*")) == "The deny rule Bash(rm:*) of a test matches"
    assert reason(_bash("rm -r x", safety="`rm` with -r removes whole folders")) == (
        "It is dangerous: `rm` with -r removes whole folders"
    )
    assert (
        reason(_bash("ls", not_understood="a loop")) == "It contains a loop, which can't be judged without running it"
    )
    assert reason(_bash("npm test"), mode="dont_ask") == (
        "No rule allows this call of 'Bash'; the mode 'dont_ask' does not ask, so it is denied"
    )


def test_only_danger_is_marked_as_safety() -> None:
    dangerous = decide_call(BASH, "{}", _bash("rm -rf x", safety="much"), PermissionContext(), ROOT)
    plain = decide_call(BASH, "{}", _bash("npm test"), PermissionContext(), ROOT)

    assert (dangerous.safety, dangerous.suggested_rules) == (True, ())
    assert (plain.safety, [rule.rule_content for rule in plain.suggested_rules]) == (False, ["npm test"])


def test_a_refusal_without_asking_keeps_the_suggestions() -> None:
    decision = decide_call(BASH, "{}", _bash("npm test"), PermissionContext(mode=PermissionMode.DONT_ASK), ROOT)

    assert [rule.rule_content for rule in decision.suggested_rules] == ["npm test"]
