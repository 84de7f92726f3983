"""`longhaul chat` with a person at the terminal who types whenever they like."""

import time
from itertools import pairwise

import pytest

from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

SLOW = {"text": "One by one the boats come home.\n\nThe harbour is full.", "chunk_chars": 3, "delay_ms": 150}
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
WANTS_TO_EDIT = {"text": "I will greet the moon.", "tool_calls": [{"id": "edit-9", "name": "Edit", "input": EDIT}]}


def test_one_may_type_while_the_agent_works(cli: Cli) -> None:
    model = cli.script(SLOW, {"text": "Good night."})

    with Terminal(cli, "chat", "--model", model, columns=40) as terminal:
        terminal.until(">")
        terminal.types("hello\n")
        terminal.until("One by one")
        assert "full." not in terminal.shown
        terminal.types("and then?\n")
        terminal.until("queued")
        terminal.until("Good night.")
        terminal.types("/tasks\n")
        terminal.until("no tasks")
        terminal.types("sleep well\n\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    places = [
        seen.shown.index(text)
        for text in ("> hello", "> and then?", "The harbour", "Good night.", "> /tasks", "> sleep well")
    ]
    assert places == sorted(places), seen.shown
    assert seen.shown.count("The harbour is full.") == 1


def test_what_is_typed_before_the_chat_is_there_is_shown_once(cli: Cli) -> None:
    model = cli.script({"text": "Good morning.", "delay_ms": 100})

    with Terminal(cli, "chat", "--model", model) as terminal:
        terminal.types("hello\n")
        terminal.until("1 step")
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert (seen.shown.count("> hello"), seen.shown.count("Good morning.")) == (1, 1), seen.shown


def test_a_line_above_what_is_typed_says_who_answers_how_and_at_what_cost(cli: Cli) -> None:
    usage = {"input_tokens": 1_200, "output_tokens": 34}
    model = cli.script({"text": "Good morning.", "usage": usage})

    with Terminal(cli, "chat", "--model", model, "--mode", "explore", columns=240) as terminal:
        first = terminal.until(f"longhaul · {model} · explore · 0 tokens · {cli.folder}")
        terminal.types("hello\n")
        terminal.until("Good morning.")
        terminal.until("1,234 tokens")
        terminal.types("/mode accept_edits\n")
        last = terminal.until(f"longhaul · {model} · accept_edits · 1,234 tokens")
        terminal.types("\x04")
        seen = terminal.end()

    assert (first.count(" tokens · "), last.count(" tokens · ")) == (1, 1), "one line, painted over"
    assert seen.code == 0, seen.shown
    assert " tokens · " not in seen.shown


def test_the_line_about_the_session_is_cut_to_the_terminals_width(cli: Cli) -> None:
    with Terminal(cli, "chat", "--model", cli.script({"text": "Good morning."}), columns=30) as terminal:
        terminal.until("…")
        rows = terminal.in_sight.splitlines()
        terminal.types("\x04")
        terminal.end()

    above = next(row for row, below in pairwise(rows) if below.strip() == ">")
    assert above.startswith("longhaul · scripted:")
    assert above.rstrip().endswith("…")


