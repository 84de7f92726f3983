"""`python -m benchmarks.cost`: what a reply asks of the server, counted by the SDK's own metrics.

A model takes ten seconds and a command two, as in a real job. Counted are the requests of the worker, and of a client
that waits for the reply, by their kind. Those that are billed actions on Temporal Cloud are named as such. Two replies
of one session, of different lengths, tell what a step costs and what a reply costs in addition.
"""

import argparse
import asyncio
import json
import math
import re
import socket
import statistics
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import WorkflowExecutionDescription, WorkflowHandle

from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import table, with_section
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect
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
MOST_ACTIONS = 3.0
"""A step; and of queries a minute by a client that waits:"""
MOST_QUERIES = 1.0
SHORT, DONE = 2, "Done."
FLEETS, STEPS_AN_HOUR = (10_000, 100_000, 1_000_000), 10
WRITES_A_STEP, WRITE_MS, BUSY_SHARE, LEAST_SHARDS = 10, 5, 0.1, 512
QUIET_SECONDS = 30.0
"""So long a session that waits for the next message is watched."""
_SAMPLE = re.compile(r'temporal_(?:long_)?request(?:_total)?\{.*operation="(\w+)".*\} ([\d.e+]+)')
_POLLS = "Poll"
"""An idle worker makes them too."""


@dataclass
class Reply:
    """What one reply has cost."""

    steps: int
    wall_seconds: float
    worker: dict[str, int]
    client: dict[str, int]
    """Requests by kind."""
    recorded: dict[str, int]
    """Events that are actions."""
    events: int
    history_bytes: int

    @property
    def actions(self) -> int:
        asked = sum(count for side in (self.worker, self.client) for kind, count in side.items() if kind in BILLED)
        return asked + sum(self.recorded.values())

    @property
    def heartbeats(self) -> int:
        return self.worker.get("RecordActivityTaskHeartbeat", 0)


@dataclass
class Cost:
    """Of a short reply and a long one."""

    short: Reply
    long: Reply
    quiet: dict[str, int]
    """Requests of the worker by kind in QUIET_SECONDS in which nobody wants anything of the session."""

    def a_step(self, of: Callable[[Reply], int]) -> float:
        return (of(self.long) - of(self.short)) / (self.long.steps - self.short.steps)

    def beside(self, of: Callable[[Reply], int]) -> float:
        """What a reply costs whatever its length."""
        return of(self.short) - self.short.steps * self.a_step(of)

    @property
    def queries_a_minute(self) -> float:
        """By the client."""
        return self.long.client.get("QueryWorkflow", 0) * 60 / self.long.wall_seconds


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


async def measure(steps: int) -> Cost:
    """One session on a worker of its own: its first reply is not counted, for it opens connections and the session."""
    worker_port, client_port = free_port(), free_port()
    async with one_worker(further={"LONGHAUL_METRICS": f"127.0.0.1:{worker_port}"}) as stage:
        client = await connect(
            stage.client.service_client.config.target_host,
            settings=stage.settings,
            runtime=runtime_with(f"127.0.0.1:{client_port}"),
        )
        session = Longhaul(client, stage.settings).session("cost", agent=_agent(stage, steps))
        await session.reply("Are you there?")
        await asyncio.sleep(5)
        watched = Watched(session, stage.client.get_workflow_handle(session.workflow_id), (worker_port, client_port))
        quiet_before = requests(worker_port)
        await asyncio.sleep(QUIET_SECONDS)
        quiet = requests(worker_port) - quiet_before
        return Cost(await watched.reply(SHORT), await watched.reply(steps), dict(quiet))


def _agent(stage: Stage, steps: int) -> AgentSpec:
    call = {"name": "Bash", "input": {"command": f"sleep {TOOL_SECONDS:g}"}}
    slow = {"delay_ms": MODEL_SECONDS * 1000, "chunk_chars": 10_000}
    lines: list[object] = [{"text": "Ready."}]
    for length in (SHORT, steps):
        lines += [*({"tool_calls": [call], **slow} for _ in range(length)), {"text": DONE, **slow}]
    script = stage.folder / "script.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return AgentSpec.model_validate(
        {"model": f"scripted:{script}", "permission": {"mode": "bypass"}, "stuck": {"enabled": False}}
    )


@dataclass
class Watched:
    """A session whose requests are counted, of its worker and of its client."""

    session: Session
    handle: WorkflowHandle[Any, Any]
    ports: tuple[int, int]

    async def reply(self, steps: int) -> Reply:
        before, told_before = [requests(port) for port in self.ports], await self.handle.describe()
        began = time.monotonic()
        done = await self.session.reply("Work")
        wall = time.monotonic() - began
        await asyncio.sleep(5)
        asked = [requests(port) - earlier for port, earlier in zip(self.ports, before, strict=True)]
        told = await self.handle.describe()
        events = (await self.handle.fetch_history()).events[told_before.history_length :]
        assert done.get_text_content() == DONE, done  # noqa: S101  a measurement of something else would be worthless
        recorded = {
            kind: sum(event.WhichOneof("attributes") == field for event in events) for kind, field in RECORDED.items()
        }
        size = _size(told) - _size(told_before)
        return Reply(steps, round(wall, 1), dict(asked[0]), dict(asked[1]), recorded, len(events), size)


