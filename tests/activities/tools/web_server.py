"""A site on this machine that answers byte for byte what a test says, and notes what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Page:
    """One answer."""

    body: bytes = b""
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    stays_silent: bool = False
    """The connection is kept, and nothing is said."""

    def as_bytes(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Said", "Connection: close"]
        lines += [f"Content-Type: {self.content_type}"] if self.content_type else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


@dataclass
class Site:
    pages: dict[str, Page] = field(default_factory=dict)
    """By path; others are not there."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The name of the host and the path with its query, in order."""
    port: int = 0
    silent: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ")[1]
        host = next(line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("host: "))
        self.asked.append((host.partition(":")[0], path))
        page = self.pages.get(path.partition("?")[0], Page(b"<p>There is nothing here.</p>", status=404))
        if page.stays_silent:
            await self.silent.wait()
        try:
            writer.write(page.as_bytes())
            await writer.drain()
        except OSError:
            pass  # it has read enough
        finally:
            writer.close()


@asynccontextmanager
async def serving_site(pages: Mapping[str, Page], certificate: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site(dict(pages))
    server = await asyncio.start_server(site, "127.0.0.1", 0, ssl=certificate)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        try:
            yield site
        finally:
            site.silent.set()
