"""The habits of a chat on a terminal of 38 columns, and on one that can paint nothing over."""

import base64
import json
import time
from typing import Any

import pytest

from tests.e2e.cli.test_chat_reading import (
    ALT_ENTER,
    DOT,
    FAILS,
    LEAVE,
    NEWLINE,
    QUESTION,
    SEARCH,
    WANTS_TO_EDIT,
    WHOLE,
)
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.server

TODOS = [{"content": "Look up", "status": "completed"}, {"content": "Light it", "status": "in_progress"}]
LISTS = {"tool_calls": [{"name": "todo_write", "input": {"todos": TODOS}}]}
AGENT = 'tools = ["Bash", "Edit", "Read", "todo_write"]'


def scripted(cli: Cli, *lines: dict[str, Any]) -> str:
    """The path of an agent that keeps a list of tasks."""
    file = cli.folder / "keeper.toml"
    file.write_text(f'model = "{cli.script(*lines)}"\n{AGENT}\n')
    return str(file)


def test_every_habit_has_room_in_38_columns(cli: Cli) -> None:
    agent = scripted(
        cli,
        {"tool_calls": [FAILS]},
        {"text": "It is red."},
        LISTS,
        {"text": "Listed."},
        WANTS_TO_EDIT,
        {"text": "Done."},
    )

    with Terminal(cli, "chat", "--agent", agent, "--mode", "bypass", "--session", "slim", columns=38) as terminal:
        terminal.steps(
            ("", ">"),
            (f"run it{NEWLINE}and tell me{ALT_ENTER}why\r", "It is red."),
            (WHOLE, "│ anchor"),
            (SEARCH, "i-search"),
            ("tell\r", "> run it\n"),
            ("\r", "Listed."),
            ("/tasks\r", "[>] Light it"),
            ("/mod\t acc\t\r", "now on: mode accept_edits"),
            ("greet @greet\t\r", "Done."),
            ("/diff\r", "+hello moon"),
            ("/cost\r", "tasks 1/2: Light it"),
            ("/status\r", "slim: idle"),
            ("/taks\r", "did you\n  mean /tasks?"),
            ("/help\r", "Ctrl-R searches"),
        )
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    said = cli("show", "slim", "--json").document["transcript"]
    asked = [message["content"][0]["text"].strip() for message in said if message["role"] == "user"]
    assert asked == ["run it\nand tell me\nwhy"] * 2 + ["greet @greeting.txt"]


def test_a_dumb_terminal_has_every_command(cli: Cli) -> None:
    agent = scripted(
        cli,
        {"tool_calls": [FAILS]},
        {"text": "It is red."},
        LISTS,
        {"text": "Listed."},
        WANTS_TO_EDIT,
        {"text": "Done."},
    )

    with Terminal(
        cli, "chat", "--agent", agent, "--mode", "bypass", "--session", "plain", environment={"TERM": "dumb"}
    ) as terminal:
        terminal.steps(
            ("", ">"),
            ("run it\r", "It is red."),
            ("/output\r", "│ anchor"),
            ("list\r", "Listed."),
            ("/tasks\r", "[>] Light it"),
            ("/mode bypas\r", "did you mean 'bypass'?"),
            ("/mode accept_edits\r", "from now on: mode accept_edits"),
            ("greet\r", "Done."),
            ("/diff\r", "+hello moon"),
            ("/cost\r", "6 model calls"),
            ("/model\r", "model scripted:"),
            ("/undo\r", "the last messages:"),
        )
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "\x1b[" not in seen.text
    assert "\x07" not in seen.text


@pytest.mark.parametrize(("columns", "term", "enter", "bells"), [(38, "xterm", "", 1), (100, "dumb", "\r", 0)])
def test_what_changes_a_session_is_typed_anywhere(cli: Cli, columns: int, term: str, enter: str, bells: int) -> None:
    model, user = cli.script({"text": "A red dot."}), f"painter-{term}"
    (cli.folder / "other.jsonl").write_text("\n".join(map(json.dumps, ({}, WANTS_TO_EDIT, {"text": "Done."}))))
    (cli.folder / "dot.png").write_bytes(base64.b64decode(DOT))
    first, last = ("1 step, ", "2 steps, ") if bells else ("A red dot.\n>", "Done.\n>")

    with Terminal(
        cli, "chat", "--model", model, "--session", f"art-{term}", "--user", user,
        columns=columns, environment={"TERM": term},
    ) as terminal:  # fmt: skip
        terminal.steps(
            ("", ">"),
            ("what is @dot.png ?\r", first),
            ("/compact\r", "the context is short enough"),
            ("/model scripted:other.jsonl\r", "from the next step on: model"),
            ("/model\r", "other.jsonl\n"),
            ("greet\r", QUESTION),
            ("", "again if a worker dies;"),
            (f"y{enter}", last),
            ("/cost\r", "model calls"),
        )
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert seen.text.count("\x07") == bells
    assert (cli.folder / "greeting.txt").read_text() == "hello moon\n"
    assert "image/png" in json.dumps(cli("show", f"art-{term}", "--json").document["transcript"])


@pytest.mark.parametrize(("columns", "term"), [(38, "xterm"), (100, "dumb")])
def test_what_is_typed_at_once_behind_a_replys_last_word_is_not_refused(cli: Cli, columns: int, term: str) -> None:
    model = cli.script({"text": "The lamp is lit."}, {"text": "The fog lifts."})

    with Terminal(
        cli, "chat", "--model", model, "--session", f"hasty-{term}", columns=columns, environment={"TERM": term}
    ) as terminal:
        terminal.steps(
            ("", ">"),
            ("light it\r", "lit."),
            ("look out\r", "lifts."),
            ("/undo\r", "the last messages:"),
            ("", "The lamp is lit."),
        )
        terminal.presses("/clear\r")
        while terminal.shown.count("Ctrl-D leaves") < 3:
            assert terminal.read(time.monotonic() + 30.0), terminal.shown
        terminal.steps(("/help\r", "/observe TEXT"))
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "a reply is being made" not in seen.shown
