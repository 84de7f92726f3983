"""A process that has read all of the command line, of its servers and of a worker, and forks one that becomes a command
or a program: to read it again takes one to three seconds of the processor, and most tests ask what one does, not how it
starts.

Run as a module, with the number of a socket: each request is a JSON object, three streams, and a pipe for the answer:
the process id, then the exit code. What is forked has an environment and a folder of its own, and ends as `longhaul`
does.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, Self

from tests.limits import SURE_SECONDS

ROOT = Path(__file__).parents[2]
WORKER = "longhaul.worker"
MCP_SERVER = "tests.activities.mcp.server"
BYTECODE = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(sys.prefix) / "bytecode")}
"""A second of processor for each process that is started, where the shell forbids bytecode."""
MOST_BYTES = 1_000_000
"""Of a request: arguments, and an environment."""


class Command:
    """A command that runs at a terminal."""

    def __init__(self, answer: int) -> None:
        self._answer = os.fdopen(answer)
        self.pid = int(self._answer.readline())

    def wait(self) -> int:
        """Its exit code; negative for a signal."""
        with self._answer:
            return int(self._answer.readline())

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # it has ended
            os.kill(self.pid, signal.SIGKILL)


class WarmCli:
    """Commands. Close it at the end."""

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
        (read_in, write_in), (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe(), os.pipe()
        said: dict[int, bytes] = {}

        def listen(end: int) -> None:
            with os.fdopen(end, "rb") as stream:
                said[end] = stream.read()

        listening = [threading.Thread(target=listen, args=(end,)) for end in (read_out, read_err)]
        request = {"arguments": [*arguments], "environment": {**environment}, "folder": str(folder)}
        try:
            command = Command(self.started(request, [read_in, write_out, write_err]))
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
        code = command.wait()
        for one in listening:
            one.join()
        return code, said[read_out].decode(), said[read_err].decode()

    def at_terminal(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, terminal: int
    ) -> Command:
        """Start one whose controlling terminal this is. Whoever started it ends it."""
        request = {"arguments": [*arguments], "environment": {**environment}, "folder": str(folder), "terminal": True}
        return Command(self.started(request, [terminal] * 3))

    def close(self) -> None:
        self._line.close()
        self._process.wait()

    def started(self, request: Mapping[str, Any], streams: list[int]) -> int:
        """Of what was asked for: the end of a pipe on which its process id comes, and in the end its exit code."""
        read, write = os.pipe()
        try:
            socket.send_fds(self._line, [json.dumps(request).encode()], [*streams, write])
        finally:
            os.close(write)
        return read


@cache
def warm() -> WarmCli:
    """One for all tests of this process. What it reads finds no settings of anybody's, and a person's terminal."""
    theirs, machines = ("LONGHAUL_", "TEMPORAL_", "OTEL_"), ("CI", "NO_COLOR")
    ours = {key: value for key, value in os.environ.items() if not key.startswith(theirs) and key not in machines}
    started = WarmCli.start(ours | BYTECODE | {"TERM": "xterm"})
    atexit.register(started.close)
    return started


def read() -> None:
    """Every module that a command, its server or a program may load."""
    for package in ("longhaul.starter.cli", "longhaul.starter.client", "longhaul.starter.serve"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    importlib.import_module(WORKER)
    del sys.modules[WORKER]  # it is to be the main module of each
    # Of the tests' MCP server only what it loads: the server itself sets up the log of its whole process.
    importlib.import_module("mcp.server.mcpserver.resolve")


def become(request: Any, streams: list[int]) -> NoReturn:
    """The command itself, or the worker."""
    if request.get("terminal"):
        os.login_tty(os.dup(streams[0]))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The streams that this process began with know what kind of file they were.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if "program" in request:
        ends_with_its_parent()
        sys.path[:1] = [request["folder"], *os.environ["PYTHONPATH"].split(os.pathsep)]
        sys.argv = request["program"]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        os._exit(0)
    if request.get("lasting"):
        ends_with_its_parent()
    elif not request.get("terminal"):
        signal.alarm(int(SURE_SECONDS))  # whoever waits for it would wait for ever
    sys.argv = ["longhaul", *request["arguments"]]
    from longhaul.starter.cli.main import main  # noqa: PLC0415  read already

    main()


def ends_with_its_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def stay_beside(request: Any, streams: list[int], answer: int) -> NoReturn:
    """Start what was asked for, and answer."""
    ends_with_its_parent()
    command = os.fork()
    if command == 0:
        os.close(answer)
        become(request, streams)
    for stream in streams:
        os.close(stream)  # who reads what the command writes waits until nobody can write any more
    os.write(answer, f"{command}\n".encode())
    _, status = os.waitpid(command, 0)
    os.write(answer, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def serve(line: socket.socket) -> None:
    read()
    gc.freeze()  # a collection would copy each page
    while True:
        body, streams, _, _ = socket.recv_fds(line, MOST_BYTES, 4)
        if not body:
            return
        if os.fork() == 0:
            line.close()
            stay_beside(json.loads(body), list(streams[:3]), streams[3])
        for stream in streams:
            os.close(stream)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as ours:
        serve(ours)
