"""A process that has read all of the command line, and forks one that becomes a command: to read it anew takes a second
of the processor, and most tests ask what a command does, not how it starts.

Run as a module, with the number of a socket: each request is a JSON object and the command's three streams, each answer
the command's exit code. What is forked has an environment and a folder of its own, and ends as `longhaul` does.
"""

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from tests.limits import SURE_SECONDS

ROOT = Path(__file__).parents[2]
MOST_BYTES = 1_000_000
"""Of a request: arguments, and an environment."""


class WarmCli:
    """Commands, one at a time. Close it at the end."""

    def __init__(self, process: subprocess.Popen[bytes], line: socket.socket) -> None:
        self._process = process
        self._line = line

    @classmethod
    def start(cls, environment: Mapping[str, str]) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.warm_cli", str(theirs.fileno())],
                env={**environment},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        return cls(process, ours)

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, stdin: str
    ) -> tuple[int, str, str]:
        """Exit code, and what it wrote to stdout and stderr. A command that does not end is ended by SIGALRM."""
        request = json.dumps(
            {"arguments": [*arguments], "environment": {**environment}, "folder": str(folder)}
        ).encode()
        (read_in, write_in), (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe(), os.pipe()
        said: dict[int, bytes] = {}

        def listen(end: int) -> None:
            with os.fdopen(end, "rb") as stream:
                said[end] = stream.read()

        listening = [threading.Thread(target=listen, args=(end,)) for end in (read_out, read_err)]
        try:
            socket.send_fds(self._line, [request], [read_in, write_out, write_err])
        finally:
            for end in (read_in, write_out, write_err):
                os.close(end)
        for one in listening:
            one.start()
        try:
            with os.fdopen(write_in, "wb") as stream:
                stream.write(stdin.encode())
        except BrokenPipeError:
            pass  # it ended, and read none of it
        code = int(self._line.recv(100))
        for one in listening:
            one.join()
        return code, said[read_out].decode(), said[read_err].decode()

    def close(self) -> None:
        self._line.close()
        self._process.wait()


def read_all() -> None:
    """Every module that a command may load."""
    for package in ("longhaul.starter.cli", "longhaul.starter.client"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)


def become(request: Any, streams: list[int]) -> NoReturn:
    """The command itself."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The streams that this process began with know what kind of file they were.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    signal.alarm(int(SURE_SECONDS))  # whoever waits for it would wait for ever
    sys.argv = ["longhaul", *request["arguments"]]
    from longhaul.starter.cli.main import main  # noqa: PLC0415  read already

    main()


def serve(line: socket.socket) -> None:
    read_all()
    while True:
        body, streams, _, _ = socket.recv_fds(line, MOST_BYTES, 3)
        if not body:
            return
        child = os.fork()
        if child == 0:
            line.close()
            become(json.loads(body), list(streams))
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        serve(ours)
