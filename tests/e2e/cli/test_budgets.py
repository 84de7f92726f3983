"""What a session may spend, at the command line: set at its start, seen while it waits, and raised."""

import pytest

from tests.e2e.conftest import Cli

pytestmark = pytest.mark.server

USAGE = {"input_tokens": 15_000, "output_tokens": 4_000}
READS = {"tool_calls": [{"name": "Read", "input": {"file_path": "greeting.txt"}}], "usage": USAGE}


def test_a_run_out_of_budget_parks_is_listed_and_goes_on_with_more(cli: Cli) -> None:
    model = cli.script(READS, {"text": "It says hello.", "usage": USAGE})

    parked = cli("run", "Read it", "--model", model, "--session", "thrifty-miller", "--max-tokens", "21000")

    assert parked.code == 3, parked.err
    assert "waits for more budget" in parked.out
    assert "longhaul budget thrifty-miller --raise-tokens N" in parked.out
    (row,) = [row for row in cli("inbox", "--json").document if row["session"] == "thrifty-miller"]
    assert (row["waits_for"], row["call_id"]) == ("budget", "budget")
    assert "19,000 tokens of 21,000 tokens, and the next call may take" in row["reason"]

    raised = cli("budget", "thrifty-miller", "--raise-tokens", "30000", "--json")

    assert raised.code == 0, raised.err
    assert raised.document["budget"]["limits"] == {"tokens": 51_000}


def test_a_budget_that_can_t_be_is_said_in_a_sentence(cli: Cli) -> None:
    model = cli.script({"text": "Done."})

    refused = cli("run", "Go", "--model", model, "--max-cost", "0")
    assert (refused.code, "max_cost: Input should be greater than 0 (it is 0.0)" in refused.err) == (2, True), refused
    assert cli("run", "Go", "--model", model, "--session", "lavish-miller").code == 0
    late = cli("run", "Go", "--session", "lavish-miller", "--max-cost", "2")
    assert (late.code, "--max-cost: session 'lavish-miller' has begun" in late.err) == (2, True), late
    shown = cli("budget", "lavish-miller")
    assert (shown.code, "session 'lavish-miller' has no budget" in shown.err) == (2, True), shown
