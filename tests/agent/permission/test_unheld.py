"""What is decided on a call that is proven harmless where no sandbox can hold it to that, and where one can."""

import json

import pytest

from longhaul.agent.permission.call_analysis import Boundary, CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.decision_table import PermissionDecision, decide_call, decide_planning
from longhaul.agent.permission.preview import preview
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule

ROOT = "/proj"
BASH = ToolDescriptor(name="Bash")
READ = ToolDescriptor(name="Read", read_only=True)
INSIDE = PathUse(path="/proj/a.py", inside=True)
WHY = "bubblewrap is not installed"


def read(boundary: Boundary = "none") -> CallAnalysis:
    """Of `cat a.py`."""
    command = SubCommand(words=("cat", "a.py"), read_only=True)
    return CallAnalysis(
        read_only=True,
        commands=(command,),
        paths=(INSIDE,),
        boundary=boundary,
        no_boundary=WHY if boundary == "none" else "",
    )


def edit(boundary: Boundary = "none") -> CallAnalysis:
    """Of `touch a.py`."""
    command = SubCommand(words=("touch", "a.py"), edits_only=True)
    path = INSIDE.model_copy(update={"access": "write"})
    return read(boundary).model_copy(update={"read_only": False, "commands": (command,), "paths": (path,)})


def decided(
    analysis: CallAnalysis, mode: str = "default", *allowed: str, command: str = "cat a.py", tool: ToolDescriptor = BASH
) -> PermissionDecision:
    rules = tuple(PermissionRule(tool_name="Bash", rule_content=content) for content in allowed)
    context = PermissionContext(mode=PermissionMode(mode), rules=rules)
    return decide_call(tool, json.dumps({"command": command}), analysis, context, ROOT)


@pytest.mark.parametrize(
    ("mode", "reading", "editing"),
    [
        ("default", Behavior.ASK, Behavior.ASK),
        ("accept_edits", Behavior.ASK, Behavior.ASK),
        ("explore", Behavior.ASK, Behavior.DENY),
        ("bypass", Behavior.ALLOW, Behavior.ALLOW),
        ("dont_ask", Behavior.DENY, Behavior.DENY),
    ],
)
def test_without_a_boundary_a_proof_alone_lets_nothing_pass(mode: str, reading: Behavior, editing: Behavior) -> None:
    assert (decided(read(), mode).behavior, decided(edit(), mode).behavior) == (reading, editing)
    assert decided(read(), mode).confined == ""


@pytest.mark.parametrize("mode", ["default", "accept_edits", "explore", "dont_ask"])
def test_it_says_why(mode: str) -> None:
    assert decided(read(), mode).reason.startswith(f"It is proven harmless, but no sandbox holds it to that: {WHY}")


@pytest.mark.parametrize("boundary", ["off", "proven", "all"])
@pytest.mark.parametrize("mode", ["default", "accept_edits", "explore", "bypass", "dont_ask"])
def test_with_one_or_where_the_operator_does_without_it_passes_and_is_held_to_it(boundary: Boundary, mode: str) -> None:
    one = decided(read(boundary), mode)
    other = decided(edit(boundary), mode)

    assert (one.behavior, one.confined) == (Behavior.ALLOW, "read")
    if mode in ("accept_edits", "dont_ask"):
        assert (other.behavior, other.confined) == (Behavior.ALLOW, "edit")
    else:
        assert other.confined == ""


def test_what_a_rule_or_the_mode_allows_is_not_confined() -> None:
    unproven = read("proven").model_copy(update={"read_only": False, "commands": (SubCommand(words=("make",)),)})

    assert decided(unproven, "default", "make").confined == ""
    assert decided(unproven, "bypass").confined == ""


@pytest.mark.parametrize("boundary", ["none", "off", "proven", "all"])
def test_a_rule_has_to_cover_what_is_proven_too(boundary: Boundary) -> None:
    both = read(boundary).model_copy(
        update={"read_only": False, "commands": (SubCommand(words=("make",)), *read().commands)}
    )

    assert decided(both, "default", "make").behavior is Behavior.ASK
    assert decided(both, "default", "make", "cat:*").behavior is Behavior.ALLOW


@pytest.mark.parametrize(
    "command",
    ["pwd", "date", "whoami", "id", "hostname", "uname", "nproc", "true", "false", "ls", " ls src ", "echo done, 4/5"],
)
def test_the_plainest_lines_pass_without_a_boundary(command: str) -> None:
    passing = decided(read(), command=command)

    assert (passing.behavior, passing.confined) == (Behavior.ALLOW, "")


@pytest.mark.parametrize(
    "command",
    ["cat a.py", "ls -la", "ls *", "ls ~", "ls a=~/x", "echo x >&\uff11",
     "echo x > a", "echo $HOME", "pwd; ls", "ls\nls",
     "echo 'a'", "date -f a", "ls {a,b}", "ls a\\b", "ls é", "git status", "true &", "echo !x", "pwd\n", "LS"],
)  # fmt: skip
def test_nothing_that_a_shell_could_read_in_another_way_does(command: str) -> None:
    assert decided(read(), command=command).behavior is Behavior.ASK


def test_plainness_is_no_proof() -> None:
    outside = read().model_copy(update={"paths": (PathUse(path="/etc"),)})

    assert decided(outside, command="ls /etc").behavior is Behavior.ASK
    assert decided(read().model_copy(update={"read_only": False}), command="ls").behavior is Behavior.ASK


def test_tools_that_need_no_sandbox_are_not_asked_about() -> None:
    assert decided(CallAnalysis(paths=(INSIDE,)), tool=READ).behavior is Behavior.ALLOW


@pytest.mark.parametrize(
    ("boundary", "behavior"), [("none", Behavior.ASK), ("off", Behavior.ALLOW), ("proven", Behavior.ALLOW)]
)
def test_while_planning_a_person_is_asked_too(boundary: Boundary, behavior: Behavior) -> None:
    def planned(analysis: CallAnalysis) -> Behavior:
        rules = (PermissionRule(tool_name="Bash"),)
        return decide_planning(
            BASH, '{"command": "cat a.py"}', analysis, PermissionContext(rules=rules), ROOT, ""
        ).behavior

    assert planned(read(boundary)) is behavior
    assert planned(edit(boundary)) is Behavior.DENY


@pytest.mark.parametrize(
    ("boundary", "shown"),
    [
        ("none", f"there is none here, so nothing confines it: {WHY}"),
        ("off", "none, as this worker's operator wants it"),
        ("proven", "none: what is approved runs outside of it"),
        ("all", "it runs in one, where the workspace alone can be written"),
    ],
)
def test_who_approves_is_told_what_holds(boundary: Boundary, shown: str) -> None:
    findings = preview("{}", read(boundary), Effect.READ).findings

    assert ("sandbox", shown) in [(part.name, part.text) for part in findings]
