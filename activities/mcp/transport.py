"""Reaches an MCP server: a program under a leash, or an address. Secrets are put in here, and nowhere else."""

import asyncio
import functools
import os
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from http import HTTPStatus
from pathlib import Path
from typing import IO, Literal

import httpx2
import mcp_types as types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.exceptions import MCPError

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import Server
from longhaul.activities.mcp.failures import ServerAway
from longhaul.activities.mcp.program import ServerProgram, program_streams
from longhaul.activities.process import relay
from longhaul.activities.process.sandbox import CantConfine, boxed
from longhaul.activities.shell.environment_variables import scrubbed
from longhaul.agent.values.spec.mcp import HttpMCPConfig, StdioMCPConfig, secrets_in, with_secrets

RELAY = str(Path(relay.__file__).resolve())
ANSWER_BYTES = 64_000_000
"""Of one answer: what is longer than a result may be guards the worker's memory alone."""
EVENT_BYTES = 1 << 20
"""Of one event of a stream: no more is read by the library."""
NOT_NOW = frozenset({429, 503})
"""What a server says that has not begun with a request."""

_NO_SESSION, _NO_METHOD = "Session terminated", "Not Found"
"""What the `mcp` package says of a 404 without an error of the protocol, with a session and without one."""
_UNKNOWN_SESSION = b"No valid session ID provided"
"""What servers that follow the examples of the protocol's own makers say with 400, where 404 is meant. It bears no
request's id, so the `mcp` package drops these words."""

Said = Literal["its answer", "no session", "nobody knows"]


class Outcomes:
    """What came of requests by HTTP, where that was no answer: of one call's, or of a connection's own."""

    def __init__(self) -> None:
        self.refused = 0
        self.had_session = False
        """What was sent last bore the id of a session."""
        self.is_forgotten = False
        """400 was the answer, for the session: see `_UNKNOWN_SESSION`."""
        self.is_unsent = False
        self.is_taken = False
        """The server has begun to answer the call. A connection sends many requests, of which the last one counts."""
        self.is_too_long = False
        self.failed = asyncio.get_running_loop().create_future()
        """Done when a request was not taken, of which not every transport says something."""

    def fail(self) -> None:
        if not self.failed.done():
            self.failed.set_result(None)

    def end_too_long(self) -> None:
        self.is_too_long = True

    def said_by(self, error: MCPError) -> Said:
        """Whose word the error is. By the specification 404 to what bears a session's id is of a server that knows no
        such session, and so has not begun with the request; who stands in front of a server and answers 404, maybe
        behind its back, says nothing in the protocol's words."""
        if error.code == types.CONNECTION_CLOSED or str(error) == _NO_SESSION:
            return "nobody knows"
        if not self.refused:
            return "its answer"
        if self.is_forgotten:
            return "no session"
        if self.refused != HTTPStatus.NOT_FOUND or str(error) == _NO_METHOD:
            return "nobody knows"
        # Where there are no sessions, 404 is how a server says what it does not know.
        return "no session" if self.had_session and error.code != types.METHOD_NOT_FOUND else "its answer"


of_this_call: ContextVar[Outcomes | None] = ContextVar("of_this_call", default=None)
"""The package sends a request in the context of whoever makes it. Calls that are made together share a connection: what
comes of one must not be taken for what has come of another, which would be made a second time."""


@asynccontextmanager
async def streams(server: Server, secrets: WorkerSecrets, errors: IO[bytes], status: Outcomes) -> AsyncIterator[object]:
    """A transport as the `mcp` package takes it. Raises ServerAway, OSError and what HTTP raises."""
    config = server.config
    if isinstance(config, StdioMCPConfig):
        program = await asyncio.to_thread(_started, server, config, secrets)  # the sandbox is tried once
        async with program_streams(program, errors, status.end_too_long) as both:
            yield both
        return
    client = _http(config, server, secrets, status)
    if is_sse(config.url):
        async with sse_client(
            config.url, httpx_client_factory=lambda headers=None, timeout=None, auth=None: client
        ) as both:
            yield both
        return
    async with client, streamable_http_client(config.url, http_client=client) as both:
        yield both


def is_sse(url: str) -> bool:
    return url.rstrip("/").endswith(("/sse", "/messages"))


def _started(server: Server, config: StdioMCPConfig, secrets: WorkerSecrets) -> ServerProgram:
    """Raises ServerAway, OSError."""
    environment = scrubbed(os.environ)
    program = shutil.which(config.command, path=environment["PATH"])
    if program is None:
        raise ServerAway(
            f"there is no program {config.command!r} on this worker, which the MCP server {server.name!r} needs"
        )
    environment |= _filled(config.env, secrets)
    folder = Path(config.cwd or server.folder)
    if config.cwd is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = _in_its_box(server, (program, *config.args), folder)
    return ServerProgram((sys.executable, "-I", "-S", RELAY, *words), environment, str(folder))


def _in_its_box(server: Server, words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    if server.box is None:
        return words
    try:
        return boxed(server.box, words, folder, folder).command
    except CantConfine as error:
        raise ServerAway(f"the MCP server {server.name!r} can't be started: {error}") from None


def _http(config: HttpMCPConfig, server: Server, secrets: WorkerSecrets, status: Outcomes) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=_filled(config.headers, secrets),
        # An answer may take as long as a call; what is opened must open sooner.
        timeout=httpx2.Timeout(config.timeout, read=server.timeout_seconds + config.timeout),
        # Another address was not listed, and would be sent the headers.
        follow_redirects=False,
        transport=_Bounded(status),
    )


def _filled(texts: dict[str, str], secrets: WorkerSecrets) -> dict[str, str]:
    values = secrets.named(secrets_in(texts.values()))
    return {name: with_secrets(text, values) for name, text in texts.items()}


@functools.lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Of all connections: to read the machine's takes longer than most calls."""
    return httpx2.create_ssl_context()


class _Bounded(httpx2.AsyncHTTPTransport):
    """Ends answers that would fill the worker's memory, and notes what is no answer."""

    def __init__(self, status: Outcomes) -> None:
        super().__init__(verify=_certificates())
        self._status = status

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status = of_this_call.get() or self._status
        # A call that was taken sends more: GET for the rest of its answer, POST with what the server asks meanwhile. Of
        # these a failure says nothing of whether the call has begun, and what runs once would be made again.
        begins = request.method == "POST" and not status.is_taken
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            if begins:
                status.is_unsent = True
                status.fail()
            raise
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Counted(response, response.stream, status)
        if begins:
            status.refused = response.status_code if response.status_code >= 400 else 0
            status.had_session = MCP_SESSION_ID in request.headers
            if status.refused:
                status.fail()
            else:
                status.is_taken = status is not self._status
            if status.refused == HTTPStatus.BAD_REQUEST and status.had_session:
                status.is_forgotten = _UNKNOWN_SESSION in await response.aread()
        return response


class _Counted(httpx2.AsyncByteStream):
    """An answer, or one event of those that come as a stream."""

    def __init__(self, response: httpx2.Response, stream: httpx2.AsyncByteStream, status: Outcomes) -> None:
        self._stream, self._status = stream, status
        self._has_events = "text/event-stream" in response.headers.get("content-type", "")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        most, so_far = EVENT_BYTES if self._has_events else ANSWER_BYTES, 0
        async for piece in self._stream:
            ended = piece.rfind(b"\n\n") if self._has_events else -1
            so_far = so_far + len(piece) if ended < 0 else len(piece) - ended
            if so_far > most:
                self._status.is_too_long = True
                raise httpx2.ReadError(f"the answer has more than {most} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
