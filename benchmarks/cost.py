"""`python -m benchmarks.cost`: what one reply asks of the server under each liveness, counted by the SDK's own metrics.

A model takes ten seconds and a command two, as in a real job. Counted are the requests of the worker, and of a client
that waits for the reply, by their kind. Those that are billed actions on Temporal Cloud are named as such; their number
a step includes what the reply costs beside its steps.
"""

import argparse
import asyncio
import json
import re
import socket
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from temporalio.client import WorkflowExecutionDescription

from benchmarks.one_worker import one_worker
from benchmarks.pages import table, with_section
from longhaul.agent.values.settings import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.reach.connection import connect
from longhaul.starter.telemetry.switches import runtime_with

MODEL_SECONDS, TOOL_SECONDS = 10.0, 2.0
BILLED = {
    "StartWorkflowExecution": "starts",
    "ExecuteMultiOperation": "starts",
    "SignalWorkflowExecution": "signals",
    "UpdateWorkflowExecution": "updates",
    "QueryWorkflow": "queries",
    "RecordActivityTaskHeartbeat": "heartbeats",
}
"""Requests that are an action each. What the session's own tasks ask for is counted in the history."""
RECORDED = {
    "activities": "activity_task_scheduled_event_attributes",
    "timers": "timer_started_event_attributes",
    "search attributes": "upsert_workflow_search_attributes_event_attributes",
}
"""Events that are an action each."""
MOST_ACTIONS = {"fast": 20.0, "cheap": 3.0}
"""A step; and of queries a minute by a client that waits:"""
MOST_QUERIES = {"fast": 4.0, "cheap": 1.0}
QUIET_SECONDS = 30.0
"""So long a session that waits for the next message is watched."""
_SAMPLE = re.compile(r'temporal_(?:long_)?request(?:_total)?\{.*operation="(\w+)".*\} ([\d.e+]+)')
_POLLS = "Poll"
"""An idle worker makes them too."""