def test_what_is_typed_before_the_chat_has_started_is_said(cli: Cli) -> None:
    model = cli.script({"text": "Good morning."}, {"text": "Good night."})

    with Terminal(cli, "chat", "--model", model) as terminal:
        terminal.types("hel\x1blo\nhalf a senten")
        terminal.until("Good morning.")
        terminal.until("> half a senten")
        terminal.types("ce\n")
        terminal.until("Good night.")
        terminal.types("/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "> hello" in seen.shown
    assert "> half a sentence" in seen.shown


def test_several_lines_typed_before_a_chat_are_one_message_that_waits_and_ctrl_d_leaves(cli: Cli) -> None:
    model = cli.script({"text": "Good morning."})

    with Terminal(cli, "chat", "--model", model) as terminal:
        terminal.types("\x1b[A\x1b[200~one\n/pause\ntwo\x1b[201~")
        terminal.until("> one")
        terminal.types("\n")
        terminal.until("Good morning.")
        terminal.types("/quit\n")
        seen = terminal.end()
    with Terminal(cli, "chat", "--model", model) as terminal:
        terminal.types("\x04")
        left = terminal.end()

    assert (seen.code, left.code) == (0, 0), seen.shown
    assert "> one" in seen.shown
    assert [seen.shown.count(keys) for keys in ("[A", "200~", "201~")] == [1, 1, 1], "the terminal's own echo alone"
    assert "paused" not in seen.shown


def test_a_question_is_answered_by_a_key_and_what_was_typed_stays(cli: Cli) -> None:
    model = cli.script({**WANTS_TO_EDIT, "chunk_chars": 2, "delay_ms": 100}, {"text": "Done."})

    with Terminal(cli, "chat", "--model", model, environment={"TERM_PROGRAM": "ghostty"}) as terminal:
        terminal.until(">")
        terminal.types("greet\n")
        terminal.until("I will")
        terminal.types("half a senten")
        terminal.until("[q] later:")
        terminal.types("y")
        terminal.until("Done.")
        terminal.until("> half a senten")
        terminal.types("\x03/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert (cli.folder / "greeting.txt").read_text() == "hello moon\n"
    assert seen.text.count(" waits for you: Edit\x07") == seen.text.count("\x1b]9;") == 1


def test_what_was_left_for_later_is_asked_again_and_changed_in_the_editor(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})
    there = {"VISUAL": "", "EDITOR": "sed -i s/moon/sea/"}

    with Terminal(cli, "chat", "--model", model, environment=there) as terminal:
        terminal.steps(
            ("", ">"), ("greet\r", "[q] later:"), ("q", "or here: /approve"), ("/status\r", "waits for a person")
        )
        terminal.steps(("/approve", "> /approve"))
        terminal.types("\n")
        while terminal.shown.count("[q] later:") < 2:
            assert terminal.read(time.monotonic() + SURE_SECONDS), terminal.shown
        terminal.types("e")
        terminal.until("Done.")
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert (cli.folder / "greeting.txt").read_text() == "hello sea\n"
    assert "✓ Edit greeting.txt → Replaced 1 occurrence" in seen.shown, "and no note for the model"
    hints = [line.split() for line in seen.shown.splitlines() if "  longhaul approve" in line]
    assert [hint[-2:] for hint in hints] == [["--agent", "longhaul"]] * 4, "pasted, they mean this session alone"


def test_ctrl_c_interrupts_and_the_chat_goes_on_and_another_model_rescues_a_reply_that_waits(cli: Cli) -> None:
    model = cli.script(SLOW, SLOW)

    with Terminal(cli, "chat", "--model", model) as terminal:
        terminal.until(">")
        terminal.types("hello\n")
        terminal.until("One by")
        terminal.types("\x03")
        terminal.until("interrupted")
        terminal.steps(
            ("/model tide\r", "on: model tide"), ("hail\r", "! waits for a worker that can continue: no model")
        )
        terminal.steps((f"/model {model}\r", "on: model scripted:"), ("", "harbour is full."))
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert seen.shown.index("interrupted") < seen.shown.index("> hail") < seen.shown.index("harbour is full.")
    assert "begun again" not in seen.shown


def test_ctrl_c_twice_leaves_and_the_session_goes_on(cli: Cli) -> None:
    command = "trap '' TERM INT; for n in 1 2 3 4 5 6 7 8; do sleep 0.5; done; echo late"
    model = cli.script({"tool_calls": [{"name": "Bash", "input": {"command": command}}]}, {"text": "Not that."})

    with Terminal(cli, "chat", "--model", model, "--mode", "bypass", "--session", "tide-2") as terminal:
        terminal.until(">")
        terminal.types("hello\n")
        terminal.until("Bash trap")
        terminal.types("\x03")
        terminal.until("interrupting")
        terminal.types("\x03")
        seen = terminal.end(10)

    assert seen.code == 0, seen.shown
    assert "longhaul chat --session tide-2" in seen.shown
    assert "late" not in seen.shown.replace("echo late", "")


def test_a_terminal_that_becomes_narrower_shows_nothing_twice(cli: Cli) -> None:
    said = "One by one the boats come home, red ones and blue ones and one without a name."
    model = cli.script({"text": said, "chunk_chars": 2, "delay_ms": 100})

    with Terminal(cli, "chat", "--model", model, columns=90) as terminal:
        terminal.until(">")
        terminal.types("hello\n")
        terminal.until("red ones and")
        terminal.resized(37, 30)
        terminal.until("1 step, ")
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert [seen.shown.count(words) for words in ("One by one", "> hello", "blue ones", "name.")] == [1, 1, 1, 1], (
        seen.shown
    )


def test_a_provider_that_is_away_is_told_with_its_cause_the_attempt_and_the_next_try(cli: Cli) -> None:
    away = {"kind": "overloaded", "retry_after": 3}
    model = cli.script({"text": "Fair wind.", "faults": [away]})

    with Terminal(cli, "chat", "--model", model) as terminal:
        terminal.until(">")
        terminal.types("how is the wind?\n")
        terminal.until("next try at 20")
        waits = terminal.shown
        terminal.until("Fair wind.")
        terminal.types("/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "waits for the model's provider (try 1 failed)" in waits
    assert "overloaded" in waits
    assert "Fair wind." not in waits


def test_of_a_long_file_to_write_its_name_and_the_question_stay_in_sight(cli: Cli) -> None:
    lines = "".join(f"verse {number}\n" for number in range(80))
    writes = {"name": "Write", "input": {"file_path": "shanty.txt", "content": lines}}
    model = cli.script({"tool_calls": [writes]}, {"text": "Sung."})

    with Terminal(cli, "chat", "--model", model, rows=24, columns=80) as terminal:
        terminal.until(">")
        terminal.types("write it\n")
        terminal.until("[q] later:")
        sight = terminal.in_sight
        terminal.types("y")
        terminal.until("Sung.")
        terminal.types("/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert ("Write" in sight, "shanty.txt" in sight, "[y]es" in sight) == (True, True, True), sight
    assert (cli.folder / "shanty.txt").read_text() == lines


def test_a_plan_is_laid_out_approved_and_carried_out(cli: Cli) -> None:
    plan = {"plan": "# The attic\n\n1. Clear **all** of it\n2. Sweep\n"}
    writes = {"name": "Write", "input": {"file_path": "swept.txt", "content": "yes"}}
    model = cli.script(
        {"tool_calls": [{"name": "plan_exit", "input": plan}]}, {"tool_calls": [writes]}, {"text": "All is swept."}
    )

    (cli.folder / "agents").mkdir()
    (cli.folder / "agents" / "sweeper.toml").write_text('tools = ["plan_exit", "Write"]\n[permission]\nmode = "plan"\n')
    command = ("chat", "--model", model, "--agent", "sweeper")

    with Terminal(cli, *command, environment={"LONGHAUL_TRUST": "1"}) as terminal:
        terminal.until(">")
        terminal.types("sweep the attic\n")
        terminal.until("[q] later:")
        asked = terminal.shown
        terminal.types("y")
        terminal.until("[a]llow by rule")
        terminal.types("y")
        terminal.until("All is swept.")
        terminal.types("/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "a plan, to be approved" in asked
    assert "Clear all of it" in asked
    assert "once approved: ends plan mode" in asked
    assert (cli.folder / "swept.txt").read_text() == "yes"
