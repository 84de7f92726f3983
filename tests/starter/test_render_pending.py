"""Calls that wait, as people decide on them."""

import json

import pytest
from rich.text import Text

from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse
from longhaul.agent.permission.preview import preview
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.agent.views.would_pass import PassedCall, WouldPass
from longhaul.starter import render_pending
from longhaul.workflows.contract import PendingCall
from tests.starter.test_render import printed


def pending(**fields: object) -> PendingCall:
    given = {"reply_id": "r", "call_id": "c-1", "tool": "Bash", "input": "{}", "waits_for": "person"}
    return PendingCall.model_validate(given | fields)


def test_a_pending_call_shows_reason_change_and_suggested_rules() -> None:
    rule = PermissionRule(tool_name="Bash", rule_content="git add:*")
    call = pending(
        input='{"command": "git add x"}', reason="no rule\nallows it", notice="-old\n+new", suggested_rules=[rule]
    )

    assert printed(render_pending.pending_call(call)) == (
        "Bash  c-1\n  command\n  │ git add x\n  why: no rule allows it\n"
        "  -old\n  +new\n  suggested rules: Bash(git add:*)\n"
    )


def test_who_is_asked_for_more_than_a_word_is_told_before_the_answer() -> None:
    call = pending(signed=True, approvers=2, approved_by=("ana",))

    assert printed(render_pending.pending_call(call)).splitlines()[-2:] == [
        "  approvals: 1 of 2 (by ana); another person must approve it too",
        "  only a signed decision counts: LONGHAUL_APPROVAL_KEY signs it",
    ]


@pytest.mark.proves("X15")
def test_a_suggested_rule_says_what_else_it_would_have_let_pass() -> None:
    rule = PermissionRule(tool_name="Bash", rule_content="make\u202e")
    passed = PassedCall(call_id="c-0", gist="make\x1b all", at="2026-11-23T10:00:00Z")
    one = [WouldPass(rule=rule, looked_at=1, count=count) for count in (0, 1)]
    found = [WouldPass(rule=rule), WouldPass(rule=rule, looked_at=7), WouldPass(rule=rule, looked_at=7, count=3)]

    shown = printed(
        Text("\n").join(render_pending.would_pass([*one, *found, found[2].model_copy(update={"newest": (passed,)})]))
    )

    assert shown.splitlines() == [
        "  Bash(make\\u202e): it would not have allowed the last other call of Bash",
        "  Bash(make\\u202e): it would have allowed the last other call of Bash",
        "  Bash(make\\u202e): no other call of Bash was made here recently",
        "  Bash(make\\u202e): of the last 7 other calls of Bash it would have allowed none",
        "  Bash(make\\u202e): of the last 7 other calls of Bash it would have allowed 3",
        "  Bash(make\\u202e): of the last 7 other calls of Bash it would have allowed 3",
        "  │ make\\x1b all",
    ]


def test_a_previewed_call_shows_where_it_works_and_what_it_touches() -> None:
    analysis = CallAnalysis(cwd="/site", paths=(PathUse(path="/etc/hosts", access="write"),), safety="it is strange")
    command = json.dumps({"command": "ls" + "x" * 9_000 + "; rm\u202e"})
    call = pending(input=command, digest="K7xQ-22222222-and-more", preview=preview(command, analysis, Effect.ONCE))

    shown, whole = printed(render_pending.pending_call(call)), printed(render_pending.pending_call(call, whole=True))

    assert shown.startswith("Bash  c-1\n  command\n  │ lsxxx")
    assert "x; rm⟨U+202E⟩\n  runs at most once: if a worker dies, nobody knows whether it ran; in /site\n" in shown
    assert "  warning\n  │ it is dangerous: it is strange\n" in shown
    assert "  touches\n  │ write /etc/hosts (outside the workspace)\n" in shown
    assert shown.endswith("  this is shortened; --show shows all\n")
    assert "x" * 9_000 + "; rm⟨U+202E⟩" in whole
    assert "not all" not in whole
    assert "approve s c-1 --seen=K7xQ-2222222\n" in printed(render_pending.how_to_answer("s", call))


CHANGE = "--- /w/a.py\n+++ /w/a.py\n@@ -1,2 +1,2 @@\n same\n-old\n+{}"


def edit(new: str, notice: str, tool: str = "Edit") -> PendingCall:
    arguments = json.dumps({"file_path": "/w/a.py", "old_string": "old", "new_string": new, "replace_all": False})
    analysis = CallAnalysis(cwd="/w", notice=notice)
    return pending(tool=tool, input=arguments, notice=notice, preview=preview(arguments, analysis, Effect.IDEMPOTENT))


