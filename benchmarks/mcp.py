"""`python -m benchmarks.mcp`: a step of an agent with three MCP servers, beside one of an agent with three tools."""

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.measure import cpu_ms, history
from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import publish, table
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec, ReActConfig
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session

LOCAL, KEEPING, HTTP = "3 local tools", "3 MCP programs that keep state", "3 MCP servers over HTTP"
KEEPING_PYTHON, HTTP_PYTHON = f"{KEEPING}, in Python", f"{HTTP}, in Python"
CONTENDERS = (LOCAL, KEEPING, HTTP, KEEPING_PYTHON, HTTP_PYTHON)
PREFIXES = {KEEPING: "keeping", HTTP: "http", KEEPING_PYTHON: "keeping_python", HTTP_PYTHON: "http_python"}
NUMBERS = ("one", "two", "three")
TARGET = 1.1
CHARS = 1_000
ROOT = Path(__file__).parents[1]
START_SECONDS = 30.0
NODE = ("node", str(Path(__file__).with_name("mcp_server.mjs")))
PYTHON = (sys.executable, "-m", "benchmarks.mcp_server")


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
    offered: dict[str, dict[str, object]] = {}
    with ExitStack() as serving:
        for keeping, http, command in ((KEEPING, HTTP, NODE), (KEEPING_PYTHON, HTTP_PYTHON, PYTHON)):
            for name in NUMBERS:
                url = f"http://127.0.0.1:{serving.enter_context(_serving(command))}/mcp"
                program: dict[str, object] = {"command": command[0], "args": [*command[1:], "stdio"], "cwd": str(ROOT)}
                offered |= {f"{PREFIXES[keeping]}_{name}": program, f"{PREFIXES[http]}_{name}": {"url": url}}
        told = {name: {"mcp_config": config, "trusted": True} for name, config in offered.items()}
        async with one_worker("benchmarks.fetches", further={"LONGHAUL_MCP": json.dumps(told)}) as stage:
            for contender in CONTENDERS:
                await job(stage, contender, 6)
            return [await job(stage, each, steps) for _ in range(rounds) for each in CONTENDERS]


async def job(stage: Stage, contender: str, steps: int) -> Job:
    prefix = PREFIXES.get(contender)
    names = [f"mcp__{prefix}_{name}__fetch" if prefix else f"fetch_{name}" for name in NUMBERS]
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
    if contender == LOCAL:
        return ()
    keeps = contender in {KEEPING, KEEPING_PYTHON}
    return tuple(MCPClient(name=f"{PREFIXES[contender]}_{name}", is_stateful=keeps) for name in NUMBERS)


def _script(stage: Stage, names: Sequence[str], steps: int) -> str:
    path = stage.folder / f"{names[0]}-{steps}.jsonl"
    calls = [{"name": names[step % len(names)], "input": {"chars": CHARS}} for step in range(steps)]
    first = [*({"tool_calls": [call]} for call in calls[: len(names)]), {"text": "ready"}]
    lines = [*first, *({"tool_calls": [call]} for call in calls), {"text": "done"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def _serving(command: Sequence[str]) -> Iterator[int]:
    """The port of a server."""
    port = _free_port()
    server = subprocess.Popen([*command, "http", str(port)], cwd=ROOT)
    try:
        _until_listening(port)
        yield port
    finally:
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
    compared = [(of, *(f"{ratio(found, of, field):.2f}" for field in fields)) for of in CONTENDERS[1:]]
    return "\n".join(
        [
            "## Tools of MCP servers",
            "",
            f"`python -m benchmarks.mcp`: replies of {found[0].steps} steps, in each of which one of three tools is",
            f"called in turn that returns {CHARS:,} characters. What servers take of the processor is in the wall:",
            "the first ones are a model of a server that costs next to nothing (Node), so what is left is ours and the",
            "`mcp` package's. Those in Python are written with that package. What it takes to start them is not",
            "measured: a reply before the measured one has used each. Load of the machine by other work when it",
            f"began: {load:.1f}.",
            "",
            *table(("", "wall, ms a step", "worker's processor, ms a step", "events a step"), rows),
            "",
            f"By local tools, medians (target: wall ≤ {TARGET} beside servers that cost nothing, and no more events):",
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
    if shutil.which(NODE[0]) is None:
        raise SystemExit("this measurement needs `node` on the PATH, for the servers that cost nothing")
    load = os.getloadavg()[0]
    found = asyncio.run(jobs(given.steps, given.rounds))
    Console(width=120).print(section(found, load))
    if given.docs:
        publish(given.docs, "mcp", section(found, load), [asdict(one) for one in found])


if __name__ == "__main__":
    main()
