"""`longhaul chat` and `show`: all that was said can be read, nothing that was typed is lost, one comes back."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.cards import CLOSED
from longhaul.starter.client.client import Longhaul
from longhaul.stores.offload.session_blobs import digits_in
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal
from tests.workflows.operations import until

pytestmark = pytest.mark.server

NEWLINE, ALT_ENTER, WHOLE, SEARCH, LEAVE = "\n", "\x1b\r", "\x0f", "\x12", "\x04"
"""Ctrl-J, Alt+Enter, Ctrl-O, Ctrl-R, Ctrl-D."""
BYPASS = PermissionContext(mode=PermissionMode.BYPASS)
FAILS = {"id": "red-7", "name": "Bash", "input": {"command": "echo begins; echo anchor; seq 100 140; exit 3"}}
EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
WANTS_TO_EDIT = {"text": "I will greet the moon.", "tool_calls": [{"id": "edit-9", "name": "Edit", "input": EDIT}]}
QUESTION = "[q] later:"
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one point."""


def of_name(cli: Cli, name: str) -> list[tuple[str, str]]:
    """User and agent of each open session that is called so."""
    cards = cli("sessions", "--json").document
    return [(card["user_id"], card["agent"]) for card in cards if card["session_id"] == name]


def blob_named(digits: str, cli: Cli) -> Path:
    (blob,) = Path(cli.environment["LONGHAUL_DATA_DIR"]).glob(f"blobs/**/{digits}")
    return blob


def test_lines_are_typed_searched_and_sent_and_what_failed_can_be_read(cli: Cli) -> None:
    also = {"name": "Bash", "input": {"command": "echo the second"}}
    model = cli.script({"tool_calls": [FAILS, also]}, {"text": "It is red."}, {"text": "Red again."})

    with Terminal(cli, "chat", "--model", model, "--mode", "bypass", "--session", "red") as terminal:
        terminal.steps(("", ">"), (f"run it{NEWLINE}and tell me{ALT_ENTER}why\r", "It is red."))
        failed = terminal.shown
        terminal.steps(
            ("/output red-7\r", "│ anchor"),
            ("/output 2\r", "> /output 2"),
            (SEARCH, "i-search"),
            ("tell\r", "> run it\n"),
            ("\r", "Red again."),
            ("/output 3\r", "no such call"),
        )
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert ("│ 140" in failed, ": /output red-7\n" in failed, "│ anchor" in failed) == (True, True, False), failed
    assert seen.shown.count("│ anchor") == 2, "once by its name, and once as the last but one"
    assert "longhaul chat --session red --agent longhaul" in seen.shown
    said = cli("show", "red", "--json").document["transcript"]
    asked = [message["content"][0]["text"] for message in said if message["role"] == "user"]
    assert asked == ["run it\nand tell me\nwhy"] * 2


async def test_what_a_call_has_answered_is_shown_by_its_name(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(model=cli.script({"tool_calls": [FAILS]}, {"text": "Red."}), permission=BYPASS)
    await app.session("reds", agent=spec).reply("Run it")

    told, one = cli("show", "reds").out, cli("show", "reds", "red-7").out
    read = cli("show", "reds", "--calls").out
    every, unknown = cli("show", "reds", "--calls", "--json").document, cli("show", "reds", "red-8")

    assert "more lines: longhaul show reds --calls --agent longhaul" in told
    assert ("│ 140" in told, "│ anchor" in told) == (True, False)
    assert ("│ 140" in one, "│ anchor" in one) == (True, True)
    assert ("Bash" in read, "│ 140" in read, "│ anchor" in read) == (True, True, True), read
    assert [(call["call_id"], call["state"]) for call in every] == [("red-7", "error")]
    assert (unknown.code, "did you mean 'red-7'?" in unknown.err) == (2, True), unknown


SHORTENED = "[This output was shortened"


async def test_the_whole_of_a_shortened_output_is_shown_where_it_lies_among_the_blobs(cli: Cli, app: Longhaul) -> None:
    counts = {"name": "Bash", "input": {"command": "seq 10000 15000"}, "id": "count-1"}
    spec = AgentSpec(
        model=cli.script({"tool_calls": [counts]}, {"text": "Counted."}), permission=BYPASS, offloader="blobs"
    )
    session = app.session("counts", agent=spec)
    (result,) = (await session.reply("Count")).get_tool_results()

    shown, every = cli("show", "counts", "count-1"), cli("show", "counts", "--calls")
    blob_named(digits_in(result.get_text()), cli).unlink()
    away = cli("show", "counts", "count-1")

    assert "recall output=" in result.get_text()
    assert ("│ 10001" in shown.out, "│ 11500" in shown.out, SHORTENED in shown.out) == (True, True, False)
    assert ("│ 11500" in every.out, SHORTENED in every.out) == (False, True)
    assert (away.code, SHORTENED in away.out) == (0, True)
    assert "the whole output can't be read: this session keeps no output" in away.out + away.err


async def test_a_question_that_another_answers_goes_away_by_itself(cli: Cli, app: Longhaul) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})

    with Terminal(cli, "chat", "--model", model, "--session", "handed-over") as terminal:
        terminal.steps(("", ">"), ("greet\r", QUESTION))
        (card,) = await app.sessions(session_id="handed-over")
        session = app.attach(card)
        (call,) = await session.pending()
        await session.confirm(call, allow=True, approver="eve")
        terminal.steps(("", "Done."), ("/tasks\r", "no tasks"))
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    assert "eve allowed Edit" in seen.shown
    assert (cli.folder / "greeting.txt").read_text() == "hello moon\n"


