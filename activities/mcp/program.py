"""A server that is a program: started under its leash, and spoken to in lines through its input and output.

The `mcp` package has a transport for that too, which reads a line of any length into the worker's memory.
"""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, Self, cast

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

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
        self._lines, self._begun = deque[bytearray](), bytearray()

    async def receive(self) -> SessionMessage | Exception:
        """Raises EndOfStream."""
        if self._lines:
            await asyncio.sleep(0)  # a flood must not take the loop from other sessions
        while not self._lines:
            piece = await self._stdout.read(PIECE_BYTES)
            if not piece:
                raise anyio.EndOfStream
            first, *more = piece.split(b"\n")
            self._begun += first
            for following in more:
                self._lines.append(self._begun)
                self._begun = bytearray(following)
            if len(self._begun) > LINE_BYTES:
                self._too_long()
                raise anyio.EndOfStream
        return _message(self._lines.popleft())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


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


def _message(line: bytearray) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


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
