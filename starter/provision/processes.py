"""Starting other programs so that none of them is left behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def run_within(seconds: float, command: Sequence[str], settings: Mapping[str, str]) -> str:
    """Run a command to its end, or kill it and its children after `seconds`; return the last line it complained with.

    `settings` are added to the environment. An empty answer means exit status 0.
    """
    process = subprocess.Popen(
        command,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            _, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return f"not done after {seconds:g} seconds"
        finally:
            kill_group(process.pid)
            process.wait()  # an interrupt leaves the block without it
    if process.returncode == 0:
        return ""
    lines = complaint.strip().splitlines()
    return lines[-1] if lines else f"exit status {process.returncode}"


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
