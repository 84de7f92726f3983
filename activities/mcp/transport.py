"""Reaches an MCP server: a program under a leash, or an address. Secrets are put in here, and nowhere else.

A server that is a program: started under its leash, and spoken to in lines through its input and output.

The `mcp` package has a transport for that too, which reads a line of any length into the worker's memory.
"""

import asyncio
import functools
import json
import os
import shutil
import ssl
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast
from urllib.parse import parse_qsl, quote

import anyio
import httpx2
import mcp_types as types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.mcp.allowed_servers import Server, ServerUnavailable
from longhaul.activities.mcp.lenient_answers import Lenient
from longhaul.activities.mcp.outcomes import HELD_SECONDS, Outcomes, is_followed, of_this_call
from longhaul.activities.models.model import scrub_json
from longhaul.activities.models.profiles import is_within
from longhaul.activities.process import relay
from longhaul.activities.process.sandbox import CantConfine, sandboxed
from longhaul.activities.shell.environment_variables import scrubbed
from longhaul.agent.values.spec.mcp import (
    HttpMCPConfig,
    StdioMCPConfig,
    secrets_in,
    with_secrets,
    without_query,
)

LINE_BYTES = 64_000_000
"""Of one message: what is longer than a result may be guards the worker's memory alone."""
PIECE_BYTES = 1 << 16
LEAVING_SECONDS = 3.0
"""So long a program may take to end once its input is closed: more than its leash gives it."""


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """What is started."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str | None


@asynccontextmanager
async def program_streams(
    program: ServerProgram, errors: IO[bytes], too_long: Callable[[], None]
) -> AsyncIterator[tuple["_Said", "_Saying"]]:
    """A transport as the `mcp` package takes it; `too_long` is called before a line above the bound ends it. Raises
    OSError where the program can't be started."""
    process = await asyncio.create_subprocess_exec(
        *program.words,
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        env=dict(program.environment),
        cwd=program.folder,
        limit=PIECE_BYTES,
        start_new_session=True,
    )
    stdin, stdout = cast(asyncio.StreamWriter, process.stdin), cast(asyncio.StreamReader, process.stdout)
    try:
        yield _Said(stdout, too_long), _Saying(stdin)
    finally:
        # To its end, whoever is cancelled: a program that nobody ends would stay until the worker's own end.
        with anyio.CancelScope(shield=True):
            stdin.close()
            await _end(process)
            with suppress(PermissionError):
                # What it said last may stand in the pipe unread. asyncio has no public word for it.
                cast(Any, process)._transport.close()  # noqa: SLF001


class _Stream:
    """What the package wants of a stream beside its words. A task between it and the pipe would cost each call a turn
    of the loop both ways. The pipes are closed with the program."""

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None: ...


class _Said(_Stream):
    """What the program says, a line at a time; none is read ahead while nobody takes it."""

    def __init__(self, stdout: asyncio.StreamReader, too_long: Callable[[], None]) -> None:
        self._stdout, self._too_long = stdout, too_long
        self._lines, self._started = deque[bytearray](), bytearray()

    async def receive(self) -> SessionMessage | Exception:
        """Raises EndOfStream."""
        if self._lines:
            await asyncio.sleep(0)  # a flood must not take the loop from other sessions
        while not self._lines:
            piece = await self._stdout.read(PIECE_BYTES)
            if not piece:
                raise anyio.EndOfStream
            first, *more = piece.split(b"\n")
            self._started += first
            for following in more:
                self._lines.append(self._started)
                self._started = bytearray(following)
            if len(self._started) > LINE_BYTES:
                self._too_long()
                raise anyio.EndOfStream
        line = self._lines.popleft()
        try:
            return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as error:
            # An answer that is dropped would be waited for until the call's time is over.
            return _with_whole_characters(line) or error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


def _with_whole_characters(line: bytearray) -> SessionMessage | None:
    """The message of a line with half a surrogate pair, as programs write it that cut texts where they like."""
    if b"\\ud" not in line.lower():
        return None
    try:
        message = scrub_json(json.loads(line))
        return SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False))
    except (ValueError, RecursionError):
        return None


