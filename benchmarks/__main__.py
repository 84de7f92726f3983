"""`python -m benchmarks`: our session beside the floor, in one run on one server; ratios, and the raw samples."""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from benchmarks.contenders import Load, contenders
from benchmarks.measure import Sample, measure
from benchmarks.pages import with_section
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.workflows.contract import DATA_CONVERTER, SEARCH_ATTRIBUTES


async def run(loads: list[Load], repeats: int) -> list[Sample]:
    """All samples: for each load the contenders take turns, so that a noisy minute hits both."""
    temporal = find_temporal(_say)
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name:
        folder = Path(name)
        settings = DevServerSettings(
            temporal=temporal, directory=folder / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(settings) as server:
            client = await Client.connect(server.address, data_converter=DATA_CONVERTER)
            async with contenders(server.address, folder) as sides:
                for side in sides:
                    await side.session(Load(3, 500))
                samples = []
                for load in loads:
                    for _ in range(repeats):
                        for side in sides:
                            sample = await measure(client, side, load, server.pid or 0)
                            print(json.dumps(sample.as_json()), file=sys.stderr, flush=True)
                            samples.append(sample)
                return samples


def _say(line: str) -> None:
    print(line, file=sys.stderr)


HEADER = ("contender", "steps", "chars", "wall ms", "worker ms", "server ms", "events", "bytes in all")


def rows(samples: list[Sample]) -> list[tuple[str, ...]]:
    """Per step: medians with their spread, and below each pair ours as a ratio to the floor."""
    found = []
    for load in dict.fromkeys((sample.steps, sample.chars) for sample in samples):
        of_load = [sample for sample in samples if (sample.steps, sample.chars) == load]
        size = (f"{load[0]:,}", f"{load[1]:,}")
        sides = {name: [sample for sample in of_load if sample.contender == name] for name in ("floor", "longhaul")}
        for name, mine in sides.items():
            spreads = [_spread(mine, pick) for pick in (_wall, _worker, _server, _events)]
            found.append((name, *size, *spreads, f"{_median(mine, _bytes):,.0f}"))
        ratios = [
            f"{_median(sides['longhaul'], pick) / max(_median(sides['floor'], pick), 0.001):.2f} x"
            for pick in (_wall, _worker, _server, _events, _bytes)
        ]
        found.append(("ratio", *size, *ratios))
    return found


def section(samples: list[Sample], repeats: int) -> str:
    """The page's text about it."""
    lines = [
        "## Beside a bare workflow",
        "",
        f"`python -m benchmarks`, {repeats} runs of each, the two in turns; per step, median and (min-max).",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(row)} |" for row in rows(samples)),
    ]
    return "\n".join(lines)


def _wall(sample: Sample) -> float:
    return sample.wall


def _worker(sample: Sample) -> float:
    return sample.worker_cpu


def _server(sample: Sample) -> float:
    return sample.server_cpu


def _events(sample: Sample) -> float:
    return sample.events


def _bytes(sample: Sample) -> float:
    return sample.history_bytes


def _median(samples: list[Sample], pick: Callable[[Sample], float]) -> float:
    return statistics.median(pick(sample) for sample in samples)


def _spread(samples: list[Sample], pick: Callable[[Sample], float]) -> str:
    values = [pick(sample) for sample in samples]
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--chars", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw samples under this folder")
    given = parser.parse_args()
    samples = asyncio.run(run([Load(steps, given.chars) for steps in given.steps], given.repeats))
    shown = Table(*HEADER, title="per step")
    for row in rows(samples):
        shown.add_row(*row, end_section=row[0] == "ratio")
    Console(width=130).print(shown)
    if given.docs:
        page = given.docs / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "floor", section(samples, given.repeats)))
        raw = ",\n".join(json.dumps(sample.as_json()) for sample in samples)
        (given.docs / "benchmarks" / "floor.json").write_text(f"[\n{raw}\n]\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # The SDK's threads abort a normal exit now and then.
