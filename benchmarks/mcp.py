"""`python -m benchmarks.mcp`: a step of an agent with three MCP servers, beside one of an agent with three tools."""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.measure import cpu_ms, history
from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import publish, table
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec, ReActConfig
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.agent.values.stuck_config import StuckConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session

LOCAL, KEEPING, HTTP = "3 local tools", "3 MCP programs that keep state", "3 MCP servers over HTTP"
NUMBERS = ("one", "two", "three")
TARGET = 1.1
CHARS = 1_000
ROOT = Path(__file__).parents[1]
START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """One session; milliseconds and events a step."""

    contender: str
    steps: int
    wall: float
    worker_cpu: float
    events: float


async def jobs(steps: int, rounds: int) -> list[Job]:
    """They take turns, so that a noisy minute hits all; the first turn of each is not counted."""
    ports = [_free_port() for _ in NUMBERS]
    offered = {
        **{f"keeping_{name}": _program() for name in NUMBERS},
        **{f"http_{name}": {"url": f"http://127.0.0.1:{port}/mcp"} for name, port in zip(NUMBERS, ports, strict=True)},
    }
    told = {name: {"mcp_config": config, "trusted": True} for name, config in offered.items()}
    with _serving(ports):
        async with one_worker("benchmarks.fetches", further={"LONGHAUL_MCP": json.dumps(told)}) as stage:
            for contender in (LOCAL, KEEPING, HTTP):
                await job(stage, contender, 6)
            return [await job(stage, each, steps) for _ in range(rounds) for each in (LOCAL, KEEPING, HTTP)]


async def job(stage: Stage, contender: str, steps: int) -> Job:
    names = {
        LOCAL: [f"fetch_{name}" for name in NUMBERS],
        KEEPING: [f"mcp__keeping_{name}__fetch" for name in NUMBERS],
        HTTP: [f"mcp__http_{name}__fetch" for name in NUMBERS],
    }[contender]
    spec = AgentSpec(
        name="bench",
        model=_script(stage, names, steps),
        tools=tuple(names) if contender == LOCAL else (),
        mcps=_clients(contender),
        stuck=StuckConfig(polling=tuple(names)),
        react_config=ReActConfig(max_iters=steps + 1),
    )
    session = Longhaul(stage.client, stage.settings).session(f"mcp-{uuid.uuid4().hex}", agent=spec)
    await _done(contender, session)
    known, _, _ = await history(stage.client, session.workflow_id)
    before, began = cpu_ms(stage.worker_pid), time.perf_counter()
    await _done(contender, session)
    wall, cpu = (time.perf_counter() - began) * 1000, cpu_ms(stage.worker_pid) - before
    events, _, _ = await history(stage.client, session.workflow_id)
    return Job(contender, steps, wall / steps, cpu / steps, (events - known) / steps)


async def _done(contender: str, session: Session) -> None:
    message = await session.reply("Go")
    failed = [result for result in message.get_tool_results() if result.state != "success"]
    if message.finished_reason is not FinishedReason.COMPLETED or failed:
        raise RuntimeError(f"{contender}: {message.finished_reason}, {message.error}, {failed[:1]}")


def _clients(contender: str) -> tuple[MCPClient, ...]:
    match contender:
        case "3 MCP programs that keep state":
            return tuple(MCPClient(name=f"keeping_{name}", is_stateful=True) for name in NUMBERS)
        case "3 MCP servers over HTTP":
            return tuple(MCPClient(name=f"http_{name}") for name in NUMBERS)
        case _:
            return ()


def _script(stage: Stage, names: Sequence[str], steps: int) -> str:
    path = stage.folder / f"{names[0]}-{steps}.jsonl"
    calls = [{"name": names[step % len(names)], "input": {"chars": CHARS}} for step in range(steps)]
    first = [*({"tool_calls": [call]} for call in calls[: len(names)]), {"text": "ready"}]
    lines = [*first, *({"tool_calls": [call]} for call in calls), {"text": "done"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def _program() -> dict[str, object]:
    return {"command": sys.executable, "args": ["-m", "benchmarks.mcp_server", "stdio"], "cwd": str(ROOT)}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def _serving(ports: Sequence[int]) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.mcp_server", "streamable-http"]
    servers = [subprocess.Popen([*command, str(port)], cwd=ROOT) for port in ports]
    try:
        for port in ports:
            _until_listening(port)
        yield
    finally:
        for server in servers:
            server.kill()
            server.wait()


def _until_listening(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def ratio(found: Sequence[Job], contender: str, field: str) -> float:
    """By local tools: medians over the rounds."""

    def median(of: str) -> float:
        return statistics.median(float(getattr(one, field)) for one in found if one.contender == of)

    return median(contender) / median(LOCAL)


def section(found: Sequence[Job], load: float) -> str:
    """The page's text about it. `load`: of the machine when it began, by what else ran on it."""
    rows = [
        (one.contender, f"{one.wall:.1f}", f"{one.worker_cpu:.1f}", f"{one.events:.2f}")
        for one in sorted(found, key=lambda one: (one.contender, one.wall))
    ]
    fields = ("wall", "worker_cpu", "events")
    compared = [(of, *(f"{ratio(found, of, field):.2f}" for field in fields)) for of in (KEEPING, HTTP)]
    return "\n".join(
        [
            "## Tools of MCP servers",
            "",
            f"`python -m benchmarks.mcp`: replies of {found[0].steps} steps, in each of which one of three tools is",
            f"called in turn that returns {CHARS:,} characters. The servers are written in Python with the `mcp`",
            "package; what they take of the processor is in the wall time. What it takes to start them is not: a reply",
            f"before the measured one has used each. Load of the machine by other work when it began: {load:.1f}.",
            "",
            *table(("", "wall, ms a step", "worker's processor, ms a step", "events a step"), rows),
            "",
            f"By local tools, medians (target: wall ≤ {TARGET}, and no more events):",
            "",
            *table(("", "wall", "worker's processor", "events"), compared),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mcp", description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw figures under this folder")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    found = asyncio.run(jobs(given.steps, given.rounds))
    Console(width=120).print(section(found, load))
    if given.docs:
        publish(given.docs, "mcp", section(found, load), [asdict(one) for one in found])


if __name__ == "__main__":
    main()
