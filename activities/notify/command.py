"""Tells by running a program of the operator's: JSON on its stdin, and nothing of the worker's keys around it."""

import asyncio
import contextlib
import os
import signal
import tempfile
from typing import IO

from longhaul.activities.notify.channel import NoticeMessage, NotTold
from longhaul.activities.shell.environment_variables import scrubbed
from longhaul.agent.plain.text import visible
from longhaul.agent.plain.values import digest_of

SECONDS = 5.0
TAIL_CHARS = 200


class Command:
    """Exit status 0 means that it is told."""

    def __init__(self, argv: list[str], seconds: float = SECONDS) -> None:
        self._argv, self._seconds = argv, seconds
        self.name = f"command:{digest_of(argv)[:8]}"

    async def tell(self, message: NoticeMessage) -> None:
        with await asyncio.to_thread(_as_file, message.model_dump_json().encode() + b"\n") as told:
            process = await self._started(told)
        try:
            async with asyncio.timeout(self._seconds):
                said, _ = await process.communicate()
        except TimeoutError:
            raise NotTold(f"the command {self._argv[0]!r} did not end within {self._seconds:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.returncode:
            tail = visible(said.decode("utf-8", "replace").strip()[-TAIL_CHARS:])
            raise NotTold(f"the command {self._argv[0]!r} ended with {process.returncode}: {tail}")

    async def _started(self, told: IO[bytes]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=told,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=scrubbed(os.environ),
                start_new_session=True,
            )
        except OSError as error:
            raise NotTold(f"the command {self._argv[0]!r} can't be started: {error.strerror}") from error


def _as_file(text: bytes) -> IO[bytes]:
    """For a program that may end without reading it: a pipe that breaks is an error of the event loop's own."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  its reader closes it
    file.write(text)
    file.seek(0)
    return file