class _Saying(_Stream):
    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    async def send(self, item: SessionMessage, /) -> None:
        """Raises BrokenResourceError where the program does not listen any more."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            if self._stdin.is_closing():
                raise anyio.BrokenResourceError
            self._stdin.write(f"{text}\n".encode())
            await self._stdin.drain()
        except OSError:
            raise anyio.BrokenResourceError from None


async def _end(process: Process) -> None:
    """Its input is closed, by which the leash ends it; what does not go then is told to, and then made to."""
    for push in (process.terminate, process.kill):
        if await _ended(process):
            return
        with suppress(ProcessLookupError):
            push()
    await _ended(process)


async def _ended(process: Process) -> bool:
    """Not `wait`, which waits for the pipes too, and those may be in the hands of others."""
    give_up = asyncio.get_running_loop().time() + LEAVING_SECONDS
    while process.returncode is None and asyncio.get_running_loop().time() < give_up:  # noqa: ASYNC110  nobody tells
        await asyncio.sleep(0.01)
    return process.returncode is not None


RELAY = str(Path(relay.__file__).resolve())
ANSWER_BYTES = 64_000_000
"""Of one answer: what is longer than a result may be guards the worker's memory alone."""
EVENT_BYTES = 1 << 20
"""Of one event of a stream: no more is read by the library."""


@asynccontextmanager
async def streams(server: Server, secrets: WorkerSecrets, errors: IO[bytes], status: Outcomes) -> AsyncIterator[object]:
    """A transport as the `mcp` package takes it, with answers that it can read. Raises ServerUnavailable, OSError and
    what HTTP raises."""
    async with _strict_streams(server, secrets, errors, status) as (said, saying):
        yield Lenient(said), saying


@asynccontextmanager
async def _strict_streams(
    server: Server, secrets: WorkerSecrets, errors: IO[bytes], status: Outcomes
) -> AsyncIterator[tuple[Any, Any]]:
    config = server.config
    if isinstance(config, StdioMCPConfig):
        program = await asyncio.to_thread(_started, server, config, secrets)  # the sandbox is tried once
        async with program_streams(program, errors, status.end_too_long) as both:
            yield both
        return
    client = _http(config, server, secrets, status)
    # The package, and what it logs and raises, see the address without its query, in which a key may be.
    address = without_query(config.url)
    if is_sse(address):
        async with sse_client(
            address, httpx_client_factory=lambda headers=None, timeout=None, auth=None: client
        ) as both:
            yield both[:2]
        return
    async with client, streamable_http_client(address, http_client=client) as both:
        yield both[:2]


def is_sse(url: str) -> bool:
    return url.rstrip("/").endswith(("/sse", "/messages"))


def _started(server: Server, config: StdioMCPConfig, secrets: WorkerSecrets) -> ServerProgram:
    """Raises ServerUnavailable, OSError."""
    environment = scrubbed(os.environ)
    program = shutil.which(config.command, path=environment["PATH"])
    if program is None:
        raise ServerUnavailable(
            f"there is no program {config.command!r} on this worker, which the MCP server {server.name!r} needs"
        )
    environment |= _filled(config.env, secrets)
    folder = Path(config.cwd or server.folder)
    if config.cwd is None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = _in_its_sandbox(server, (program, *config.args), folder)
    return ServerProgram((sys.executable, "-I", "-S", RELAY, *words), environment, str(folder))


