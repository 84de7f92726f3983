"""`python -m benchmarks.parked`: 1,000 sessions that wait for a person, on one worker; its memory and its answers."""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.measure import memory_bytes
from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import with_section
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session

AT_ONCE = 20
"""Sessions that are being started."""


@dataclass(frozen=True, slots=True)
class Parked:
    """Times in milliseconds: until a decision was taken in, and until the reply that went on with it was ended."""

    sessions: int
    bytes_empty: int
    bytes_parked: int
    bytes_after: int
    taken: tuple[float, ...]
    ended: tuple[float, ...]


async def park(sessions: int, decisions: int) -> Parked:
    async with one_worker("benchmarks.asks") as stage:
        await _resolve(_sessions(stage, 5))
        empty = memory_bytes(stage.worker_pid)
        waiting = _sessions(stage, sessions)
        await _resolve(waiting)
        parked = memory_bytes(stage.worker_pid)
        chosen = random.Random(7).sample(waiting, decisions)  # noqa: S311  the same ones each time
        times = [await _decide(session) for session in chosen]
        return Parked(
            sessions=sessions,
            bytes_empty=empty,
            bytes_parked=parked,
            bytes_after=memory_bytes(stage.worker_pid),
            taken=tuple(taken for taken, _ in times),
            ended=tuple(ended for _, ended in times),
        )


def _sessions(stage: Stage, count: int) -> list[Session]:
    script = stage.folder / "script.jsonl"
    call = {"id": "call", "name": "sign", "input": {"paper": "the lease"}}
    script.write_text("".join(json.dumps(line) + "\n" for line in ({"tool_calls": [call]}, {"text": "signed"})))
    spec = AgentSpec(name="clerk", model=f"scripted:{script}", tools=("sign",))
    app = Longhaul(stage.client, stage.settings)
    return [app.session(f"parked-{count}-{number}", agent=spec) for number in range(count)]


async def _resolve(sessions: Sequence[Session]) -> None:
    """Start them, and see each of them wait."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(session: Session) -> None:
        async with room:
            await session.reply("Have it signed.")

    await asyncio.gather(*(one(session) for session in sessions))


async def _decide(session: Session) -> tuple[float, float]:
    (call,) = await session.pending()
    began = time.perf_counter()
    await session.confirm(call, allow=True, approver="bench")
    taken = time.perf_counter() - began
    await session.wait(call.reply_id)
    return taken * 1000, (time.perf_counter() - began) * 1000


def percentile(times: Sequence[float], hundredth: int) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[hundredth - 1]


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"


def section(found: Parked) -> str:
    """The page's text about it."""
    lines = [
        f"## {found.sessions:,} sessions that wait for a person",
        "",
        f"`python -m benchmarks.parked`: one worker holds them all. Its memory: {_mib(found.bytes_empty)} with five of",
        f"them, {_mib(found.bytes_parked)} with all, {_mib(found.bytes_after)} after {len(found.taken)} decisions,",
        "each for another session, one after the other. A decision was taken in after",
        f"{percentile(found.taken, 50):.0f} ms (p50), {percentile(found.taken, 95):.0f} ms (p95); the approved tool",
        f"had run and the reply was ended after {percentile(found.ended, 50):.0f} ms",
        f"and {percentile(found.ended, 95):.0f} ms.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parked", description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw times under this folder")
    given = parser.parse_args()
    found = asyncio.run(park(given.sessions, given.decisions))
    Console(width=120).print(section(found))
    if given.docs:
        page = given.docs / "benchmarks.md"
        page.write_text(with_section(page.read_text(), "parked", section(found)))
        (given.docs / "benchmarks" / "parked.json").write_text(json.dumps(asdict(found), indent=1) + "\n")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # The SDK's threads abort a normal exit now and then.
