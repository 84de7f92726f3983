"""`python -m benchmarks.first_token`: from a byte of the model's server to the client's screen, over both streams.

The server says in each piece when it sent it, so every piece is a measurement; the first of each reply is told apart.
"""

import argparse
import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.one_worker import Stage, one_worker
from benchmarks.pages import publish, spread, table
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul

PIECES = 40
THINKING_SECONDS = 0.3
BETWEEN_SECONDS = 0.02


TARGETS = {"directory": 30, "Redis": 5}
"""Milliseconds, in the middle."""
HEADER = ("stream", "piece", "p50 ms", "p95 ms", "max ms", "measured", "not seen live", "target")


@dataclass
class Latencies:
    """Milliseconds."""

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    missed: int = 0
    """Replies of which nothing was seen before they were recorded."""


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A chat completion, piece by piece, each with the time of its sending."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(THINKING_SECONDS)
    for _ in range(PIECES):
        writer.write(_chunk(f'{{"content": "<{time.monotonic_ns()}>"}}', "null"))
        await writer.drain()
        await asyncio.sleep(BETWEEN_SECONDS)
    writer.write(_chunk("{}", '"stop"') + b"data: [DONE]\n\n")
    await writer.drain()
    writer.close()


def _chunk(delta: str, reason: str) -> bytes:
    choice = f'{{"index": 0, "delta": {delta}, "finish_reason": {reason}}}'
    about = '"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"'
    return f'data: {{{about}, "choices": [{choice}]}}\n\n'.encode()


async def measure(stage: Stage, url: str, replies: int) -> Latencies:
    """So many replies of one session, one after the other."""
    spec = AgentSpec.model_validate({"name": "bench", "model": "openai-chat:m", "model_config": {"base_url": url}})
    session = Longhaul(stage.client, stage.settings).session("first-token", agent=spec)
    await session.reply("warm up")
    found = Latencies()
    for number in range(replies):
        seen: list[float] = []
        async for event in session.reply_stream(f"reply {number}"):
            if event.live and event.type == "TEXT_BLOCK_DELTA":
                now = time.monotonic_ns()
                seen += [(now - int(sent)) / 1e6 for sent in re.findall(r"<(\d+)>", event.delta)]
        found.first += seen[:1]
        found.later += seen[1:]
        found.missed += not seen
    return found


@contextmanager
def _redis() -> Iterator[str]:
    """A Redis of our own; empty where there is no redis-server."""
    program = shutil.which("redis-server")
    if program is None:
        yield ""
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [program, "--port", str(port), "--save", "", "--dir", folder], stdout=subprocess.DEVNULL
        )
        try:
            time.sleep(0.5)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()
            process.wait()


async def run(replies: int) -> dict[str, Latencies]:
    """By stream."""
    with _redis() as url:
        found = {}
        for name, address in (("directory", ""), ("Redis", url)):
            if name == "directory" or address:
                os.environ["LONGHAUL_REDIS_URL"] = address
                server = await asyncio.start_server(_serve, "127.0.0.1", 0)
                model = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
                async with one_worker(model_keys=f"none={model}") as stage:
                    found[name] = await measure(stage, model, replies)
                server.close()
        return found


def rows(found: dict[str, Latencies]) -> list[tuple[str, ...]]:
    return [
        (name, piece, *spread(values, 1), str(len(values)), str(one.missed), f"p50 ≤ {TARGETS[name]}")
        for name, one in found.items()
        for piece, values in (("first", one.first), ("later", one.later))
        if values
    ]


def section(found: dict[str, Latencies]) -> str:
    """The page's text about it."""
    lines = [
        "## The first token",
        "",
        "`python -m benchmarks.first_token`: from a byte of the model's server to the event that a client is given,",
        f"over both kinds of live stream. {PIECES} pieces a reply, one each {BETWEEN_SECONDS * 1000:.0f} ms; model,",
        "worker, stream and client on one machine.",
        "",
        *table(HEADER, rows(found)),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_token", description=__doc__)
    parser.add_argument("--replies", type=int, default=30)
    parser.add_argument("--docs", type=Path, help="write docs/benchmarks.md and the raw times under this folder")
    given = parser.parse_args()
    found = asyncio.run(run(given.replies))
    shown = Table(*HEADER)
    for row in rows(found):
        shown.add_row(*row)
    Console(width=120).print(shown)
    if given.docs:
        publish(given.docs, "first_token", section(found), {name: asdict(one) for name, one in found.items()})
    sys.stdout.flush()
    # The SDK's runtime threads abort a normal interpreter exit now and then, after all work is done.
    os._exit(0)


if __name__ == "__main__":
    main()