def test_what_would_change_is_shown_once_and_all_of_it_on_demand() -> None:
    call = edit("brand new", CHANGE.format("brand new"))

    shown, whole = printed(render_pending.pending_call(call)), printed(render_pending.pending_call(call, whole=True))

    assert shown.count("brand new") == 1
    assert "  file_path\n  │ /w/a.py\n  old_string: in the change below\n  new_string: in the change below\n" in shown
    assert "  replace_all\n  │ false\n" in shown
    assert "runs again if a worker dies; in /w\n" in shown
    assert whole.count("brand new") == 2
    assert render_pending.is_cut(call)


@pytest.mark.parametrize(
    "call",
    [
        edit("x" * 500, CHANGE.format("x" * 396 + "[+103]")),
        edit("lines", "--- /w/a.py\n+++ /w/a.py\n@@ -1 +1 @@\n+lines\n… 7 lines of this change are not shown here …"),
        edit("a" + " " * 40 + "b", CHANGE.format("a" + " " * 40 + "b")),
        edit("a" + "\n" * 40 + "b", CHANGE.format("a" + "\n+" * 40 + "b")),
        edit("x", "This would fail: old_string was not found in the file"),
        edit("x", "--- /w/a.py\n+++ /w/a.py\n7 bytes are replaced by 9 bytes; not shown as text"),
        edit("x", CHANGE.format("x"), tool="my_edit"),
    ],
    ids=["a long line", "a long change", "far to the right", "far below", "no change", "no text", "another tool"],
)
def test_arguments_stay_that_the_change_may_not_say(call: PendingCall) -> None:
    assert "in the change below" not in printed(render_pending.pending_call(call))


def test_the_commands_that_answer_can_be_pasted() -> None:
    shown = printed(render_pending.how_to_answer("my session", pending(), ["--user", "ana"]), width=20)

    assert shown == (
        "  longhaul approve 'my session' c-1 --user ana\n  longhaul deny 'my session' c-1 --reason TEXT --user ana\n"
    )


def test_a_call_with_suggested_rules_can_be_approved_along_with_them() -> None:
    rule = PermissionRule(tool_name="Bash", rule_content="git add:*", behavior=Behavior.ALLOW, source="suggested")

    shown = printed(render_pending.how_to_answer("s", pending(suggested_rules=(rule,))))

    assert shown.splitlines()[1] == "  longhaul approve s c-1 --accept-rules"


def test_an_outside_call_is_answered_by_its_result() -> None:
    shown = printed(render_pending.how_to_answer("s", pending(waits_for="outside")))

    assert shown == "  longhaul result s c-1 --output TEXT\n"


PLAN = (
    "# The attic\n\n1. Clear **all** of it\u202e.\n\n<!-- and the cellar -->\n\n"
    "[//]: # (and the garden)\n\n&#x202e;end\n"
)


def hands_over(plan: object, **beside: object) -> PendingCall:
    arguments = json.dumps({"plan": plan, **beside})
    seen = preview(arguments, CallAnalysis(), Effect.READ, "plan_exit")
    return pending(tool="plan_exit", input=arguments, preview=seen)


def test_a_plan_is_laid_out_and_says_what_approving_it_does() -> None:
    call = hands_over(PLAN)

    shown, whole = printed(render_pending.pending_call(call)), printed(render_pending.pending_call(call, whole=True))

    assert shown.startswith("a plan, to be approved  c-1\n  │ ")
    assert "# The attic" not in shown
    assert "Clear all of it⟨U+202E⟩." in shown
    assert "\\u202eend" in shown
    assert "<!-- and the cellar -->" in shown
    assert "and the garden" in shown
    assert "  once approved: ends plan mode: from then on calls may change things" in shown
    assert all(line.startswith("  ") for line in shown.splitlines()[1:])
    assert "  │ 1. Clear **all** of it⟨U+202E⟩.\n" in whole
    assert render_pending.is_cut(call)


@pytest.mark.parametrize("width", [38, 80])
def test_of_a_long_plan_nothing_is_left_out(width: int) -> None:
    call = hands_over("\n".join(f"- step {number} of it" for number in range(2_000)))

    lines = render_pending.pending_call(call, width=width).plain.splitlines()

    assert [line for line in lines if "step" in line] == [f"  │  • step {number} of it" for number in range(2_000)]
    assert max(map(len, lines[1:-2])) <= width


@pytest.mark.parametrize(
    "call", [hands_over(5), hands_over(" "), hands_over("x", y=1), pending(tool="Bash", input='{"plan": "x"}')]
)
def test_what_is_no_plan_alone_is_shown_as_a_call(call: PendingCall) -> None:
    assert render_pending.plan_of(call) is None
    assert printed(render_pending.pending_call(call)).startswith(f"{call.tool}  c-1\n")