def test_one_comes_back_by_name_alone_to_the_newest_and_to_one_of_a_list(cli: Cli) -> None:
    model = cli.script({"text": "Ahoy."}, {"text": "Aye."})
    (cli.folder / "sailor.toml").write_text(f'name = "sailor"\nmodel = "{model}"\n')
    started = cli("run", "Set the sails", "--agent", "sailor.toml", "--user", "shipmate", "--session", "ship")
    assert started.code == 0, started

    with Terminal(cli, "chat", "--session", "ship", columns=60) as terminal:
        terminal.steps(("", "Ahoy."), ("", "> Set the sails"), ("turn\r", "Aye."))
        terminal.presses(LEAVE)
        named = terminal.end()
    with Terminal(cli, "chat", "--continue", "--user", "shipmate") as terminal:
        terminal.until("> turn")
        terminal.presses(LEAVE)
        newest = terminal.end()
    with Terminal(cli, "chat", "--pick", "--user", "shipmate", environment={"TERM": "dumb"}) as terminal:
        terminal.steps(("", "1 Set the sails"), ("", "a number:"), ("9\r", "from 1 to 1"))
        terminal.steps(("", "a number:"), ("1\r", "> turn"))
        terminal.steps(("/output\r", "no call has answered yet"))
        terminal.presses("/quit\r")
        picked = terminal.end()

    assert (named.code, newest.code, picked.code) == (0, 0, 0), (named.shown, newest.shown, picked.shown)
    assert of_name(cli, "ship") == [("shipmate", "sailor")]
    both = cli("chat", "--continue", "--session", "ship")
    assert (both.code, "leave out --continue" in both.err) == (2, True)


async def test_a_closed_session_is_found_by_its_name_with_its_agent_and_model(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(name="diver", model=cli.script({"text": "Down."}, {"text": "Up again."}))
    session = app.session("dive", user="bo", agent=spec)
    await session.reply("Dive")
    await app.client.get_workflow_handle(session.workflow_id).terminate("the test closes it")

    again = cli("run", "Come up", "--session", "dive", "--json")

    assert again.document["text"] == "Up again.", again
    assert of_name(cli, "dive") == [("bo", "diver")]


async def test_a_list_in_38_columns_breaks_at_spaces_and_has_closed_sessions(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(name="keeper", model=cli.script({"text": "Lit."}, {"text": "Lit again."}))
    session = app.session("lantern", user="narrow", agent=spec)
    await session.reply("Please relight the northernmost lighthouse lantern")
    await app.client.get_workflow_handle(session.workflow_id).terminate("the test closes it")

    async def closed() -> bool:
        return [card.status for card in await app.sessions(user="narrow", closed=True)] == [CLOSED]

    await until(closed)
    with Terminal(cli, "chat", "--pick", "--user", "narrow", columns=38) as terminal:
        listed = terminal.until("a number:")
        terminal.steps(("1\r", "> Please relight"), ("again\r", "Lit again."))
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    title, about = listed[listed.index("  1 ") : listed.index("which one?")].split("    lantern, keeper,")
    assert title == "  1 Please relight the northernmost\n    lighthouse lantern\n"
    assert "closed" in about.split(",")[0], listed


def test_a_chat_changes_its_session_clears_it_and_takes_back(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."}, {"text": "A red dot."}, {"text": "Fresh."})
    (cli.folder / "dot.png").write_bytes(base64.b64decode(DOT))

    with Terminal(cli, "chat", "--model", model, "--session", "first") as terminal:
        terminal.steps(
            ("", ">"),
            ("/mod\t acc\t\r", "from now on: mode accept_edits"),
            ("greet\r", "Done."),
            ("/diff\r", "1 change by Edit and Write"),
            ("what is @dot.p\t ?\r", "A red dot."),
            ("/cost\r", "3 model calls"),
            ("/mode bypas\r", "did you mean 'bypass'?"),
            ("/undo\r", "longhaul chat --session first"),
            # What is typed while one prompt has ended and the next one has not started is no line yet.
            ("/model", "> /model"),
            ("\r", "model scripted:"),
            ("/clear\r", f"longhaul chat --session {datetime.now(UTC).astimezone():%m}"),
            ("begin", "> begin"),
            ("\r", QUESTION),
            ("y", "✗ Edit"),
        )
        terminal.presses(LEAVE)
        seen = terminal.end()

    assert seen.code == 0, seen.shown
    said = json.dumps(cli("show", "first", "--json").document["transcript"])
    assert '"media_type": "image/png"' in said
    assert seen.shown.count("longhaul chat --session") == 3


def test_a_bare_approve_shows_what_waits_and_asks(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "Done."})
    assert cli("run", "Greet", "--model", model, "--session", "bare").code == 3

    with Terminal(cli, "approve", "bare", columns=38) as terminal:
        terminal.steps(("", QUESTION), ("", "+hello moon"))
        decided = cli("show", "bare", "--json").document["status"]["decisions"]
        terminal.presses("q")
        left = terminal.end()
    with Terminal(cli, "approve", "bare", "--as", "eve", environment={"TERM": "dumb"}) as terminal:
        terminal.until(QUESTION)
        terminal.presses("y\r")
        given = terminal.end()

    assert decided == []
    assert (left.code, "nothing was decided" in left.shown) == (3, True), left.shown
    assert (given.code, "approved Edit edit-9" in given.shown) == (0, True), given.shown
    assert cli("approve", "bare").code == 2
