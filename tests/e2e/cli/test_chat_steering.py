"""Steering from within `longhaul chat`, and what is said of sessions that stand still."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.server

COUNT = {"name": "Bash", "input": {"command": "echo counting; while [ ! -e go ]; do sleep 0.05; done"}}
"""Runs until the test lets it end."""
QUICK = {"name": "Bash", "input": {"command": "echo counted"}}
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}


def go(cli: Cli) -> None:
    (cli.folder / "go").touch()


def test_words_in_the_midst_of_a_reply_reach_the_agent_or_wait_or_are_taken_back(cli: Cli) -> None:
    model = cli.script(
        {"text": "I count.", "tool_calls": [COUNT]},
        {"text": "Counted, and I greet the moon.", "expect": {"last_contains": "Greet the moon too."}},
        {"text": "Good night.", "expect": {"last_contains": "sleep well"}},
    )

    with Terminal(cli, "chat", "--model", model, "--mode", "bypass", "--session", "midst") as terminal:
        terminal.until(">")
        terminal.types("count\n")
        terminal.until("| counting")
        terminal.types("sleep well\n")
        terminal.until("queued")
        terminal.types("never mind this\n")
        terminal.until("> never mind this")
        terminal.types("/now Greet the moon too.\n")
        terminal.until("the agent reads it at its next step")
        terminal.types("/queue\n")
        terminal.until("3 never mind this")
        terminal.types("/drop\n")
        terminal.until("dropped number 3")
        go(cli)
        terminal.until("Good night.")
        terminal.types("/queue\n")
        terminal.until("no message is queued")
        terminal.types("/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    places = [seen.shown.index(text) for text in ("I count.", "and I greet the moon.", "Good night.")]
    assert places == sorted(places), seen.shown
    assert seen.shown.count("Good night.") == seen.shown.count("I greet the moon.") == 1, seen.shown
    assert "(read at the next step)" in seen.shown
    said = [message["content"] for message in json.loads(cli("show", "midst", "--json").out)["transcript"]]
    assert "never mind" not in str(said)


def test_an_interrupt_with_words_is_answered_before_what_waits(cli: Cli) -> None:
    model = cli.script({"tool_calls": [COUNT]}, {"text": "Stopped, as you say."}, {"text": "Good night."})

    with Terminal(cli, "chat", "--model", model, "--mode", "bypass") as terminal:
        terminal.until(">")
        terminal.types("count\n")
        terminal.until("| counting")
        terminal.types("sleep well\n")
        terminal.until("queued")
        terminal.types("/interrupt Leave that.\n")
        terminal.until("Good night.")
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert seen.shown.index("Stopped, as you say.") < seen.shown.index("Good night.")
    assert seen.shown.count("Stopped, as you say.") == 1
    assert "\n  │ counting" in seen.shown, "what the call has said stays, though its result does not have it"


def test_a_chat_is_paused_taken_step_by_step_and_let_go_on(cli: Cli) -> None:
    model = cli.script({"text": "I look.", "tool_calls": [COUNT]}, {"tool_calls": [QUICK]}, {"text": "All counted."})

    with Terminal(cli, "chat", "--model", model, "--mode", "bypass", "--session", "still") as terminal:
        terminal.until(">")
        terminal.types("count\n")
        terminal.until("| counting")
        terminal.types("/pause a visitor\n")
        terminal.until(": a visitor")
        terminal.until("longhaul resume still")
        go(cli)
        terminal.until("✓ Bash echo counting")
        terminal.types("/step\n")
        terminal.until("one step, and then")
        terminal.types("/resume\n")
        terminal.until("All counted.")
        terminal.types("/resume\n")
        terminal.until("nothing to resume")
        terminal.types("/observe\n/nonsense\n")
        terminal.until("Ctrl-C empties")
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "it continues: resumed by" in seen.shown
    assert "/observe: say what" in seen.shown
    assert "there is no command /nonsense" in seen.shown


def test_a_paused_session_says_so_and_who_may_let_it_go_on(cli: Cli) -> None:
    model = cli.script({"text": "Good morning."}, {"text": "Good night."}, {"text": "Good noon."})
    assert cli("run", "Wake", "--model", model, "--session", "rest").code == 0
    assert cli("pause", "rest", "--why", "the harbour is closed").code == 0

    parked = cli("run", "Sleep", "--session", "rest")
    as_json = cli("run", "Dine", "--session", "rest", "--json")
    with Terminal(cli, "run", "Sleep", "--session", "rest", "--request-id", "again") as terminal:
        terminal.until("the harbour is closed")
        assert cli("resume", "rest").code == 0
        seen = terminal.end()

    assert parked.code == 3, parked
    assert "the harbour is closed" in parked.out
    assert "longhaul resume rest --agent longhaul" in parked.out
    assert (as_json.code, as_json.document["status"]) == (3, "paused")
    assert seen.code == 0, seen.shown
    assert "it continues" in seen.shown


def test_a_dumb_terminal_steers_too(cli: Cli) -> None:
    model = cli.script({"text": "Good morning."}, {"text": "Good night."})

    with Terminal(cli, "chat", "--model", model, "--session", "dumb", environment={"TERM": "dumb"}) as terminal:
        terminal.until(">")
        terminal.types("wake\n")
        terminal.until("Good morning.")
        terminal.types("/pause\n")
        terminal.until("paused: ")
        terminal.types("sleep\n")
        terminal.until("to continue:")
        terminal.types("/resume\n")
        terminal.until("Good night.")
        terminal.types("/help\n")
        terminal.until("/observe TEXT")
        terminal.types("/quit\n")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert seen.shown.count("Good night.") == 1


@pytest.mark.parametrize("columns", [24, 40])
def test_a_narrow_terminal_shows_everything(cli: Cli, columns: int) -> None:
    model = cli.script(
        {"text": "I will greet the moon.", "tool_calls": [{"name": "Edit", "input": EDIT}]}, {"text": "Done."}
    )

    with Terminal(cli, "chat", "--model", model, columns=columns) as terminal:
        terminal.until(">")
        terminal.types("greet the moon, and be quick about it\n")
        terminal.until("later:")
        terminal.types("y")
        terminal.until("Done.")
        terminal.types("\x04")
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert (cli.folder / "greeting.txt").read_text() == "hello moon\n"
    assert all(len(line) <= columns for line in seen.shown.splitlines())
    assert seen.shown.count("I will greet") == 1


@pytest.mark.proves("C4")
def test_sound_is_kept_named_and_played(cli: Cli) -> None:
    player = cli.folder / "player"
    player.write_text(f'#!/bin/sh\ncat "$1" >> "{cli.folder}/played"\n')
    player.chmod(0o755)
    (cli.folder / "singer.toml").write_text('name = "singer"\ntools = ["sing"]\n')
    model = cli.script({"tool_calls": [{"name": "sing", "input": {"song": "lullaby"}}]}, {"text": "Sung."})
    command = ["run", "Sing", "--model", model, "--agent", "singer.toml", "--play"]

    with Terminal(cli, *command, columns=160, environment={"LONGHAUL_PLAYER": str(player)}) as terminal:
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    (line,) = [line for line in seen.shown.splitlines() if "♪" in line]
    assert "lullaby.wav (audio/wav) is in " in line
    assert Path(line.partition(" is in ")[2].strip()).read_bytes() == b"RIFF lullaby"
    assert (cli.folder / "played").read_bytes() == b"RIFF lullaby"
