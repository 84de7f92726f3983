"""`python -m benchmarks.peers`: our session, the floor and our peers in one run on one server."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from temporalio.client import Client

from benchmarks.contenders import Load
from benchmarks.peers.report import CROWD_HEADER, STEP_HEADER, as_rich, crowd_rows, findings, step_rows
from benchmarks.peers.sides import PROGRAMS, sides
from benchmarks.peers.trial import COMPLETED, Size, Trial, attempt
from benchmarks.peers.venvs import python_of
from benchmarks.peers.writing import ROOT, Setting, write
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.workflows.contract import DATA_CONVERTER, SEARCH_ATTRIBUTES

FULL = [*(Size(Load(steps, 5_000)) for steps in (10, 100, 200, 1_000)), Size(Load(20, 1_000), sessions=20)]
QUICK = [Size(Load(10, 5_000)), Size(Load(80, 20_000)), Size(Load(5, 1_000), sessions=5)]
"""Larger bodies, so that the peers meet the server's limit early."""

PEERS = frozenset(name for program in PROGRAMS.values() for name in program)
LONG = 1_000
"""Steps of a load that a side need not lose twice: each time takes minutes."""
OFTEN = 100
"""Steps up to which a peer is measured as often as we are."""
MOST_SECONDS = 120.0


async def run(sizes: Sequence[Size], repeats: int, temporal: Path) -> list[Trial]:
    """All trials: for each size the sides take turns, so that a noisy minute hits everybody."""
    pythons = {program: python_of(program, _say) for program in PROGRAMS}
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name:
        folder = Path(name)
        settings = DevServerSettings(
            temporal=temporal, directory=folder / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(settings) as server:
            client = await Client.connect(server.address, data_converter=DATA_CONVERTER)
            async with sides(server.address, folder, pythons) as taking_part:
                for side in taking_part:
                    await side.session(Load(3, 500))
                trials: list[Trial] = []
                for size in (size for size in sizes for _ in range(repeats)):
                    for side in taking_part:
                        if not gave_up(side.name, size, trials):
                            trials.append(await attempt(client, side, size, server.pid or 0))
                            _say(json.dumps(trials[-1].as_json()))
                            if trials[-1].ended != COMPLETED:
                                await side.recover()
                return trials


def gave_up(contender: str, size: Size, trials: Sequence[Trial]) -> bool:
    """Whether it has lost a shorter session of such steps already, or this one where that takes minutes. A peer is
    asked for more than 100 steps once, and not where that would take minutes by its pace so far."""
    before = [
        trial
        for trial in trials
        if (trial.contender, trial.chars, trial.sessions) == (contender, size.load.chars, size.sessions)
    ]
    lost = [trial.steps for trial in before if trial.ended != COMPLETED]
    if any(steps < size.load.steps or steps >= LONG for steps in lost):
        return True
    if contender not in PEERS or size.load.steps <= OFTEN:
        return False
    seconds = max((trial.wall for trial in before), default=0.0) / 1000 * size.load.steps
    return seconds > MOST_SECONDS or any(trial.steps == size.load.steps for trial in before)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each load (5)")
    parser.add_argument("--quick", action="store_true", help="small loads, one run: to see that it works")
    parser.add_argument("--docs", type=Path, help="where to write (docs/; with --quick a temporary folder)")
    given = parser.parse_args()
    docs = given.docs or (Path(tempfile.mkdtemp(prefix="longhaul-peers-")) if given.quick else ROOT / "docs")
    repeats = 1 if given.quick else given.repeats
    temporal, plotting = find_temporal(_say), python_of("plot", _say)
    trials = asyncio.run(run(QUICK if given.quick else FULL, repeats, temporal))
    command = " ".join(["python -m benchmarks.peers", *sys.argv[1:]]) if sys.argv[1:] else "make bench-peers"
    write(trials, Setting(command, temporal, repeats), docs, plotting)
    _print(trials)
    print(f"written to {docs}")


def _print(trials: Sequence[Trial]) -> None:
    console = Console(width=150)
    console.print(as_rich("one session", STEP_HEADER, step_rows(trials)))
    console.print(as_rich("sessions at once", CROWD_HEADER, crowd_rows(trials)))
    for finding in findings(trials):
        console.print(f"- {finding}", highlight=False)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # The SDK's threads abort a normal exit now and then.
