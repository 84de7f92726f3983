"""Runs a program under the supervisor, from the worker's side: pipes, collecting output, cutting the leash."""

import asyncio
import contextlib
import functools
import marshal
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, cast

from longhaul.activities.process import supervisor

SUPERVISOR = Path(supervisor.__file__).resolve()
START = "import marshal, os, sys; exec(marshal.loads(os.pread(int(sys.argv.pop(1)), 1 << 20, 0)))"
BACKSTOP_SECONDS = 10.0
"""So long after its own timeout a supervisor that does not end is killed itself."""
DRAIN_SECONDS = 1.0
"""So long a process that could not be killed may hold the output after the supervisor's end."""
UNHURRIED_BYTES = 1 << 20
"""Beyond this the reading pauses between pieces: a flood must not take the loop from other sessions."""


class Sink(Protocol):
    """Takes the output of a program in bounded memory."""

    @property
    def total_bytes(self) -> int: ...

    @property
    def full(self) -> bool:
        """Nothing more is wanted: the program is ended."""
        ...

    def add(self, chunk: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How a supervised program ended."""

    how: Literal["exited", "timeout", "cut", "lost"]
    """`lost`: the supervisor itself was killed."""
    status: int
    """Exit status; negative for a signal."""
    killed: int
    """Processes that were alive at the end of the call and had to be killed."""
    note: bytes
    """What the program wrote to `supervisor.NOTE_FD`."""


async def run_supervised(
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    output: Sink,
    limits: str = "",
) -> Ending:
    """Run `command` (absolute program, arguments) until it ends or is ended; stdout and stderr go to `output`.

    `limits` as the supervisor takes them.

    When this returns, or leaves by cancellation, no process of the call is alive. Raises OSError when the
    supervisor can't be started (no such directory).
    """
    leash = _Leash()
    conduct = asyncio.ensure_future(_conduct(leash, (limits, *command), cwd, environment, timeout_seconds, output))
    try:
        return await asyncio.shield(conduct)
    except asyncio.CancelledError:
        leash.cut()
        # Wait for the task's end whatever happens, also through further cancellations.
        while not conduct.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((conduct,))
        if not conduct.cancelled():
            conduct.exception()  # Looked at, so that the loop does not complain of an error that nobody retrieved.
        raise
    finally:
        leash.cut()


class _Leash:
    """The pipe whose closing ends the call."""

    def __init__(self) -> None:
        self.held_by_supervisor, self._ours = os.pipe()
        self._is_cut = False

    def cut(self) -> None:
        if not self._is_cut:
            self._is_cut = True
            os.close(self._ours)


async def _conduct(
    leash: _Leash,
    limited: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    output: Sink,
) -> Ending:
    loop, program = asyncio.get_running_loop(), _compiled()
    out_end, out_start = os.pipe()
    report_end, report_start = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", START, str(program), str(timeout_seconds), str(report_start), *limited),
            stdin=leash.held_by_supervisor,
            stdout=out_start,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(program, report_start),
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
    except BaseException:
        os.close(out_end)
        os.close(report_end)
        raise
    finally:
        for descriptor in (leash.held_by_supervisor, out_start, report_start):
            os.close(descriptor)
    backstop = loop.call_later(timeout_seconds + BACKSTOP_SECONDS, _kill, process)
    pumping = asyncio.ensure_future(_pump(out_end, output, leash))
    try:
        async with _reading(report_end) as reader:
            report = await reader.read()
        await process.wait()
        await asyncio.wait((pumping,), timeout=DRAIN_SECONDS)
    finally:
        backstop.cancel()
        pumping.cancel()
        leash.cut()
    return _ending(report)


@functools.cache
def _compiled() -> int:
    """The supervisor as this worker knows it, open as long as the worker lives: to compile it takes a third of the time
    in which it starts."""
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(marshal.dumps(compile(SUPERVISOR.read_bytes(), str(SUPERVISOR), "exec", optimize=2)))
        return os.dup(file.fileno())


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def _pump(descriptor: int, output: Sink, leash: _Leash) -> None:
    async with _reading(descriptor) as reader:
        while chunk := await reader.read(UNHURRIED_BYTES):
            output.add(chunk)
            if output.full:
                leash.cut()
            if output.total_bytes > UNHURRIED_BYTES:
                await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def _reading(descriptor: int) -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=UNHURRIED_BYTES // 4)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        yield reader
    finally:
        transport.close()


def _ending(report: bytes) -> Ending:
    started, _, rest = report.partition(b"\n")
    ended, _, note = rest.partition(b"\n")
    match ended.split():
        case [b"ended", (b"exited" | b"timeout" | b"cut") as how, status, killed]:
            return Ending(cast(Literal["exited", "timeout", "cut"], how.decode()), int(status), int(killed), note)
        case _:
            # A supervisor that was killed takes its shell along; what the shell had started is ended here.
            match started.split():
                case [b"started", pid]:
                    with contextlib.suppress(OSError):
                        os.killpg(int(pid), signal.SIGKILL)
                case _:
                    pass
            return Ending("lost", 0, 0, b"")


def find_ripgrep() -> str | None:
    """The path of `rg`: the one that was installed with Longhaul, else the first on PATH; None without either."""
    return shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg")