def _in_its_sandbox(server: Server, words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    if server.sandbox is None:
        return words
    try:
        return sandboxed(server.sandbox, words, folder, folder).command
    except CantConfine as error:
        raise ServerUnavailable(f"the MCP server {server.name!r} can't be started: {error}") from None


def _http(config: HttpMCPConfig, server: Server, secrets: WorkerSecrets, status: Outcomes) -> httpx2.AsyncClient:
    address = without_query(config.url)
    values = secrets.named(secrets_in((config.url,)))
    query = with_secrets(config.url.partition("?")[2], {name: quote(value, safe="") for name, value in values.items()})
    return httpx2.AsyncClient(
        headers=_filled(config.headers, secrets),
        # An answer may take as long as a call; what is opened must open sooner.
        timeout=httpx2.Timeout(config.timeout, read=server.timeout_seconds + config.timeout),
        # Another address was not listed, and would be sent the headers.
        follow_redirects=False,
        transport=_Bounded(status, address, query, by_stream=is_sse(address)),
    )


def _filled(texts: dict[str, str], secrets: WorkerSecrets) -> dict[str, str]:
    values = secrets.named(secrets_in(texts.values()))
    return {name: with_secrets(text, values) for name, text in texts.items()}


@functools.lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Of all connections: to read the machine's takes longer than most calls."""
    return httpx2.create_ssl_context()


class _Bounded(httpx2.AsyncHTTPTransport):
    """Ends answers that would fill the worker's memory, notes what is no answer, and adds the query to what is asked of
    the server's address and those below it."""

    def __init__(self, status: Outcomes, address: str, query: str, *, by_stream: bool) -> None:
        """`by_stream`: all answers come in one stream, and none as that to its request."""
        super().__init__(verify=_certificates())
        self._status, self._by_stream = status, by_stream
        self._address, self._query = address, query.encode()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        status = of_this_call.get() or self._status
        # A call that was judged sends more: GET for the rest of its answer, POST with what the server asks meanwhile.
        # Of these a failure says nothing of whether the call has started, and what runs once would be made again.
        begins = request.method == "POST" and not status.is_judged
        if request.method == "GET":
            status.resume()
        try:
            response = await super().handle_async_request(self._with_query(request))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            if begins:
                status.is_unsent = True
                status.fail()
            raise
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Counted(response, response.stream, status)
        # A server that leads to its address with a slash mostly repeats the query, which the next request is given
        # anyway.
        if self._query and response.has_redirect_location:
            led = request.url.join(response.headers["location"])
            if parse_qsl(led.query, keep_blank_values=True) == parse_qsl(self._query, keep_blank_values=True):
                response.headers["location"] = str(led.copy_with(query=None))
        if is_followed(response, request):
            return response
        if begins:
            is_call = status is not self._status
            await status.judge(response, request, is_call=is_call, by_stream=self._by_stream)
        response.headers.pop("location", None)  # the package would go there, as far as it is of the same host
        return response

    def _with_query(self, request: httpx2.Request) -> httpx2.Request:
        """Of its own request nobody but the server sees more than the address: the client logs each that it makes."""
        if not self._query or not is_within(str(request.url), self._address):
            return request
        url = request.url.copy_with(query=self._query)
        sent = httpx2.Request(request.method, url, headers=request.headers, extensions=request.extensions)
        sent.stream = request.stream
        return sent


class _Counted(httpx2.AsyncByteStream):
    """An answer, or one event of those that come as a stream."""

    def __init__(self, response: httpx2.Response, stream: httpx2.AsyncByteStream, status: Outcomes) -> None:
        self._stream, self._status = stream, status
        self._has_events = "text/event-stream" in response.headers.get("content-type", "")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        most, so_far = EVENT_BYTES if self._has_events else ANSWER_BYTES, 0
        began = time.monotonic()
        try:
            async for piece in self._stream:
                ended = piece.rfind(b"\n\n") if self._has_events else -1
                so_far = so_far + len(piece) if ended < 0 else len(piece) - ended
                if so_far > most:
                    self._status.is_too_long = True
                    raise httpx2.ReadError(f"the answer has more than {most} bytes")
                if self._has_events and b"data:" in piece:
                    self._status.hear()
                yield piece
        finally:
            if time.monotonic() - began > HELD_SECONDS:
                self._status.hear()

    async def aclose(self) -> None:
        await self._stream.aclose()
