"""`python -m benchmarks.soak`: one session of 10,000 steps; as quick at the end as at the beginning?"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import cpu_ms, history, memory_bytes
from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import with_section
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig, ReActConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session

WINDOW_TOKENS = 32_000
"""Small, so that there is a compression every few hundred steps."""
CHARS = 200
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Mark:
    """How things stood when that many steps were done. Times and CPU since the begin, in milliseconds."""

    steps: int
    wall: float
    worker_cpu: float
    server_cpu: float
    worker_bytes: int
    blob_bytes: int
    compressions: int


@dataclass(frozen=True, slots=True)
class Soak:
    marks: tuple[Mark, ...]
    events: int
    history_bytes: int
    runs: int
    messages: int

    def as_json(self) -> dict[str, object]:
        return asdict(self)


class Watching:
    """One session at work, looked at from outside."""

    def __init__(self, session: Session, stage: Stage) -> None:
        self._session = session
        self._worker, self._server = stage.worker_pid, stage.server_pid
        self._blobs = stage.settings.data_dir / "blobs"
        self._began = time.perf_counter()
        self._before = (cpu_ms(self._worker), cpu_ms(self._server))

    async def marks(self, steps: int, every: int) -> list[Mark]:
        """A mark at the begin and after each `every` steps, until the reply has come to its end."""
        found, due = [await self._mark()], every
        while found[-1].steps < steps:
            await asyncio.sleep(LOOK_SECONDS)
            status = await self._session.status()
            ended = status.status != "working"
            if status.model_calls >= due or ended:
                found.append(await self._mark())
                print(json.dumps(asdict(found[-1])), file=sys.stderr, flush=True)
                due = (found[-1].steps // every + 1) * every
            if ended:
                break
        return found

    async def _mark(self) -> Mark:
        status = await self._session.status()
        return Mark(
            steps=status.model_calls,
            wall=(time.perf_counter() - self._began) * 1000,
            worker_cpu=cpu_ms(self._worker) - self._before[0],
            server_cpu=cpu_ms(self._server) - self._before[1],
            worker_bytes=memory_bytes(self._worker),
            blob_bytes=sum(path.stat().st_size for path in self._blobs.rglob("*") if path.is_file()),
            compressions=status.compressions,
        )


async def soak(steps: int, every: int) -> Soak:
    async with one_worker() as stage:
        script = stage.folder / "script.jsonl"
        call = json.dumps({"tool_calls": [{"name": "fetch", "input": {"chars": CHARS}}]})
        script.write_text("\n".join([*[call] * steps, json.dumps({"text": "done"})]))
        spec = AgentSpec(
            name="soak",
            model=f"scripted:{script}",
            tools=("fetch",),
            stuck=StuckConfig(polling=("fetch",)),
            react_config=ReActConfig(max_iters=steps + 1),
            model_config=ModelConfig(context_length=WINDOW_TOKENS),
        )
        session = Longhaul(stage.client, stage.settings).session(uuid.uuid4().hex, agent=spec)
        await session.submit("go")
        marks = await Watching(session, stage).marks(steps, every)
        events, size, runs = await history(stage.client, session.workflow_id)
        status = await session.status()
        return Soak(tuple(marks), events, size, runs, status.messages)


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a step cost between two marks."""

    begin: Mark
    end: Mark

    def per_step(self, pick: str) -> float:
        steps = max(self.end.steps - self.begin.steps, 1)
        return float((getattr(self.end, pick) - getattr(self.begin, pick)) / steps)


def stretches(marks: Sequence[Mark], parts: int = 10) -> list[Stretch]:
    """The session in about equal parts."""
    size = max((len(marks) - 1) // parts, 1)
    ends = [*range(0, len(marks) - 1, size), len(marks) - 1]
    return [Stretch(marks[a], marks[b]) for a, b in itertools.pairwise(ends) if a != b]


HEADER = ("steps", "wall ms", "worker CPU ms", "server CPU ms", "worker MiB", "blob bytes/step", "compressions")


def rows(found: Soak) -> list[tuple[str, ...]]:
    return [
        (
            f"{part.begin.steps:,} to {part.end.steps:,}",
            f"{part.per_step('wall'):.1f}",
            f"{part.per_step('worker_cpu'):.1f}",
            f"{part.per_step('server_cpu'):.1f}",
            f"{part.end.worker_bytes / 2**20:.0f}",
            f"{part.per_step('blob_bytes'):,.0f}",
            str(part.end.compressions),
        )
        for part in stretches(found.marks)
    ]


def section(found: Soak) -> str:
    """The page's text about it."""
    last = found.marks[-1]
    lines = [
        "## A session of 10,000 steps",
        "",
        f"`python -m benchmarks.soak`: one reply of {last.steps:,} model calls, each with a tool call that returns",
        f"{CHARS} characters; the scripted model has a window of {WINDOW_TOKENS:,} tokens. Per step, in ten parts:",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(row)} |" for row in rows(found)),
        "",
        f"In all {found.messages:,} messages, {found.events:,} events, {found.history_bytes / 1e6:.1f} MB of history",
        f"in {found.runs} runs ({found.events / last.steps:.1f} events and",
        f"{found.history_bytes / last.steps / 1000:.1f} kB a step), {last.blob_bytes / 1e6:.1f} MB of blobs.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=250, help="steps between two looks")
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw marks under this folder")
    given = parser.parse_args()
    found = asyncio.run(soak(given.steps, given.every))
    table = Table(*HEADER, title="per step")
    for row in rows(found):
        table.add_row(*row)
    Console(width=120).print(table)
    if given.docs:
        page = given.docs / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "soak", section(found)))
        (given.docs / "benchmarks" / "soak.json").write_text(json.dumps(found.as_json(), indent=1) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # The SDK's threads abort a normal exit now and then.
