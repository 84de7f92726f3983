"""Starting a server of the test session on a free port, and ending it with the session."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from longhaul.starter.dev_server.processes import bound_to_parent, kill_group, tail
from tests.limits import SURE_SECONDS


class ServerUnavailable(RuntimeError):
    """A server that tests want cannot be had here; the message says what to install."""


@contextmanager
def running(command: Sequence[str], port: int, log: Path, is_up: Callable[[], bool]) -> Iterator[None]:
    """Run `command` until the block ends. Raises ServerUnavailable with the log's end when it does not come up."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            bound_to_parent(command), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        deadline = time.monotonic() + SURE_SECONDS
        while not (_listens(port) and is_up()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerUnavailable(f"{command[0]!r} did not come up on port {port}:\n{tail(log)}")
            time.sleep(0.05)
        yield
    finally:
        kill_group(process.pid)
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