@dataclass
class Cost:
    """Of one reply."""

    liveness: str
    steps: int
    wall_seconds: float
    worker: dict[str, int]
    client: dict[str, int]
    """Requests by kind."""
    recorded: dict[str, int]
    """Events that are actions."""
    events: int
    history_bytes: int
    quiet: dict[str, int]
    """Requests of the worker by kind in QUIET_SECONDS in which nobody wants anything of the session."""

    @property
    def heartbeats_a_step(self) -> float:
        return self.worker.get("RecordActivityTaskHeartbeat", 0) / self.steps

    @property
    def actions_a_step(self) -> float:
        asked = sum(count for side in (self.worker, self.client) for kind, count in side.items() if kind in BILLED)
        return (asked + sum(self.recorded.values())) / self.steps

    @property
    def queries_a_minute(self) -> float:
        """By the client."""
        return self.client.get("QueryWorkflow", 0) * 60 / self.wall_seconds


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def requests(port: int) -> Counter[str]:
    """All that this process has asked so far, without its polls."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    told: Counter[str] = Counter()
    for line in lines:
        if (found := _SAMPLE.fullmatch(line)) and not found[1].startswith(_POLLS):
            told[found[1]] += round(float(found[2]))
    return told


async def measure(steps: int, liveness: str) -> Cost:
    """One session on a worker of its own: its first reply is not counted, for it opens connections and the session."""
    worker_port, client_port = free_port(), free_port()
    further = {"LONGHAUL_METRICS": f"127.0.0.1:{worker_port}", "LONGHAUL_LIVENESS": liveness}
    async with one_worker(further=further) as stage:
        settings = stage.settings.model_copy(update={"liveness": liveness})
        client = await connect(
            stage.client.service_client.config.target_host,
            settings=settings,
            runtime=runtime_with(f"127.0.0.1:{client_port}"),
        )
        call = {"name": "Bash", "input": {"command": f"sleep {TOOL_SECONDS:g}"}}
        slow = {"delay_ms": MODEL_SECONDS * 1000, "chunk_chars": 10_000}
        lines = [{"text": "Ready."}, *({"tool_calls": [call], **slow} for _ in range(steps)), {"text": "Done.", **slow}]
        script = stage.folder / "script.jsonl"
        script.write_text("".join(json.dumps(line) + "\n" for line in lines))
        agent = AgentSpec.model_validate(
            {"model": f"scripted:{script}", "permission": {"mode": "bypass"}, "stuck": {"enabled": False}}
        )
        session = Longhaul(client, settings).session("cost", agent=agent)
        await session.reply("Are you there?")
        await asyncio.sleep(5)
        handle = stage.client.get_workflow_handle(session.workflow_id)
        quiet_before = requests(worker_port)
        await asyncio.sleep(QUIET_SECONDS)
        quiet = requests(worker_port) - quiet_before
        before, told_before = (requests(worker_port), requests(client_port)), await handle.describe()
        began = time.monotonic()
        done = await session.reply("Work")
        wall = time.monotonic() - began
        await asyncio.sleep(5)
        asked, told = (requests(worker_port) - before[0], requests(client_port) - before[1]), await handle.describe()
        events = (await handle.fetch_history()).events[told_before.history_length :]
        assert done.get_text_content() == "Done.", done  # noqa: S101  a measurement of something else would be worthless
        return Cost(
            liveness=liveness,
            steps=steps,
            wall_seconds=round(wall, 1),
            worker=dict(asked[0]),
            client=dict(asked[1]),
            recorded={
                kind: sum(event.WhichOneof("attributes") == field for event in events)
                for kind, field in RECORDED.items()
            },
            events=len(events),
            history_bytes=_size(told) - _size(told_before),
            quiet=dict(quiet),
        )


def _size(told: WorkflowExecutionDescription) -> int:
    return told.raw_description.workflow_execution_info.history_size_bytes


def section(costs: Sequence[Cost]) -> str:
    """The page's text about it: what was counted."""
    counted = {
        "billed actions": [f"{cost.actions_a_step:.1f}" for cost in costs],
        "of them heartbeats": [f"{cost.heartbeats_a_step:.1f}" for cost in costs],
        "events in the history": [f"{cost.events / cost.steps:.1f}" for cost in costs],
        "bytes of history": [f"{cost.history_bytes / cost.steps:,.0f}" for cost in costs],
        "queries a minute by a client that waits": [f"{cost.queries_a_minute:.1f}" for cost in costs],
        f"requests of a session in {QUIET_SECONDS:g} s without a message": [
            f"{sum(cost.quiet.values())}" for cost in costs
        ],
        "**a million steps**: history, GB": [f"{cost.history_bytes / cost.steps / 1000:.1f}" for cost in costs],
    }
    rows = [[name, *figures] for name, figures in counted.items()]
    said = (
        f"`python -m benchmarks.cost`: one reply of {costs[0].steps} steps on a worker of its own, in each a model of "
        f"{MODEL_SECONDS:g} s and a command of {TOOL_SECONDS:g} s; a step has its share of what the reply costs beside "
        "its steps."
    )
    return "\n".join([said, "", *table(["a step", *(f"`{cost.liveness}`" for cost in costs)], rows)])


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--liveness", choices=tuple(MOST_ACTIONS), help="this one alone")
    options.add_argument("--json", type=Path, help="write the counts to this file too")
    options.add_argument("--docs", type=Path, help="write cost.md in this folder, and the counts below it")
    chosen = options.parse_args()
    wanted = (chosen.liveness,) if chosen.liveness else tuple(MOST_ACTIONS)
    costs = [asyncio.run(measure(chosen.steps, liveness)) for liveness in wanted]
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")
    if chosen.docs:
        page = chosen.docs / "cost.md"
        page.write_text(with_section(page.read_text(), "cost", section(costs)))
        counts = chosen.docs / "benchmarks" / "cost.json"
        counts.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")
    out = Console()
    for cost in costs:
        out.print(_counted(cost))
    shown = Table("liveness", "actions a step", "at most", "queries a minute of who waits", "at most")
    for cost in costs:
        most = (f"{MOST_ACTIONS[cost.liveness]:g}", f"{MOST_QUERIES[cost.liveness]:g}")
        shown.add_row(cost.liveness, f"{cost.actions_a_step:.1f}", most[0], f"{cost.queries_a_minute:.1f}", most[1])
    out.print(shown)
    return 0


def _counted(cost: Cost) -> Table:
    title = f"{cost.liveness}: {cost.steps} steps in {cost.wall_seconds} s, {cost.events} events"
    shown = Table("request", "worker", "client", "billed as", title=title)
    for kind in sorted({*cost.worker, *cost.client}):
        shown.add_row(kind, str(cost.worker.get(kind, 0)), str(cost.client.get(kind, 0)), BILLED.get(kind, ""))
    for kind, count in cost.recorded.items():
        shown.add_row(kind, str(count), "", kind)
    return shown


if __name__ == "__main__":
    sys.exit(main())
