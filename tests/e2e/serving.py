"""`longhaul serve` as a process of its own, and readers of its events."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from longhaul.starter.dev_server.processes import tail
from tests.e2e.warm_process import WarmProcess
from tests.limits import SURE_SECONDS

TOKENS = {"ana": "lh_ana", "bob": "lh_bob", "eve": "lh_eve", "lea": "lh_lea", "max": "lh_max"}
"""Eve may look at everything, and do nothing; Lea leads Ana, and decides for her; Max is the operator."""


@dataclass
class Address:
    """Where a server listens."""

    url: str

    def client(self, user: str = "ana") -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {TOKENS[user]}"},
            timeout=SURE_SECONDS,
            trust_env=False,
        )


@dataclass
class Serving(Address):
    """One process, and where it listens."""

    process: WarmProcess
    log: Path

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


def tokens_file(folder: Path) -> Path:
    path = folder / "tokens"
    everything = " read,answer,approve,edit,steer"
    scopes = {
        "ana": everything,
        "bob": everything,
        "eve": " read,admin",
        "lea": " read,approve ana",
        "max": " read,answer,steer,admin",
    }
    lines = [f"{hashlib.sha256(TOKENS[user].encode()).hexdigest()} {user}{scopes[user]}\n" for user in TOKENS]
    path.write_text("# who may ask\n\n" + "".join(lines))
    path.chmod(0o600)
    return path


@asynccontextmanager
async def serving(
    folder: Path, environment: Mapping[str, str], *flags: str, command: tuple[str, ...] = ("serve",)
) -> AsyncIterator[Serving]:
    """In this folder, with its agents; killed at the end, if it still runs."""
    log = folder / "serve.log"
    with log.open("ab") as sink:
        words = [*command, "--port", "0", *flags]
        process = await WarmProcess.command(words, environment, folder, sink.fileno())
    said = await process.stdout.readline()
    assert said, tail(log)
    one = Serving(said.decode().strip(), process, log)
    try:
        yield one
    finally:
        if process.returncode is None:
            await one.kill()


@dataclass
class Frame:
    """One server-sent event."""

    id: int | None
    kind: str
    data: Any


@dataclass
class Reader:
    """Reads one stream and keeps what it said."""

    frames: list[Frame] = field(default_factory=list[Frame])
    comments: int = 0
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def recorded(self) -> list[int]:
        return [frame.id for frame in self.frames if frame.id is not None]

    @property
    def live(self) -> list[Frame]:
        return [frame for frame in self.frames if frame.id is None and frame.kind == "message"]

    @property
    def text(self) -> str:
        """What was said, by the record."""
        return "".join(f.data.get("delta", "") for f in self.frames if f.id and f.data["type"] == "TEXT_BLOCK_DELTA")

    async def read(
        self,
        client: httpx.AsyncClient,
        path: str,
        *,
        until: str = "",
        last: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Frame | None:
        """Until an event of the type `until`, or the stream's own end; returns the last frame."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        async with client.stream("GET", path, headers=headers, params=params) as response:
            assert response.status_code == 200, (await response.aread()).decode()
            assert response.headers["content-type"].startswith("text/event-stream")
            frame = ""
            async for line in response.aiter_lines():
                frame += f"{line}\n"
                if line or not await self.take(frame):
                    frame = frame if line else ""
                    continue
                frame = ""
                if self.frames[-1].kind == "end" or self.frames[-1].data.get("type") == until:
                    return self.frames[-1]
        return self.frames[-1] if self.frames else None

    async def replied(self, times: int) -> None:
        """Until so many replies have ended."""
        async with asyncio.timeout(SURE_SECONDS), self.news:
            await self.news.wait_for(lambda: sum(f.data.get("type") == "REPLY_END" for f in self.frames) >= times)

    async def take(self, text: str) -> bool:
        """One frame as it came; whether it tells an event."""
        lines = [line for line in text.split("\n") if line]
        self.comments += sum(line.startswith(":") for line in lines)
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        if "data" not in fields:
            return False
        number = int(fields["id"]) if "id" in fields else None
        self.frames.append(Frame(number, fields.get("event", "message"), json.loads(fields["data"])))
        async with self.news:
            self.news.notify_all()
        return True
