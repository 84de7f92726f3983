"""`python -m benchmarks.wire`: what a step costs with 10, 100, 1,000 and 3,000 messages in the context, over HTTP.

One session for each of three APIs calls a tool again and again, through the provider's own SDK and a model server that
does next to nothing (Node). Nothing is summarised. Beside it, with `--peers`, the same of other frameworks. Times are
those between two requests that the model server has read, the processor's that of the worker's process.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.contenders import UNBOUNDED, UNCUT, Load
from benchmarks.measure import cpu_ms
from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import publish, table
from benchmarks.peers.sides import PROGRAMS, Peer, Serving
from benchmarks.peers.venvs import python_of
from longhaul.agent.values.spec.agent_spec import AgentSpec, ReActConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.starter.client.client import Longhaul

SERVER = Path(__file__).with_name("wire_server.mjs")
APIS = {"anthropic": "anthropic:m", "Responses": "openai:m", "Chat Completions": "openai-chat:m"}
MESSAGES = (10, 100, 1_000, 3_000)
"""A step adds two: the model's call, and what came of it."""
LEAST_HALF_WINDOW, MOST_HALF_WINDOW = 10, 83
"""Steps on either side of the moment that is measured. A session goes on in a new run after some 166 steps, and has to
make again what it had ready: a long window has that as often as a session has, a short one by chance."""
WARMING_STEPS = 5
"""Before each session: a provider's SDK is imported once, and that is not what is measured."""
MOST_RATIO = 2.0
"""Of the processor's time with 1,000 messages against 10."""
PEERS_MESSAGES = MESSAGES[:3]


@dataclass(frozen=True, slots=True)
class Point:
    """A step with about so many messages, in milliseconds."""

    contender: str
    messages: int
    wall: float
    worker_cpu: float


