"""`longhaul run` and `chat` with a person at the terminal."""

import json
import signal
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, Process
from dataclasses import replace
from typing import Any

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import CLI, Cli
from tests.e2e.terminal import Terminal, at_a_terminal

pytestmark = pytest.mark.server

QUESTION = "[q] later: "
TIDE = "The tide comes in, and the tide goes out."
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "m\u202eoon"}
WANTS_TO_EDIT = {"text": "I will greet the moon.", "tool_calls": [{"id": "edit-9", "name": "Edit", "input": EDIT}]}


def test_an_approval_at_the_terminal_lets_the_call_run(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})

    seen = at_a_terminal(cli, "run", "Greet the moon", "--model", model, answers=[(QUESTION, "?"), (QUESTION, "y")])

    assert seen.code == 0, seen.text
    assert "m\\u202eoon" in seen.shown
    assert "\u202e" not in seen.text
    assert "(one of y, n, e" in seen.text
    assert "\x1b[32m" in seen.text
    assert "Done." in seen.shown
    assert (cli.folder / "greeting.txt").read_text() == "hello m\u202eoon\n"


def test_a_denial_at_the_terminal_reaches_the_model(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "I leave it.", "expect": {"last_contains": ": not tonight"}})

    seen = at_a_terminal(
        cli, "run", "Greet", "--model", model, answers=[(QUESTION, "n"), ("empty): ", "not tonight\n")]
    )

    assert seen.code == 0, seen.text
    assert "I leave it." in seen.text


async def test_a_list_of_questions_is_answered_in_one_operation(cli: Cli, app: Longhaul) -> None:
    writes = [
        {"id": f"write-{name}", "name": "Write", "input": {"file_path": f"{name}.txt", "content": name}}
        for name in ("amber", "birch", "cedar")
    ]
    model = cli.script({"tool_calls": writes}, {"text": "Written."})

    seen = at_a_terminal(
        cli, "run", "Write", "--model", model, "--session", "listed",
        answers=[(QUESTION, "y"), (QUESTION, "n"), ("empty): ", "no birches\n"), (QUESTION, "y")],
    )  # fmt: skip

    assert seen.code == 0, seen.text
    assert "3 of 3: may it do this?" in seen.shown
    assert "ofthelast2othercallsofWriteitwouldhaveallowed2" in "".join(seen.shown.split())
    assert {path.stem for path in cli.folder.glob("*.txt")} == {"amber", "cedar", "greeting"}
    (card,) = await app.sessions(session_id="listed")
    told = (await app.attach(card).events()).events
    (operation,) = [event for event in told if event.type == "USER_CONFIRM_RESULT"]
    assert [one["call_id"] for one in operation.value["decisions"]] == ["write-amber", "write-birch", "write-cedar"]


def test_without_an_editor_arguments_are_changed_field_by_field(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})
    bare = replace(cli, environment=cli.environment | {"EDITOR": "", "VISUAL": ""})

    seen = at_a_terminal(
        bare, "run", "Greet the moon", "--model", model,
        answers=[
            (QUESTION, "e"), ("file_path (", "\n"), ("old_string (", "\n"), ("new_string (", "sun\n"),
            ("replace_all (", "perhaps\n"),
            # What is typed between the error and the question that follows is forgotten.
            ("type one of the two\x1b[0m\r\nreplace_all (", "\n"),
        ],
    )  # fmt: skip

    assert seen.code == 0, seen.text
    assert "leave empty to keep 'world'" in " ".join(seen.shown.split())
    assert "✓ Edit greeting.txt → Replaced 1 occurrence" in seen.shown, "and not the note that the model reads of it"
    assert "m\\u202eoon" in seen.shown
    assert (cli.folder / "greeting.txt").read_text() == "hello sun\n"


def test_a_call_may_be_left_waiting(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT)

    seen = at_a_terminal(cli, "run", "Greet", "--model", model, "--session", "left", answers=[(QUESTION, "q")])

    assert seen.code == 3, seen.text
    assert "longhaul approve left edit-9" in seen.text


def test_ctrl_c_at_the_question_interrupts(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT)

    seen = at_a_terminal(cli, "run", "Greet", "--model", model, answers=[(QUESTION, "\x03")])

    assert seen.code == 130, seen.text
    assert (cli.folder / "greeting.txt").read_text() == "hello world\n"


def test_a_chat_goes_from_turn_to_turn_until_it_is_left(cli: Cli) -> None:
    model = cli.script({"text": "Good morning."}, {"text": "Good night."})

    seen = at_a_terminal(
        cli,
        "chat",
        "--model",
        model,
        answers=[("/help says", "hello\n"), ("morning.\n"[:-1], "bye\n"), ("night.", "/quit\n")],
    )

    assert seen.code == 0, seen.text
    assert seen.text.index("Good morning.") < seen.text.index("Good night.")


def test_no_color_is_respected(cli: Cli) -> None:
    model = cli.script({"tool_calls": [{"name": "Bash", "input": {"command": "ls"}}]})
    colourless = replace(cli, environment=cli.environment | {"NO_COLOR": "1"})

    seen = at_a_terminal(colourless, "run", "List", "--model", model, answers=[])

    assert "(+1 line)" in seen.text
    assert "\x1b[32m" not in seen.text


