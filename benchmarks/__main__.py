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
from starter.provision.dev_server import DevServer, DevServerSettings
from starter.provision.temporal_cli import find_temporal
from workflows.contract import DATA_CONVERTER, SEARCH_ATTRIBUTES


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
            async with contenders(client, server.address, folder) as sides:
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


def table(samples: list[Sample]) -> Table:
    """Medians with their spread, and ours as a ratio to the floor."""
    shown = Table("contender", "steps", "chars", "wall ms", "worker ms", "server ms", "events", "bytes in all")
    shown.title = "per step"
    for load in dict.fromkeys((sample.steps, sample.chars) for sample in samples):
        of_load = [sample for sample in samples if (sample.steps, sample.chars) == load]
        of_contender = {}
        for name in dict.fromkeys(sample.contender for sample in of_load):
            mine = [sample for sample in of_load if sample.contender == name]
            of_contender[name] = mine
            shown.add_row(
                name,
                str(load[0]),
                str(load[1]),
                *[_spread(mine, pick) for pick in (_wall, _worker, _server, _events)],
                f"{statistics.median(sample.history_bytes for sample in mine):,.0f}",
            )
        ratios = [
            f"{_median(of_contender['longhaul'], pick) / max(_median(of_contender['floor'], pick), 0.001):.2f} x"
            for pick in (_wall, _worker, _server, _events, _bytes)
        ]
        shown.add_row("ratio", str(load[0]), str(load[1]), *ratios, end_section=True)
    return shown


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
    parser.add_argument("--json", type=Path, help="write the raw samples here")
    given = parser.parse_args()
    samples = asyncio.run(run([Load(steps, given.chars) for steps in given.steps], given.repeats))
    Console(width=130).print(table(samples))
    if given.json:
        given.json.write_text(json.dumps([sample.as_json() for sample in samples], indent=1) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # The SDK's threads abort a normal exit now and then.