def window(messages: int) -> tuple[int, int]:
    """The requests between which a step with so many messages is measured."""
    step = messages // 2
    half = min(max(step // 2, LEAST_HALF_WINDOW), MOST_HALF_WINDOW)
    return max(2, step - half), step + half


@dataclass
class WireServer:
    port: int
    asked: int = 0
    """Requests of all sessions so far."""
    watch: "Watch | None" = None

    def url(self, steps: int, *, whole: bool = False) -> str:
        """A session that asks there is over after so many more steps. `whole`: answers come in one piece."""
        return f"http://127.0.0.1:{self.port}/{self.asked + steps}/{'whole/' if whole else ''}v1"

    async def count(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            self.asked = int(line)
            if self.watch is not None:
                self.watch.note(self.asked)


@asynccontextmanager
async def wire_server() -> AsyncIterator[WireServer]:
    node = shutil.which("node")
    if node is None:
        raise SystemExit("this measurement needs `node` on the PATH, for the model's server")
    process = await asyncio.create_subprocess_exec(node, str(SERVER), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None  # noqa: S101  asked for one line above
    server = WireServer(int(await process.stdout.readline()))
    counting = asyncio.create_task(server.count(process.stdout))
    try:
        yield server
    finally:
        counting.cancel()
        process.kill()
        await process.wait()


@dataclass
class Watch:
    """Notes clock and processor where a window begins and ends."""

    contender: str
    pid: int
    messages: Sequence[int]
    before: int
    """Requests before its session."""
    noted: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])

    def note(self, asked: int) -> None:
        request = asked - self.before
        if any(request in window(each) for each in self.messages):
            self.noted[request] = (time.perf_counter() * 1000, cpu_ms(self.pid))

    def points(self) -> list[Point]:
        """Of the windows that were reached."""
        found: list[Point] = []
        for messages in self.messages:
            first, last = window(messages)
            if first in self.noted and last in self.noted:
                (wall, cpu), (later, more) = self.noted[first], self.noted[last]
                steps = last - first
                found.append(Point(self.contender, messages, (later - wall) / steps, (more - cpu) / steps))
        return found


def steps_for(messages: Sequence[int]) -> int:
    return max(window(each)[1] for each in messages) + 5


async def ours(server: WireServer, stage: Stage, messages: Sequence[int]) -> list[Point]:
    """Each API in a session of its own, on one worker, after one another."""
    app, found = Longhaul(stage.client, stage.settings), list[Point]()
    for api, model in APIS.items():
        await _session(app, server, model, WARMING_STEPS)
        server.watch = Watch(f"longhaul, {api}", stage.worker_pid, messages, server.asked)
        await _session(app, server, model, steps_for(messages))
        found += server.watch.points()
        _say(found[-len(messages) :])
    return found


async def _session(app: Longhaul, server: WireServer, model: str, steps: int) -> None:
    url = server.url(steps).removesuffix("/v1" if model.startswith("anthropic") else "")
    spec = AgentSpec(
        name="bench",
        model=model,
        model_config=UNBOUNDED.model_copy(update={"base_url": url}),
        tools=("fetch",),
        stuck=StuckConfig(polling=("fetch",)),
        react_config=ReActConfig(max_iters=steps + 5),
        context_config=UNCUT,
    )
    said = await app.session(f"wire-{model}-{steps}", agent=spec).reply("go")
    assert said.get_text_content() == "done", said  # noqa: S101  of something else the figures were worthless


async def peers(server: WireServer, stage: Stage, messages: Sequence[int]) -> list[Point]:
    """Through Chat Completions, which all of them speak."""
    found: list[Point] = []
    address = stage.client.service_client.config.target_host
    for program, workflows in PROGRAMS.items():
        steps, name = steps_for(messages), next(iter(workflows))
        environment = {"BENCH_MODEL_URL": server.url(steps, whole=True)}
        command = [str(python_of(program, print)), "-m", f"benchmarks.peers.{program}", address, program]
        async with Serving(command, stage.folder / f"{program}.log", environment) as worker:
            server.watch = Watch(f"{name}, Chat Completions", worker.pid, messages, server.asked)
            try:
                await Peer(name, workflows[name], stage.client, program, worker).session(Load(steps, 200))
            except Exception as error:  # noqa: BLE001  it ends as it ends: what was reached is measured
                print(f"{name} ended before its {steps} steps: {error}", file=sys.stderr, flush=True)
            found += server.watch.points()
            _say(found[-len(messages) :])
    return found


def _say(points: Sequence[Point]) -> None:
    for point in points:
        print(json.dumps(asdict(point)), file=sys.stderr, flush=True)


async def run(messages: Sequence[int], *, with_peers: bool) -> list[Point]:
    async with wire_server() as server:
        keys = f"none=http://127.0.0.1:{server.port}"
        async with one_worker(model_keys=keys) as stage:
            found = await ours(server, stage, messages)
            return found + (await peers(server, stage, PEERS_MESSAGES) if with_peers else [])


def rows(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """One for each contender: milliseconds of the processor, of the clock, and how they grow from 10 to 1,000."""
    found: list[tuple[str, ...]] = []
    for name in dict.fromkeys(point.contender for point in points):
        of = {point.messages: point for point in points if point.contender == name}
        cells = [f"{of[each].worker_cpu:.1f} / {of[each].wall:.1f}" if each in of else "-" for each in MESSAGES]
        grown = f"{of[1_000].worker_cpu / of[10].worker_cpu:.2f} x" if {10, 1_000} <= of.keys() else "-"
        found.append((name, *cells, grown))
    return found


HEADER = ("contender", *(f"{each:,} messages" for each in MESSAGES), "1,000 against 10")


def section(points: Sequence[Point]) -> str:
    return "\n".join(
        [
            "## A long context over the wire",
            "",
            "`python -m benchmarks.wire --peers`: a step with so many messages in the context, through the provider's",
            "SDK over HTTP, and a tool that returns 200 characters; nothing is summarised. Milliseconds of the",
            "worker's processor / of the clock. Target: with 1,000 messages the processor takes at most",
            f"{MOST_RATIO:g} times as long.",
            "",
            *table(HEADER, rows(points)),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wire", description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=list(MESSAGES))
    parser.add_argument("--peers", action="store_true", help="other frameworks too, which are installed apart")
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw samples under this folder")
    given = parser.parse_args()
    found = asyncio.run(run(given.messages, with_peers=given.peers))
    shown = Table(*HEADER, title="worker CPU ms / wall ms, a step")
    for row in rows(found):
        shown.add_row(*row)
    Console(width=150).print(shown)
    if given.docs:
        publish(given.docs, "wire", section(found), [asdict(point) for point in found])


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # The SDK's threads abort a normal exit now and then.