@pytest.mark.proves("C4")
def test_text_is_shown_while_it_is_said_and_once(cli: Cli) -> None:
    model = cli.script({"text": TIDE, "chunk_chars": 4, "delay_ms": 120})

    seen = at_a_terminal(cli, "run", "Speak", "--model", model, answers=[])

    assert seen.code == 0, seen.text
    assert seen.shown.count("goes out.") == 1
    assert TIDE in seen.shown


async def test_a_session_is_watched_line_by_line_until_one_leaves(cli: Cli, app: Longhaul) -> None:
    model = cli.script({"text": "Low water."}, {"text": TIDE, "chunk_chars": 4, "delay_ms": 60})
    session = app.session("tide", agent=AgentSpec(model=model))
    await session.reply("Begin")
    command = (*CLI, "watch", "tide", "--json")

    watching = await create_subprocess_exec(*command, env=cli.environment, cwd=cli.folder, stdout=PIPE)
    events = await _lines_to_the_end_of_a_reply(watching)
    await session.submit("Speak")
    events += await _lines_to_the_end_of_a_reply(watching)
    watching.send_signal(signal.SIGINT)
    code = await watching.wait()

    recorded = [event["seq"] for event in events if "seq" in event]
    assert recorded == list(range(1, len(recorded) + 1))
    assert "".join(event["delta"] for event in events if "live" in event and "delta" in event) == TIDE
    assert code == 130


async def _lines_to_the_end_of_a_reply(watching: Process) -> list[dict[str, Any]]:
    assert watching.stdout is not None
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] != "REPLY_END":
        events.append(json.loads(await watching.stdout.readline()))
    return events


LONG = "## The tide\n\nIt comes **in**, and with it come the boats of all the fishermen.\n\n- in\n- out\n\nSo it goes."


def test_markdown_is_laid_out_as_it_comes(cli: Cli) -> None:
    model = cli.script({"thinking": "Of tides.", "text": LONG, "chunk_chars": 3, "delay_ms": 120})

    # The size that a parent has exported is not this terminal's.
    exported = {"COLUMNS": "80", "LINES": "24"}

    with Terminal(cli, "run", "Speak", "--model", model, columns=70, environment=exported) as terminal:
        terminal.until("It comes in, and with")
        assert "So it" not in terminal.shown
        terminal.resized(29, 30)
        terminal.resized(40, 20)
        terminal.until("So it goes.")
        seen = terminal.end()

    assert seen.code == 0
    lines = [line.strip() for line in seen.shown.splitlines()]
    assert [lines.count(line) for line in ("Of tides.", "So it goes.", "• in", "• out")] == [1, 1, 1, 1], seen.shown
    assert [seen.shown.count(words) for words in ("It comes in", "fishermen")] == [1, 1], seen.shown
    assert "**" not in seen.shown
    assert "1 step, " in lines[-1]


def test_what_runs_shows_its_last_lines_and_they_stay_when_it_has_ended(cli: Cli) -> None:
    command = "for n in 1 2 3 4 5 6; do echo line-$n; sleep 0.3; done"
    model = cli.script({"tool_calls": [{"name": "Bash", "input": {"command": command}}]}, {"text": "Counted."})

    with Terminal(cli, "run", "Count", "--model", model, "--mode", "bypass", columns=60) as terminal:
        terminal.until("| line-5")
        assert "| line-1" not in terminal.shown
        assert "step 2" in terminal.shown
        seen = terminal.end()

    assert "| line-" not in seen.shown
    assert [f"│ line-{number}" in seen.shown for number in range(1, 7)] == [False, False, True, True, True, True]
    assert "… 1 more line: longhaul show" in seen.shown
    assert "✓ Bash" in seen.shown
    assert "Counted." in seen.shown


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"CI": "1", "NO_COLOR": "1"}])
def test_a_dumb_terminal_gets_plain_lines(cli: Cli, environment: dict[str, str]) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": LONG})

    with Terminal(cli, "run", "Greet", "--model", model, environment=environment) as terminal:
        terminal.until(QUESTION.strip())
        terminal.types("y\n" if "TERM" in environment else "y")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "It comes **in**, and" in seen.shown
    assert "\x1b[" not in seen.text.replace("\x1b[2m", "").replace("\x1b[0m", "") if "TERM" in environment else True
    assert "\x1b[1A" not in seen.text


def test_what_is_pasted_or_typed_ahead_decides_nothing(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Left."})

    with Terminal(cli, "run", "Greet", "--model", model) as terminal:
        terminal.until("I will greet")
        terminal.types("y")
        terminal.until(QUESTION.strip())
        terminal.types("yes, do it\n")
        terminal.until("(one of y, n, e")
        terminal.types("n")
        terminal.until("(may be empty):")
        terminal.types("\n")
        seen = terminal.end()

    assert (cli.folder / "greeting.txt").read_text() == "hello world\n", seen.shown
