"""`python -m benchmarks.interrupting`: from an interrupt's signal until what ran is gone.

Two things run beside each other: a command whose processes ignore SIGTERM, until none of its process group is alive;
and a model that speaks without end, until its server finds the connection closed. The signals come at random moments.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import WorkflowHandle

from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import publish, spread, table
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session

TARGET_SECONDS = 0.5
PATIENCE_SECONDS = 20.0
LOOK_SECONDS = 0.002
HEADER = ("what runs", "median s", "p95 s", "max s", "measured", "target")
COMMAND = "a command that ignores SIGTERM"
STREAM = "a model that speaks"
STUBBORN = "trap '' TERM; sleep 600 & sleep 600 & echo $$ > group; wait; wait"


@dataclass
class Figures:
    """Seconds by what ran."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {COMMAND: [], STREAM: []})
    otherwise: int = 0
    """Replies that did not end as interrupted."""


@dataclass
class Speaker:
    """A model's server that speaks until nobody listens any more."""

    url: str = ""
    speaking: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    left_at: float = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        speech = asyncio.create_task(self._speak(writer))
        with contextlib.suppress(ConnectionError):  # closed with what was said unread
            await reader.read()
        self.left_at = time.monotonic()
        speech.cancel()
        writer.close()
        self.left.set()

    async def _speak(self, writer: asyncio.StreamWriter) -> None:
        choice = json.dumps({"index": 0, "delta": {"content": "word "}, "finish_reason": None})
        about = '"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"'
        while True:
            writer.write(f'data: {{{about}, "choices": [{choice}]}}\n\n'.encode())
            await writer.drain()
            self.speaking.set()
            await asyncio.sleep(0.02)


@asynccontextmanager
async def speaker() -> AsyncIterator[Speaker]:
    model = Speaker()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    yield model
    server.close()


@dataclass(frozen=True)
class Ground:
    """One session, and how it is interrupted."""

    session: Session
    handle: WorkflowHandle[Any, Any]
    figures: Figures

    @classmethod
    def of(cls, stage: Stage, name: str, figures: Figures, **spec: Any) -> "Ground":
        given = AgentSpec.model_validate({"name": "bench", "stuck": {"enabled": False}, **spec})
        session = Longhaul(stage.client, stage.settings).session(name, agent=given)
        return cls(session, stage.client.get_workflow_handle(session.workflow_id), figures)

    async def signal(self) -> float:
        """Send the interrupt at a moment that has nothing to do with the beats of what runs; when that was."""
        await asyncio.sleep(random.uniform(0.3, 1.5))  # noqa: S311  no secret
        moment = time.monotonic()
        await self.handle.signal("interrupt", {})
        return moment

    async def ended(self, reply: str) -> None:
        message = await self.session.wait(reply)
        self.figures.otherwise += message.finished_reason is not FinishedReason.INTERRUPTED


async def commands(stage: Stage, figures: Figures, repeats: int) -> None:
    folder = stage.folder / "workspace"
    folder.mkdir()
    script = stage.folder / "script.jsonl"
    line = json.dumps({"tool_calls": [{"name": "Bash", "input": {"command": STUBBORN}}]})
    script.write_text(f"{line}\n" * repeats)
    ground = Ground.of(
        stage,
        "commands",
        figures,
        model=f"scripted:{script}",
        tools=["Bash"],
        permission={"mode": "bypass"},
        workspace={"root": str(folder)},
    )
    for _ in range(repeats):
        reply = await ground.session.submit("go")
        group = await _group(folder / "group")
        moment = await ground.signal()
        while alive(group):  # noqa: ASYNC110  nobody else sees the end of a process that is not ours
            await asyncio.sleep(LOOK_SECONDS)
        figures.seconds[COMMAND].append(time.monotonic() - moment)
        await ground.ended(reply)


async def streams(stage: Stage, model: Speaker, figures: Figures, repeats: int) -> None:
    ground = Ground.of(stage, "streams", figures, model="openai-chat:m", model_config={"base_url": model.url})
    for _ in range(repeats):
        model.speaking.clear()
        model.left.clear()
        reply = await ground.session.submit("go")
        await asyncio.wait_for(model.speaking.wait(), PATIENCE_SECONDS)
        moment = await ground.signal()
        await asyncio.wait_for(model.left.wait(), PATIENCE_SECONDS)
        figures.seconds[STREAM].append(model.left_at - moment)
        await ground.ended(reply)


async def _group(file: Path) -> int:
    """The process group that the command has written down."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (group := _taken(file)):  # noqa: ASYNC110  the command writes it
            await asyncio.sleep(LOOK_SECONDS)
    return group


def _taken(file: Path) -> int:
    """The number in a file, which is gone then; 0 before it is written."""
    if not file.exists() or not file.read_text().endswith("\n"):
        return 0
    group = int(file.read_text())
    file.unlink()
    return group


def alive(group: int) -> bool:
    """Whether a process of the group is there that is no zombie."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            state, _, of_group = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False


async def run(repeats: int) -> Figures:
    figures = Figures()
    async with speaker() as model, one_worker(model_keys=f"none={model.url}") as stage:
        await asyncio.gather(commands(stage, figures, repeats), streams(stage, model, figures, repeats))
    return figures


def rows(figures: Figures) -> list[tuple[str, ...]]:
    return [
        (name, *spread(values), str(len(values)), f"p95 ≤ {TARGET_SECONDS:g}")
        for name, values in figures.seconds.items()
        if values
    ]


def section(figures: Figures) -> str:
    """The page's text about it."""
    lines = [
        "## An interrupt",
        "",
        "`python -m benchmarks.interrupting`: from the signal, sent at a random moment, until no process of the",
        "command's group is alive, or the model's server finds the connection closed.",
        "",
        *table(HEADER, rows(figures)),
        "",
        f"Replies that did not end as interrupted: {figures.otherwise}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interrupting", description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw times under this folder")
    given = parser.parse_args()
    figures = asyncio.run(run(given.repeats))
    shown = Table(*HEADER)
    for row in rows(figures):
        shown.add_row(*row)
    Console(width=120).print(shown, f"ended otherwise: {figures.otherwise}")
    if given.docs:
        publish(given.docs, "interrupting", section(figures), asdict(figures))
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(0)


if __name__ == "__main__":
    main()
