"""`longhaul serve` and those who connect and ask nothing, or half of something."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.serving import Serving, serving
from tests.limits import SURE_SECONDS, usual

pytestmark = pytest.mark.server

SLOW = 2_000
HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Half: "
WHOLE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(
    server: Serving, first: bytes, times: int = 1, addresses: int = 1
) -> AsyncIterator[list[Connected]]:
    place, made = urlsplit(server.url), list[Connected]()
    try:
        for number in range(times):
            whence = f"127.0.0.{1 + number % addresses}"
            reader, writer = await asyncio.open_connection(place.hostname, place.port, local_addr=(whence, 0))
            made.append((reader, writer))
            writer.write(first)
        yield made
    finally:
        for _, writer in made:
            writer.close()


@pytest.mark.alone
@pytest.mark.parametrize("addresses", [1, 40])
@pytest.mark.parametrize("first", [b"", HALF], ids=["nothing", "half a header"])
async def test_health_answers_beside_two_thousand_who_ask_nothing(
    tmp_path: Path, cli_environment: dict[str, str], first: bytes, addresses: int
) -> None:
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert most == resource.RLIM_INFINITY or most > SLOW + 500
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(allowed, SLOW + 500), most))
    async with serving(tmp_path, cli_environment) as server, connected(server, first, SLOW, addresses):
        seconds = []
        for _ in range(20):
            began = time.monotonic()
            async with connected(server, WHOLE) as ((reader, _writer),):
                assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
            seconds.append(time.monotonic() - began)

    assert sorted(seconds)[10] < usual(0.1), seconds


async def test_who_asks_nothing_is_let_go_after_some_seconds(tmp_path: Path, cli_environment: dict[str, str]) -> None:
    """Nothing, half a header, and half a second request."""
    async with serving(tmp_path, cli_environment) as server:
        await asyncio.gather(*(is_let_go(server, first) for first in (b"", HALF, WHOLE)))


async def is_let_go(server: Serving, first: bytes) -> None:
    async with connected(server, first) as made:
        began = time.monotonic()
        ((reader, writer),) = made
        async with asyncio.timeout(SURE_SECONDS):
            try:
                if first == WHOLE:
                    assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 200 OK\r\n"
                    writer.write(HALF)
                said = await reader.read()
            except ConnectionResetError:
                said = b""

    assert time.monotonic() - began > 4
    assert b"HTTP/1.1" not in said
