"""A server that is a program: started under its leash, and spoken to in lines through its input and output.

The `mcp` package has a transport for that too, which reads a line of any length into the worker's memory.
"""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

LINE_BYTES = 64_000_000
"""Of one message: what is longer than a result may be guards the worker's memory alone."""
PIECE_BYTES = 1 << 16
LEAVING_SECONDS = 3.0
"""So long a program may take to end once its input is closed: more than its leash gives it."""

_Heard = MemoryObjectSendStream[SessionMessage | Exception]
_Hearing = MemoryObjectReceiveStream[SessionMessage | Exception]


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """What is started."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str | None


@asynccontextmanager
async def program_streams(
    program: ServerProgram, errors: IO[bytes], too_long: Callable[[], None]
) -> AsyncIterator[tuple[_Hearing, MemoryObjectSendStream[SessionMessage]]]:
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
    heard, hearing = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    saying, said = anyio.create_memory_object_stream[SessionMessage](0)
    carrying = asyncio.create_task(_hear(stdout, heard, too_long)), asyncio.create_task(_say(stdin, said, heard))
    try:
        yield hearing, saying
    finally:
        # To its end, whoever is cancelled: a program that nobody ends would stay until the worker's own end.
        with anyio.CancelScope(shield=True):
            hearing.close()
            saying.close()
            stdin.close()
            await _end(process)
            with suppress(PermissionError):
                # What it said last may stand in the pipe unread. asyncio has no public word for it.
                cast(Any, process)._transport.close()  # noqa: SLF001
            for task in carrying:
                task.cancel()
            await asyncio.wait(carrying)


async def _hear(stdout: asyncio.StreamReader, heard: _Heard, too_long: Callable[[], None]) -> None:
    """Hand on what the program says, a line at a time; none is read ahead while nobody takes it."""
    line = bytearray()
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with heard:
            while piece := await stdout.read(PIECE_BYTES):
                first, *more = piece.split(b"\n")
                line += first
                for following in more:
                    await heard.send(_message(line))
                    line = bytearray(following)
                if len(line) > LINE_BYTES:
                    too_long()
                    return


def _message(line: bytearray) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _say(stdin: asyncio.StreamWriter, said: MemoryObjectReceiveStream[SessionMessage], heard: _Heard) -> None:
    try:
        async with said:
            async for one in said:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(f"{text}\n".encode())
                await stdin.drain()
    except OSError:
        await heard.aclose()  # or who waits for an answer would wait for ever


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
