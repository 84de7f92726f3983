"""`longhaul watch` of several sessions at a terminal: who waits, who decides and how to answer."""

from itertools import pairwise

import pytest

from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.server

EDIT = {"file_path": "greeting.txt", "old_string": "world", "new_string": "moon"}
WANTS_TO_EDIT = {"text": "I will greet.", "tool_calls": [{"id": "edit-9", "name": "Edit", "input": EDIT}]}


@pytest.mark.proves("C6")
def test_several_sessions_are_watched_until_one_leaves(cli: Cli) -> None:
    model = cli.script(WANTS_TO_EDIT, {"text": "The harbour is full."})
    for name in ("north", "south"):
        assert cli("run", "Greet", "--model", model, "--session", name).code == 3

    with Terminal(cli, "watch", "north", "south") as terminal:
        terminal.until("longhaul deny north edit-9")
        terminal.until("longhaul deny south edit-9")
        assert cli("pause", "south", "--why", "the tide").code == 0
        terminal.until("the tide")
        assert cli("resume", "south").code == 0
        assert cli("deny", "north", "--reason", "not today").code == 0
        terminal.until("The harbour is full.")
        terminal.types("\x03")
        seen = terminal.end()

    assert seen.code == 130, seen.shown
    lines = [line.strip() for line in seen.shown.splitlines()]
    assert lines.count("I will greet.") == lines.count("waits for a person: Edit greeting.txt") == 2, seen.shown
    assert any("denied Edit: not today" in line for line in lines)
    heads = [line.partition(",")[0] for line in lines if ", reply " in line]
    assert set(heads) == {"north", "south"}
    assert all(one != other for one, other in pairwise(heads)), "said when it changes"
