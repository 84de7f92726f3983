"""Renders what an agent says, does and asks for, as rich Text. Text from outside is neutralised here and is never
markup."""

import json
from collections.abc import Iterable

from rich.text import Text

from longhaul.agent.plain.text import gist, parsed
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.visible import harmless, one_line, visible

_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


def said(text: str) -> Text:
    """What the model writes to a person."""
    return Text(harmless(text))


def thought(text: str) -> Text:
    return Text(harmless(text), style="dim italic")


def user_said(text: str) -> Text:
    return _gutter("> ", harmless(text), "bold")


def call_line(tool: str, arguments: str) -> Text:
    """`Bash ls -la`: a call on one line."""
    return Text.assemble((one_line(tool), "bold"), " ", one_line(gist(arguments)))


def result_line(tool: str, arguments: str, state: ToolResultState | None, output: str, *, width: int) -> Text:
    """`✓ Bash ls -la → total 12 (+3 lines)`, at most `width` cells wide."""
    mark, style = mark_of(state)
    line = Text.assemble((f"{mark} ", style), call_line(tool, arguments))
    line.rstrip()
    if len(line) > width // 2:
        line.truncate(max(width // 2, 8), overflow="ellipsis")
    line.append(" → ", "dim")
    line.append(short(output), "dim" if state is ToolResultState.SUCCESS else style)
    line.truncate(max(width, 16), overflow="ellipsis")
    return line


def mark_of(state: ToolResultState | None) -> tuple[str, str]:
    """How a call stands, as one character and its style; None: it has no result yet."""
    return _MARKS.get(state, ("…", "yellow"))


_MARKS: dict[ToolResultState | None, tuple[str, str]] = {
    ToolResultState.SUCCESS: ("✓", "green"),
    ToolResultState.ERROR: ("✗", "red"),
    ToolResultState.DENIED: ("✗", "red"),
    ToolResultState.INTERRUPTED: ("✗", "yellow"),
    ToolResultState.UNKNOWN: ("?", "yellow"),
}


def short(output: str) -> str:
    """The first line that says something, and how many more there are."""
    lines = [line for line in output.splitlines() if line.strip()]
    if not lines:
        return "(no output)"
    more = f" (+{len(lines) - 1} line{'s' if len(lines) > 2 else ''})" if len(lines) > 1 else ""
    return one_line(lines[0])[:400] + more


def diff(text: str) -> Text:
    """A unified diff, added and removed lines in colour."""
    shown = Text()
    for line in text.split("\n"):
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        shown.append("  " + visible(line) + "\n", style)
    shown.rstrip()
    return shown


def answer(arguments: str) -> Text:
    """An answer in the form that was asked for, as JSON that a program reads and a terminal does not obey."""
    text = json.dumps(parsed(arguments), indent=2, ensure_ascii=False)
    return Text("".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text))


def task_list(tasks: Iterable[tuple[str, str]]) -> Text:
    """Of each its state and what it is about, a line each."""
    shown = Text()
    for state, subject in tasks:
        style = {"in_progress": "bold", "completed": "dim", "abandoned": "dim strike"}.get(state, "")
        shown.append("\n" if shown else "").append(f"  {_TASK_MARKS.get(state, '[?]')} {one_line(subject)}", style)
    return shown


def tasks_in(arguments: str) -> Text:
    """The list that a call of `todo_write` gives; what a model writes there may be anything."""
    todos = (parsed(arguments) or {}).get("todos")
    given = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    return task_list((str(todo.get("status", "")), str(todo.get("content", ""))) for todo in given)


def arguments_in_full(arguments: str) -> Text:
    """Every argument, nothing shortened and nothing hidden. Each line stands behind a bar, so none can pose as ours."""
    given = parsed(arguments)
    if given is None:
        return _gutter("  │ ", visible(arguments))
    shown = Text()
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        shown.append(f"  {visible(name)}".replace("\n", "\\n") + "\n", "cyan")
        shown.append_text(_gutter("  │ ", visible(text)))
        shown.append("\n")
    shown.rstrip()
    return shown


_TASK_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "abandoned": "[-]"}


def behind_bar(text: str) -> Text:
    """Text from outside, neutralised already, of which no line can pose as ours."""
    return _gutter("  │ ", text)


def _gutter(bar: str, text: str, style: str = "") -> Text:
    shown = Text()
    for number, line in enumerate(text.split("\n")):
        shown.append("\n" if number else "").append(bar, "dim").append(line, style)
    return shown
