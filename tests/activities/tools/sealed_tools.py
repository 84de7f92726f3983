"""Tools of one's own that try to get out of a sandbox, or past its limits."""

import os
import signal
import socket
import subprocess
from pathlib import Path

from longhaul.activities.attempt.secrets import secret
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.ONCE)
def look_around(outside: str, pid: int, listening: str, port: int) -> str:
    """Try to read a file, another process, a socket and the network; what came of each, in this order."""
    tries = (
        lambda: Path(outside).read_text(),
        lambda: Path(f"/proc/{pid}/environ").read_bytes(),
        lambda: socket.socket(socket.AF_UNIX).connect(listening),
        lambda: socket.create_connection(("127.0.0.1", port), 2),
        lambda: os.kill(pid, signal.SIGTERM),
    )
    found = []
    for attempt in tries:
        try:
            attempt()
            found.append("reached")
        except OSError as error:
            found.append(type(error).__name__)
    return " ".join(found)


@tool(effect=Effect.ONCE)
def run_program(command: str) -> str:
    """Run a program in the workspace, and give it a secret."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}, with {len(secret('KEY'))} letters"


@tool(effect=Effect.ONCE)
def take_memory(megabytes: int) -> int:
    """Fill memory."""
    return len(bytearray(megabytes << 20))


@tool(effect=Effect.ONCE)
def die() -> None:
    """End as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)
