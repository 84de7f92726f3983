"""`python -m benchmarks.sandbox_start`: what the sandbox adds to the start and end of a command, the ways in turns.

*bubblewrap alone* shows the whole machine: what namespaces take by themselves.
"""

import argparse
import asyncio
import os
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.pages import p95, table, with_section
from longhaul.activities.process.program_output import ClippedBytes
from longhaul.activities.process.program_run import run_supervised
from longhaul.activities.process.sandbox import Sandboxed, SandboxPolicy, sandboxed
from longhaul.activities.process.sandbox_view import HOLDING

SHELL = ("/bin/bash", "--noprofile", "--norc", "-c", "true")
BARE = ("/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *HOLDING, "--", *SHELL)
NONE = "none"
WAYS: dict[str, Callable[[Path], Sandboxed]] = {
    NONE: lambda root: sandboxed(SandboxPolicy("proven"), SHELL, root, root),
    "bubblewrap alone": lambda root: Sandboxed(BARE, SandboxPolicy().limits.words(), root=root),
    "reading": lambda root: sandboxed(SandboxPolicy("proven"), SHELL, root, root, "read"),
    "editing": lambda root: sandboxed(SandboxPolicy("proven"), SHELL, root, root, "edit"),
}
HEADER = ("sandbox", "mounts", "p50 ms", "p95 ms", "more than none", "CPU p50 ms", "CPU p95 ms", "more than none")


@dataclass
class Took:
    """Milliseconds of each call, of the clock and of the processor."""

    mounts: int = 0
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


async def call(way: str, root: Path, took: Took) -> None:
    began, worked = time.perf_counter(), _processor()
    made = WAYS[way](root)
    ending = await run_supervised(made.command, root, dict(os.environ), 60, ClippedBytes(), made.limits)
    took.clock.append((time.perf_counter() - began) * 1e3)
    took.processor.append((_processor() - worked) * 1e3)
    took.mounts = sum("bind" in word or word in ("--proc", "--tmpfs", "--dev") for word in made.command)
    if (ending.how, ending.status) != ("exited", 0):
        raise SystemExit(f"{way}: {ending}")


def _processor() -> float:
    """Seconds of the worker and of all that it started."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


async def run(root: Path, runs: int) -> dict[str, Took]:
    """By way. A first call of each is not counted."""
    found = {way: Took() for way in WAYS}
    for way in WAYS:
        await call(way, root, Took())
    for _ in range(runs):
        for way, took in found.items():
            await call(way, root, took)
    return found


def section(found: dict[str, Took]) -> str:
    """The page's text about it."""
    none, rows = found[NONE], []
    for way, took in found.items():
        row = [way, str(took.mounts)]
        for values, others in ((took.clock, none.clock), (took.processor, none.processor)):
            more, ratio = median(values) - median(others), median(values) / median(others)
            row += [f"{median(values):.1f}", f"{p95(values):.1f}", f"{more:+.1f} ({ratio:.2f})"]
        rows.append(row)
    machine = (
        f"{os.cpu_count()} cores, Linux {platform.release()} {platform.machine()}, a load of {os.getloadavg()[0]:.0f}"
    )
    lines = "\n".join(table(HEADER, rows))
    return f"""## What the sandbox costs

`python -m benchmarks.sandbox_start`, {datetime.now(UTC):%Y-%m-%d}, {machine}: `true` in bash, {len(none.clock)}
runs of each way, in turns, with this repository as workspace. CPU is that of all processes, the worker's among them.

{lines}

What it took before, and why: [a decision](decisions/shell.md#2026-11-23--how-soon-does-a-command-begin)."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox_start", description=__doc__)
    parser.add_argument("--runs", type=int, default=300, help="of each way")
    parser.add_argument("--docs", type=Path, help="write making/attacks.md under this folder")
    given = parser.parse_args()
    text = section(asyncio.run(run(Path.cwd(), given.runs)))
    print(text)
    if given.docs:
        page = given.docs / "making" / "attacks.md"
        page.write_text(with_section(page.read_text(), "sandbox_start", text))


if __name__ == "__main__":
    main()
