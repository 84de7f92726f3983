"""What a session may spend, at the command line: set at its start, seen while it waits, and raised."""

import asyncio
from pathlib import Path

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.e2e.terminal import Terminal
from tests.e2e.warm_cli import WarmCli

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


async def test_a_run_at_its_most_dollars_is_held_up_and_says_so(
    temporal_server: DevServer, warm_cli: WarmCli, tmp_path: Path
) -> None:
    (tmp_path / "greeting.txt").write_text("hello")
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"priced-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"LONGHAUL_PRICES": str(tmp_path / "prices.toml")},
    )  # fmt: skip
    cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path, warm_cli)
    model = cli.script(READS, {"text": "It says hello.", "usage": USAGE})
    (tmp_path / "prices.toml").write_text(f'["{model.removeprefix("scripted:")}"]\ninput = 10\noutput = 50\n')

    async with worker(given):
        with Terminal(
            cli, "run", "Read it", "--model", model, "--session", "dear-miller", "--max-cost", "0.7"
        ) as shown:
            seen = await asyncio.to_thread(shown.end)
        first = await asyncio.to_thread(cli, "run", "Read", "--model", model, "--max-cost", "0.00002")

    assert first.code == 3, first
    assert "$0.0000 of $0.00002, and the next call may take $" in first.out + first.err
    assert seen.code == 3, seen.shown
    assert "✓ Read greeting.txt" in seen.shown
    assert "out of budget: $0.3500 of $0.7000, and the next call may take $" in seen.shown
    assert "longhaul budget dear-miller --raise-cost" in seen.shown


def test_a_budget_that_can_t_be_is_said_in_a_sentence(cli: Cli) -> None:
    model = cli.script({"text": "Done."})

    refused = cli("run", "Go", "--model", model, "--max-cost", "0")
    assert (refused.code, "max_cost: Input should be greater than 0 (it is 0.0)" in refused.err) == (2, True), refused
    assert cli("run", "Go", "--model", model, "--session", "lavish-miller").code == 0
    late = cli("run", "Go", "--session", "lavish-miller", "--max-cost", "2")
    assert (late.code, "--max-cost: session 'lavish-miller' has started" in late.err) == (2, True), late
    hasty = cli("run", "Go", "--session", "lavish-miller", "--priority", "1")
    assert (hasty.code, "--priority: session 'lavish-miller' has started, and keeps its priority" in hasty.err) == (
        2,
        True,
    ), hasty
    shown = cli("budget", "lavish-miller")
    assert (shown.code, "session 'lavish-miller' has no budget" in shown.err) == (2, True), shown
