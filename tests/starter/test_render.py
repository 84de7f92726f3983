"""Calls, results and diffs as people see them."""

import io
import json

import pytest
from rich.console import Console
from rich.text import Text

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter import render


def printed(text: Text, width: int = 80) -> str:
    """As a coloured terminal of that width would get it, without the colours."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, color_system=None)
    console.print(text, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_markup_in_what_the_model_says_is_text() -> None:
    assert printed(render.model_text("[bold]loud[/bold] [link=http://x]y[/link] :smile:")) == (
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


def test_a_diff_is_coloured_by_its_lines() -> None:
    shown = render.diff("--- a\n+++ b\n@@ -1 +1 @@\n-old\x1b\n+new\n same")

    assert shown.plain == "  --- a\n  +++ b\n  @@ -1 +1 @@\n  -old\\x1b\n  +new\n   same"
    assert [str(span.style) for span in shown.spans] == ["bold", "bold", "cyan", "red", "green"]
