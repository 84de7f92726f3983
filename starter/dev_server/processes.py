"""Starting other programs so that none of them is left behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO

from longhaul.starter.dev_server.progress import Progress

TICK_SECONDS = 0.2
KEPT_LINES = 200
"""Of what a command says: enough to see why it failed."""

# PR_SET_PDEATHSIG survives exec, so the program itself is killed when the thread that started it ends.
# The parent may have died before the call took effect: then there is nothing to serve and we leave.
_BOUND_TO_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def worker_command() -> list[str]:
    """Without a folder at the head of Python's path (-P): the one that we happen to stand in would be preferred to what
    is installed, and the worker's own, whose rooms have common names, to modules of the operator's."""
    return [sys.executable, "-P", "-m", "longhaul.worker"]


def bound_to_parent(command: Sequence[str]) -> list[str]:
    """The same command, killed by the kernel when our process dies, by whatever cause (Linux; elsewhere unchanged).

    Start it from a thread that lives as long as the process: the kernel watches that thread, not the process.
    """
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", _BOUND_TO_PARENT, str(os.getpid()), *command]


def run_within(
    seconds: float, command: Sequence[str], settings: Mapping[str, str], progress: Progress | None = None
) -> str:
    """Run a command to its end, or kill it and its children after `seconds`; return the last line it complained with.

    `settings` are added to the environment. `progress` shows how far it is. An empty answer means exit status 0.
    """
    status, complaint = run_watched(seconds, command, settings, progress)
    if status is None:
        return f"not done after {seconds:g} seconds"
    if status == 0:
        return ""
    return complaint[-1] if complaint else f"exit status {status}"


def run_watched(
    seconds: float,
    command: Sequence[str],
    settings: Mapping[str, str],
    progress: Progress | None = None,
    *,
    whole: bool = False,
) -> tuple[int | None, list[str]]:
    """As `run_within`; return the exit status, None after a kill, and the last lines that the command wrote to stderr,
    and with `whole` to stdout too. `progress` hears each of these lines."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if whole else subprocess.DEVNULL,
        stderr=subprocess.STDOUT if whole else subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    deadline, lines, said = time.monotonic() + seconds, Queue[str | None](), deque[str](maxlen=KEPT_LINES)
    reader = Thread(target=_read_into, args=(lines, process.stdout or process.stderr), daemon=True)
    reader.start()
    status = None
    try:
        if _hear(lines, deadline, said, progress):
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(max(0, deadline - time.monotonic()))
    finally:
        kill_group(process.pid)
        process.wait()  # an interrupt leaves the block without it
        # A child in a group of its own may hold the pipe open; it is left to the thread.
        reader.join(1)
        if progress is not None:
            progress.end()
    return status, list(said)


def _read_into(lines: Queue[str | None], pipe: IO[str] | None) -> None:
    with pipe or contextlib.nullcontext(()) as read:
        for line in read:
            lines.put(line.strip())
    lines.put(None)


def _hear(lines: Queue[str | None], deadline: float, said: deque[str], progress: Progress | None) -> bool:
    """Whether the command has closed its outputs before the deadline, as it does at its end."""
    while time.monotonic() < deadline:
        try:
            line = lines.get(timeout=TICK_SECONDS)
        except Empty:
            line = ""
        if line is None:
            return True
        if line:
            said.append(line)
        if progress is not None:
            progress.heard(line)
            progress.tick()
    return False


async def start_in_own_group(
    command: Sequence[str], log: Path, settings: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start a program that a terminal's Ctrl-C does not reach; `settings` are its whole environment.

    Both its outputs are appended to `log`.
    """
    with log.open("ab") as sink:
        return await asyncio.create_subprocess_exec(
            *command,
            env=dict(settings),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )


def kill_group(leader: int) -> None:
    """SIGKILL the process group of a program that was started as a leader; a group that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, for an error message; empty when there is no log."""
    with contextlib.suppress(FileNotFoundError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    return ""
