"""`python -m benchmarks.fanout`: a hundred sub-agents side by side, beside bare child workflows that do the same."""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.contenders import worker_process
from benchmarks.measure import history
from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import publish, table
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul

BARE, OURS = "bare child workflows", "sub-agents"
FLOOR_QUEUE = "bench-floor"
TARGET, MOST_PARENT_EVENTS = 1.25, 12
STEPS, CHARS = (1, 6), 500
"""Of each child: so many calls of a tool, each after a call of the model, and a last one of the model."""


@dataclass(frozen=True, slots=True)
class Fan:
    """One fan-out; wall in milliseconds a child, events a child."""

    contender: str
    steps: int
    children: int
    wall: float
    child_events: float
    parent_events: float


async def fan_out(children: int, rounds: int) -> list[Fan]:
    """They take turns, so that a noisy minute hits all; the first turn of each is not counted."""
    async with one_worker() as stage:
        address = stage.client.service_client.config.target_host
        command = [sys.executable, "-m", "benchmarks.floor", address, FLOOR_QUEUE]
        async with worker_process(command, {}, stage.folder / "floor.log"):
            sides = (bare, ours)
            for one in sides:
                await one(stage, 5, 1)
            return [await one(stage, children, steps) for _ in range(rounds) for steps in STEPS for one in sides]


async def bare(stage: Stage, children: int, steps: int) -> Fan:
    name, began = f"fan-{uuid.uuid4().hex}", time.perf_counter()
    await stage.client.execute_workflow("FloorFan", args=[children, steps, CHARS], id=name, task_queue=FLOOR_QUEUE)
    wall = time.perf_counter() - began
    return await _fan(stage, BARE, steps, wall, name, [f"{name}.{number}" for number in range(children)])


async def ours(stage: Stage, children: int, steps: int) -> Fan:
    tasks = [_call(f"t{number}", "Agent", {"agent": "hand", "task": "see to it"}) for number in range(children)]
    reads = [{"tool_calls": [_call(f"r{step}", "fetch", {"chars": CHARS})]} for step in range(steps)]
    hand = {
        "model": _script(stage, f"hand-{steps}", *reads, {"text": "done"}),
        "tools": ["fetch"],
        "stuck": {"polling": ["fetch"]},
        "react_config": {"max_iters": steps + 1},
    }
    lead = AgentSpec.model_validate(
        {
            "name": "lead",
            "model": _script(stage, f"lead-{children}", {"tool_calls": tasks}, {"text": "all done"}),
            "tools": (),
            "agents": {"hand": hand},
            "max_children": children,
        }
    )
    session = Longhaul(stage.client, stage.settings).session(f"fan-{uuid.uuid4().hex}", agent=lead)
    began = time.perf_counter()
    await session.reply("Go")
    wall = time.perf_counter() - began
    started = (await session.status()).children
    if [child.outcome for child in started] != ["success"] * children:
        raise RuntimeError(f"not all sub-agents succeeded: {[child.outcome for child in started]}")
    return await _fan(stage, OURS, steps, wall, session.workflow_id, [child.workflow_id for child in started])


async def _fan(stage: Stage, contender: str, steps: int, wall: float, parent: str, children: Sequence[str]) -> Fan:
    of_parent, _, _ = await history(stage.client, parent)
    of_children = [(await history(stage.client, child))[0] for child in children]
    count = len(children)
    return Fan(contender, steps, count, wall * 1000 / count, sum(of_children) / count, of_parent / count)


def _call(call_id: str, name: str, given: dict[str, object]) -> dict[str, object]:
    return {"id": call_id, "name": name, "input": given}


def _script(stage: Stage, name: str, *lines: object) -> str:
    path = stage.folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"scripted:{path}"


def ratio(found: Sequence[Fan], contender: str, steps: int, field: str) -> float:
    """By bare child workflows of as many steps: medians over the rounds."""

    def median(of: str) -> float:
        return statistics.median(
            float(getattr(one, field)) for one in found if (one.contender, one.steps) == (of, steps)
        )

    return median(contender) / median(BARE)


def section(found: Sequence[Fan], load: float) -> str:
    """The page's text about it. `load`: of the machine when it began, by what else ran on it."""
    rows = [
        (one.contender, str(one.steps), f"{one.wall:.0f}", f"{one.child_events:.1f}", f"{one.parent_events:.1f}")
        for one in sorted(found, key=lambda one: (one.steps, one.contender))
    ]
    compared = [
        (OURS, str(steps), *(f"{ratio(found, OURS, steps, field):.2f}" for field in ("wall", "child_events")))
        for steps in sorted({one.steps for one in found})
    ]
    most = max(one.parent_events for one in found if one.contender != BARE)
    lines = [
        f"## {found[0].children} sub-agents side by side",
        "",
        "`python -m benchmarks.fanout`: one turn of a lead starts them all; each calls a tool once, or six times, and",
        "a model before each call and after the last. Beside them, in turns, bare child workflows with the same",
        f"activities. A process serves each side, on one server; the machine has {os.cpu_count()} processors, and a",
        f"load of {load:.1f} by other work when it began: the ratios tell more than the milliseconds.",
        "",
        *table(("", "calls of tools", "wall, ms a child", "events a child", "events of the parent a child"), rows),
        "",
        f"By bare child workflows, medians (target: ≤ {TARGET} of both):",
        "",
        *table(("", "calls of tools", "wall", "events"), compared),
        "",
        "Whatever it does, a sub-agent has some three events that a bare child has not: it begins, and is written",
        "down, within its first task and its last, and the server's index hears how it stands.",
        "",
        f"The lead's own history grows by {most:.1f} events a sub-agent at most (target: ≤ {MOST_PARENT_EVENTS}).",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fanout", description=__doc__)
    parser.add_argument("--children", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw figures under this folder")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    found = asyncio.run(fan_out(given.children, given.rounds))
    Console(width=120).print(section(found, load))
    if given.docs:
        publish(given.docs, "fanout", section(found, load), [asdict(one) for one in found])


if __name__ == "__main__":
    main()
