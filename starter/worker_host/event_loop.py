"""A worker's event loop: uvloop, which starts programs as asyncio does.

uvloop forks, and runs Python's own handlers in the child, without the preparation for it in the parent (CPython's
`PyOS_BeforeFork`). Where another thread holds the interpreter's list of threads in that moment, as those of Temporal's
SDK often do, the child waits for it forever, and the parent for the child: no heartbeat, signal or timeout is heard.
"""

import asyncio
import os
import subprocess
import threading
from asyncio.base_subprocess import BaseSubprocessTransport
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvloop


class WorkerLoop(uvloop.Loop):  # its stubs and typeshed's disagree on what a start returns: Any suits both
    """To be given to whoever runs one: `asyncio.Runner(loop_factory=WorkerLoop)`."""

    async def subprocess_exec(self, protocol_factory: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        return await self._start(protocol_factory(), args, shell=False, **kwargs)

    async def subprocess_shell(self, protocol_factory: Callable[[], Any], cmd: bytes | str, **kwargs: Any) -> Any:
        return await self._start(protocol_factory(), cmd, shell=True, **kwargs)  # noqa: S604  as asked

    async def _start(
        self, protocol: asyncio.SubprocessProtocol, *args: Any, **kwargs: Any
    ) -> tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]:
        connected = self.create_future()
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        program = _Program(self, protocol, *args, **{**pipes, "bufsize": 0, "waiter": connected, **kwargs})
        try:
            await connected
        except BaseException:
            program.close()
            raise
        return program, protocol


class _Program(BaseSubprocessTransport):
    """Started by `subprocess`, which runs no Python between fork and exec, and waited for without a thread where the
    kernel offers that (Linux 5.3)."""

    def _start(self, args: Any, *arguments: Any, **kwargs: Any) -> None:
        self._proc = process = subprocess.Popen(args, **kwargs)
        try:
            end = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_in_thread, args=(process,), daemon=True).start()
        else:
            self._loop.add_reader(end, self._take_end, process, end)

    def _take_end(self, process: subprocess.Popen[bytes], end: int) -> None:
        self._loop.remove_reader(end)
        os.close(end)
        self._tell_end(process.wait())

    def _wait_in_thread(self, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        with suppress(RuntimeError):  # the loop is closed by now
            self._loop.call_soon_threadsafe(self._tell_end, status)

    def _tell_end(self, status: int) -> None:
        """To those who wait for it at once: before CPython 3.11.10 they waited for its pipes too, which may be in the
        hands of others."""
        self._process_exited(status)
        for waiter in self._exit_waiters:
            if not waiter.done():
                waiter.set_result(status)
        self._exit_waiters.clear()
