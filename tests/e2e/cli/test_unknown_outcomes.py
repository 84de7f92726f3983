"""`longhaul resolve`, and how calls of unknown outcome are shown."""

import pytest

from tests.e2e.conftest import Cli

pytestmark = pytest.mark.server

AGENT = """
name = "smith"
tools = ["engrave"]
on_unknown_outcome = "ask"

[permission]
mode = "bypass"
"""
ENGRAVES = {"id": "ring-1", "name": "engrave", "input": {"text": "Ana"}}


@pytest.mark.proves("X2")
def test_a_call_of_unknown_outcome_is_shown_listed_and_settled(cli: Cli) -> None:
    (cli.folder / "smith.toml").write_text(AGENT)
    model = cli.script({"tool_calls": [ENGRAVES]}, {"text": "I see."})

    parked = cli("run", "Engrave it", "--agent", "smith.toml", "--model", model, "--session", "ring")
    shown = cli("show", "ring", "--agent", "smith")
    listed = cli("inbox", "--json")
    long = cli("sessions", "--long")
    settled = cli("resolve", "ring", "ring-1", "--did-not", "--as", "bo", "--reason", "the ring is blank", "--json")
    again = cli("resolve", "ring", "ring-1", "--happened")
    after = cli("show", "ring", "--agent", "smith")

    assert parked.code == 3, parked
    assert "longhaul resolve ring ring-1 --did-not" in shown.out
    assert "? engrave" in shown.out
    assert ("ring-1", "resolution") in [(row.get("call_id"), row.get("waits_for")) for row in listed.document]
    assert "1 call has an unknown outcome: nobody knows whether it ran" in long.out
    assert settled.document == {"session": "ring", "resolved": "ring-1", "happened": False}
    assert (again.code, again.err) == (
        2,
        "longhaul: call 'ring-1' is resolved: it did not happen, on the word of bo\n",
    )
    assert "On the word of bo: the ring is blank" in after.out


def test_settling_needs_a_word(cli: Cli) -> None:
    assert cli("resolve", "ring", "ring-1").code == 2