def _size(told: WorkflowExecutionDescription) -> int:
    return told.raw_description.workflow_execution_info.history_size_bytes


def section(cost: Cost) -> str:
    """The page's text about it: what was counted."""
    counted: dict[str, Callable[[Reply], int]] = {
        "billed actions": lambda reply: reply.actions,
        "of them heartbeats": lambda reply: reply.heartbeats,
        "events in the history": lambda reply: reply.events,
        "bytes of history": lambda reply: reply.history_bytes,
    }
    rows = [[name, f"{cost.a_step(of):,.1f} + {cost.beside(of):,.0f}"] for name, of in counted.items()]
    rows += [
        ["queries a minute by a client that waits", f"{cost.queries_a_minute:.1f}"],
        [f"requests in {QUIET_SECONDS:g} s without a message", str(sum(cost.quiet.values()))],
        ["**a million steps**: history, GB", f"{_history_kb(cost):.1f}"],
    ]
    said = (
        f"`python -m benchmarks.cost`: replies of {cost.short.steps} and {cost.long.steps} steps on a worker "
        f"of its own, in each step a model of {MODEL_SECONDS:g} s and a command of {TOOL_SECONDS:g} s. *A step + what "
        "a reply costs in addition*:"
    )
    return "\n".join([said, "", *table(["", "a step + a reply"], rows)])


def fleet(cost: Cost, server_ms: float) -> str:
    """On paper: what so many sessions ask of a server of one's own. `server_ms`: its processor time for a step."""
    rows: list[list[str]] = []
    for sessions in FLEETS:
        a_second = sessions * STEPS_AN_HOUR / 3600
        gigabytes = a_second * 86_400 * _history_kb(cost) / 1e6
        busy = a_second * WRITES_A_STEP * WRITE_MS / 1000
        shards = max(LEAST_SHARDS, 2 ** math.ceil(math.log2(busy / BUSY_SHARE)))
        actions = a_second * 86_400 * cost.a_step(lambda reply: reply.actions) / 1e6
        figures = (f"{a_second:,.0f}", f"{a_second * server_ms / 1000:,.1f}", f"{gigabytes:,.0f}", f"{shards:,}")
        rows.append([f"{sessions:,}", *figures, f"{actions:,.1f}"])
    header = [
        "live sessions",
        "steps/s",
        "cores of the server",
        "GB of history a day",
        "shards",
        "million actions a day",
    ]
    said = (
        f"On paper, for sessions that take {STEPS_AN_HOUR} steps an hour each: cores = steps/s "
        f"x {server_ms:.0f} ms ([measured](benchmarks.md#beside-a-bare-workflow), database included, slow machine); "
        f"shards = steps/s x {WRITES_A_STEP} writes x {WRITE_MS} ms / {BUSY_SHARE:.0%}, rounded up to a power of two, "
        f"at least {LEAST_SHARDS}: a shard makes one write at a time, and should be busy {BUSY_SHARE:.0%} of it. "
        "Their number can't be changed later. A session that waits costs none of it."
    )
    return "\n".join([said, "", *table(header, rows)])


def _history_kb(cost: Cost) -> float:
    return cost.a_step(lambda reply: reply.history_bytes) / 1000


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--json", type=Path, help="write the counts to this file too")
    options.add_argument("--docs", type=Path, help="write cost.md in this folder, and the counts below it")
    chosen = options.parse_args()
    cost = asyncio.run(measure(chosen.steps))
    if chosen.json:
        chosen.json.write_text(json.dumps(asdict(cost), indent=1) + "\n")
    if chosen.docs:
        page = chosen.docs / "cost.md"
        samples = json.loads((chosen.docs / "benchmarks" / "floor.json").read_text())
        server_ms = statistics.median(one["server_cpu"] for one in samples if one["contender"] == "longhaul")
        told = with_section(page.read_text(), "cost", section(cost))
        page.write_text(with_section(told, "fleet", fleet(cost, server_ms)))
        counts = chosen.docs / "benchmarks" / "cost.json"
        counts.write_text(json.dumps(asdict(cost), indent=1) + "\n")
    out = Console()
    out.print(_counted(cost))
    shown = Table("actions a step", "at most", "queries a minute of who waits", "at most")
    actions = cost.a_step(lambda reply: reply.actions)
    shown.add_row(f"{actions:.1f}", f"{MOST_ACTIONS:g}", f"{cost.queries_a_minute:.1f}", f"{MOST_QUERIES:g}")
    out.print(shown)
    return 0


def _counted(cost: Cost) -> Table:
    reply = cost.long
    title = f"{reply.steps} steps in {reply.wall_seconds} s, {reply.events} events"
    shown = Table("request", "worker", "client", "billed as", title=title)
    for kind in sorted({*reply.worker, *reply.client}):
        shown.add_row(kind, str(reply.worker.get(kind, 0)), str(reply.client.get(kind, 0)), BILLED.get(kind, ""))
    for kind, count in reply.recorded.items():
        shown.add_row(kind, str(count), "", kind)
    return shown


if __name__ == "__main__":
    sys.exit(main())
