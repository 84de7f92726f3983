"""A worker or a server that was forked from a process that has read all of it already. See `tests.e2e.warm_cli`."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.e2e.warm_cli import warm


class WarmProcess:
    """As much of `asyncio.subprocess.Process` as tests need."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, ending: "asyncio.Task[int]") -> None:
        self.pid = pid
        self.stdout = stdout
        self._ending = ending

    @classmethod
    async def program(cls, words: Sequence[str], environment: Mapping[str, str], folder: Path, log: int) -> Self:
        """A module with its arguments, as `python -m` runs it; `log` is where its stderr goes."""
        return await cls._start({"program": [*words]}, environment, folder, log)

    @classmethod
    async def command(cls, words: Sequence[str], environment: Mapping[str, str], folder: Path, log: int) -> Self:
        """A command of `longhaul` that goes on until somebody ends it."""
        return await cls._start({"arguments": [*words], "lasting": True}, environment, folder, log)

    @classmethod
    async def _start(cls, what: Mapping[str, Any], environment: Mapping[str, str], folder: Path, log: int) -> Self:
        read, write = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        request = {**what, "environment": {**environment}, "folder": str(folder)}
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

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

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
