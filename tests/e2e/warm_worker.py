"""A worker process that was forked from one that has read all of it already. See `tests.e2e.warm_cli`."""

import asyncio
import atexit
import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Self

from tests.e2e.warm_cli import WarmCli


@cache
def warm() -> WarmCli:
    """One for all tests of this process."""
    started = WarmCli.start(os.environ, "worker")
    atexit.register(started.close)
    return started


class WarmWorker:
    """As much of `asyncio.subprocess.Process` as tests need."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, ending: "asyncio.Task[int]") -> None:
        self.pid = pid
        self.stdout = stdout
        self._ending = ending

    @classmethod
    async def start(cls, program: Sequence[str], environment: Mapping[str, str], folder: Path, log: int) -> Self:
        """The process; `log` is where its stderr goes."""
        read, write = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        request = {"program": [*program], "environment": {**environment}, "folder": str(folder)}
        try:
            answer = warm().started(request, [nothing, write, log])
        finally:
            os.close(write)
            os.close(nothing)
        stdout, answering = await _reading(read), await _reading(answer)
        pid = int(await answering.readline())

        async def ended() -> int:
            return int(await answering.readline())

        return cls(pid, stdout, asyncio.create_task(ended()))

    @property
    def returncode(self) -> int | None:
        return self._ending.result() if self._ending.done() else None

    def send_signal(self, number: int) -> None:
        # It may have ended, and its exit status be on its way to us.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)


class _ToTheEnd(asyncio.StreamReaderProtocol):
    """Closes what it reads at its end, which comes with that of the process."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False


async def _reading(end: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: _ToTheEnd(reader), os.fdopen(end, "rb", buffering=0))
    return reader
