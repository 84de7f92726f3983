"""Stands before Temporal's Web UI, which answers under any name: here this machine's names count, and its own pages.

Whoever may post to the Web UI may signal every session. A web page may send to this machine in its reader's name, and a
name of its own may lead here (DNS rebinding): the headers Host and Origin, which a page can't choose, tell both.
"""

import asyncio
import contextlib
import re
import sys
from collections.abc import Sequence

NAMES = ("localhost", "127.0.0.1", "[::1]")
MOST_HEAD_BYTES = 64_000
SLOWEST_HEAD_SECONDS = 20.0
_REQUEST_LINE = re.compile(r"[A-Z]+ /[!-~]* HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_OF_THE_CONNECTION = ("connection", "keep-alive", "proxy-connection", "upgrade")

HIGHEST_PORT = 65_535
_HOST = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")


def host_name(header: str) -> str | None:
    """Without its port, in small letters; None for what is not a name with or without a port, and nothing else."""
    found = _HOST.fullmatch(header.lower())
    return found[1] if found and 0 < int(found[2] or 1) <= HIGHEST_PORT else None


def is_own(origin: str, host: str) -> bool:
    """Whether a page of this server asks, as the header `Host` names it; TLS is the proxy's business."""
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


class RefusedRequest(Exception):
    """A request that does not reach the Web UI; the sentence says why."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


def passed_on(head: bytes) -> bytes:
    """The head of a request as the Web UI gets it: it answers this one and closes the connection, so that what follows
    is never taken for another request. Raises RefusedRequest."""
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    headers = [found for one in rest if (found := _HEADER.fullmatch(one)) is not None]
    if not _REQUEST_LINE.fullmatch(line) or len(headers) != len(rest):
        raise RefusedRequest("400 Bad Request", "this is no request of a browser")
    host, origin = (_only([one[2].strip().lower() for one in headers if one[1].lower() == name], name)
                    for name in ("host", "origin"))  # fmt: skip
    if host is None or host_name(host) not in NAMES:
        raise RefusedRequest(
            "403 Forbidden", f"Host: {(host or '')[:100]!r} is not served; ask for localhost or 127.0.0.1"
        )
    if origin is not None and not is_own(origin, host):
        raise RefusedRequest("403 Forbidden", f"Origin: pages of {origin[:100]!r} may not ask")
    kept = [one[0] for one in headers if one[1].lower() not in _OF_THE_CONNECTION]
    return "\r\n".join([line, *kept, "Connection: close", "", ""]).encode("latin-1")


def _only(values: Sequence[str], name: str) -> str | None:
    if len(values) > 1:
        raise RefusedRequest("400 Bad Request", f"{name}: it is there more than once; send it once")
    return values[0] if values else None


class WebUi:
    """Listens from `start` to `stop`, and asks the Web UI at `behind` what may be asked."""

    def __init__(self, behind: tuple[str, int]) -> None:
        self._behind = behind
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> None:
        """Raises OSError for a port that is taken."""
        self._server = await asyncio.start_server(self._begin, host, port, limit=MOST_HEAD_BYTES)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SLOWEST_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._exchange(passed_on(head), reader, writer)
        except RefusedRequest as refused:
            await _answer(writer, refused.status, str(refused))
        except asyncio.LimitOverrunError:
            await _answer(writer, "431 Request Header Fields Too Large", "the request's head is too long")
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # whoever asked has gone, or never asked
        finally:
            writer.close()

    async def _exchange(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, asks = await asyncio.open_connection(*self._behind)
        except OSError:
            raise RefusedRequest("502 Bad Gateway", "Temporal's Web UI does not answer; is its server up?") from None
        try:
            asks.write(head)
            body = asyncio.ensure_future(_copy(reader, asks))
            try:
                await _copy(answers, writer)
            finally:
                body.cancel()
                await asyncio.gather(body, return_exceptions=True)
        finally:
            asks.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while chunk := await source.read(65_536):
        target.write(chunk)
        await target.drain()


async def _answer(writer: asyncio.StreamWriter, status: str, why: str) -> None:
    text = f"{why}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
    writer.write(f"{head}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
    with contextlib.suppress(OSError):
        await writer.drain()


async def _forever(listens: str, behind: str) -> None:
    (host, _, port), (inner, _, inner_port) = listens.rpartition(":"), behind.rpartition(":")
    await WebUi((inner, int(inner_port))).start(host, int(port))
    await asyncio.Event().wait()


if __name__ == "__main__":  # of docker-compose: HOST:PORT to listen on, and the Web UI's
    asyncio.run(_forever(*sys.argv[1:3]))
