"""How long a decision on a command takes: 1,000 mixed command lines of the corpora, looked at and judged.

`python -m benchmarks.permission_speed` prints a table. Nothing is run, and no server is needed.
"""

import argparse
import asyncio
import json
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.pages import with_section
from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from tests.activities.corpora.stage import Stage, build, corpus

DECISIONS = 1_000
TARGET_MS = 2.0
MIXED = "mixed"
HEADER = ("lines", "rules", "p50 ms", "p95 ms", "processor p50 ms", "processor p95 ms")
RULES = tuple(
    PermissionRule(tool_name=tool, rule_content=content, behavior=behavior)
    for number in range(10)
    for tool, content, behavior in (
        ("Bash", f"make target-{number}:*", Behavior.ALLOW),
        ("Bash", f"git push remote-{number}:*", Behavior.DENY),
        ("Read", f"/srv/private-{number}/**", Behavior.DENY),
    )
)


class Took(NamedTuple):
    """Milliseconds a decision, each sorted."""

    kind: str
    rules: int
    clock: list[float]
    processor: list[float]


def lines(stage: Stage) -> dict[str, list[str]]:
    """By kind; each cut or repeated to as many as are decided on."""
    plain = [stage.text(line.text) for line in corpus("benign.txt")]
    kinds = {
        "plain": plain,
        "in a chain": [f"{line} && npm run build" for line in plain],
        "hostile": [stage.text(line.text) for line in corpus("hostile.txt")],
    }
    columns = (islice(cycle(each), DECISIONS) for each in kinds.values())
    mixed = [line for row in zip(*columns, strict=True) for line in row]
    return {name: list(islice(cycle(each), DECISIONS)) for name, each in {**kinds, MIXED: mixed}.items()}


async def timed(rehearsal: Rehearsal, texts: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds a decision, of the clock and of the processor, each sorted."""
    clock: list[float] = []
    processor: list[float] = []
    for text in texts:
        raw = json.dumps({"command": text})
        began, worked = time.perf_counter(), time.process_time()
        await rehearsal.decide("Bash", raw)
        clock.append((time.perf_counter() - began) * 1e3)
        processor.append((time.process_time() - worked) * 1e3)
    return sorted(clock), sorted(processor)


async def run() -> list[Took]:
    with tempfile.TemporaryDirectory() as folder:
        stage = build(Path(folder))
        found = []
        for rules in ((), RULES):
            rehearsal = Rehearsal(Toolbox(default_tools()), PermissionContext(rules=rules), stage.root)
            for kind, texts in lines(stage).items():
                found.append(Took(kind, len(rules), *await timed(rehearsal, texts)))
        return found


def rows(found: list[Took]) -> list[tuple[str, ...]]:
    return [(took.kind, str(took.rules), *_percentiles(took.clock), *_percentiles(took.processor)) for took in found]


def _percentiles(took: list[float]) -> tuple[str, str]:
    return f"{took[len(took) * 50 // 100]:.2f}", f"{took[len(took) * 95 // 100]:.2f}"


def section(found: list[Took]) -> str:
    """The page's text about it."""
    lines = [
        "## A decision on a command",
        "",
        f"`python -m benchmarks.permission_speed`: {DECISIONS:,} lines of each kind, looked at (grammar, links,",
        "secrets in the way) and judged, one after the other; nothing is run. *Mixed* takes them in turns. With rules:",
        "ten each that allow a command, deny one, and deny a folder.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(row)} |" for row in rows(found)),
        "",
        f"Target: a p95 of at most {TARGET_MS:g} ms over the mixed lines.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.permission_speed", description=__doc__)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md under this folder")
    given = parser.parse_args()
    found = asyncio.run(run())
    shown = Table(*HEADER)
    for row in rows(found):
        shown.add_row(*row)
    Console(width=120).print(shown, f"Target: a p95 of at most {TARGET_MS:g} ms over the mixed lines.")
    if given.docs:
        page = given.docs / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "permission", section(found)))


if __name__ == "__main__":
    main()
