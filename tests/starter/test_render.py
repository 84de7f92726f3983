"""Calls, results and diffs as people see them."""

import io
import json

import pytest
from rich.console import Console
from rich.text import Text

from agent.messages import ToolResultState
from agent.permission.facts import CallFacts, PathFact
from agent.permission.rules import Behavior, PermissionRule
from agent.preview import preview
from agent.tools import Effect
from starter import render
from workflows.contract import PendingCall


def printed(text: Text, width: int = 80) -> str:
    """As a coloured terminal of that width would get it, without the colours."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, color_system=None)
    console.print(text, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def pending(**fields: object) -> PendingCall:
    given = {"reply_id": "r", "call_id": "c-1", "tool": "Bash", "input": "{}", "waits_for": "person"}
    return PendingCall.model_validate(given | fields)


def test_markup_in_what_the_model_says_is_text() -> None:
    assert printed(render.said("[bold]loud[/bold] [link=http://x]y[/link] :smile:")) == (
        "[bold]loud[/bold] [link=http://x]y[/link] :smile:\n"
    )


@pytest.mark.parametrize("width", [16, 20, 40, 200])
def test_a_result_is_one_line_that_fits(width: int) -> None:
    command = json.dumps({"command": "echo 世界 && " * 20})

    line = render.result_line("Bash", command, ToolResultState.SUCCESS, "世界\n" * 50, width=width)

    assert line.cell_len <= width
    assert "\n" not in line.plain


def test_a_result_says_what_was_called_and_what_came_of_it() -> None:
    line = render.result_line("Bash", '{"command": "make test"}', ToolResultState.ERROR, "boom\nat 3\nat 4\n", width=80)

    assert line.plain == "✗ Bash make test → boom (+2 lines)"


def test_arguments_are_shown_in_full_behind_a_bar() -> None:
    command = "ls\n[a]llow, [d]eny: a\n\u202eevil" + "x" * 5000

    shown = printed(render.arguments_in_full(json.dumps({"command": command, "timeout": 7})))

    assert shown == (f"  command\n  │ ls\n  │ [a]llow, [d]eny: a\n  │ \\u202eevil{'x' * 5000}\n  timeout\n  │ 7\n")


def test_arguments_that_are_no_object_are_shown_as_they_came() -> None:
    assert printed(render.arguments_in_full('{"command": "ls\x1b')) == '  │ {"command": "ls\\x1b\n'


def test_an_argument_name_can_not_pose_as_another_line() -> None:
    assert printed(render.arguments_in_full('{"a\\nb": "c"}')) == "  a\\nb\n  │ c\n"


def test_a_pending_call_shows_reason_change_and_suggested_rules() -> None:
    rule = PermissionRule(tool_name="Bash", rule_content="git add:*")
    call = pending(
        input='{"command": "git add x"}', reason="no rule\nallows it", notice="-old\n+new", suggested_rules=[rule]
    )

    assert printed(render.pending_call(call)) == (
        "Bash  c-1\n  command\n  │ git add x\n  why: no rule allows it\n"
        "  -old\n  +new\n  suggested rules: Bash(git add:*)\n"
    )


def test_a_previewed_call_shows_where_it_works_and_what_it_touches() -> None:
    facts = CallFacts(cwd="/site", paths=(PathFact(path="/etc/hosts", access="write"),), safety="it is strange")
    command = json.dumps({"command": "ls" + "x" * 9_000 + "; rm\u202e"})
    call = pending(input=command, digest="K7xQ-22222222-and-more", preview=preview(command, facts, Effect.ONCE))

    shown, whole = printed(render.pending_call(call)), printed(render.pending_call(call, whole=True))

    assert shown.startswith("Bash  c-1\n  command\n  │ lsxxx")
    assert "x; rm⟨U+202E⟩\n  once: nobody can promise that it can be undone; in /site\n" in shown
    assert "  warning\n  │ it is dangerous: it is strange\n" in shown
    assert "  touches\n  │ write /etc/hosts (outside the workspace)\n" in shown
    assert shown.endswith("  not all of it is shown here; --show shows all\n")
    assert "x" * 9_000 + "; rm⟨U+202E⟩" in whole
    assert "not all" not in whole
    assert "approve s c-1 --seen=K7xQ-2222222\n" in printed(render.how_to_answer("s", call))


def test_a_diff_is_coloured_by_its_lines() -> None:
    shown = render.diff("--- a\n+++ b\n@@ -1 +1 @@\n-old\x1b\n+new\n same")

    assert shown.plain == "  --- a\n  +++ b\n  @@ -1 +1 @@\n  -old\\x1b\n  +new\n   same"
    assert [str(span.style) for span in shown.spans] == ["bold", "bold", "cyan", "red", "green"]


def test_the_commands_that_answer_can_be_pasted() -> None:
    shown = printed(render.how_to_answer("my session", pending(), ["--user", "ana"]), width=20)

    assert shown == (
        "  longhaul approve 'my session' c-1 --user ana\n  longhaul deny 'my session' c-1 --reason TEXT --user ana\n"
    )


def test_a_call_with_suggested_rules_can_be_approved_along_with_them() -> None:
    rule = PermissionRule(tool_name="Bash", rule_content="git add:*", behavior=Behavior.ALLOW, source="suggested")

    shown = printed(render.how_to_answer("s", pending(suggested_rules=(rule,))))

    assert shown.splitlines()[1] == "  longhaul approve s c-1 --accept-rules"


def test_an_outside_call_is_answered_by_its_result() -> None:
    shown = printed(render.how_to_answer("s", pending(waits_for="outside")))

    assert shown == "  longhaul result s c-1 --output TEXT\n"
