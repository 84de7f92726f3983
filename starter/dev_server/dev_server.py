"""A Temporal development server of our own: started, awaited, killed, started again on the same database.

Its settings keep it from throttling itself.
"""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Unavailable
from longhaul.starter.dev_server.processes import bound_to_parent, kill_group, start_in_own_group, tail
from longhaul.starter.dev_server.search_attributes import compare
from longhaul.starter.dev_server.web_ui import WebUi

log = logging.getLogger(__name__)

DYNAMIC_CONFIG: Mapping[str, int | bool | str] = MappingProxyType(
    {
        "frontend.rps": 100_000,
        "frontend.namespaceRPS": 100_000,
        "frontend.namespaceRPS.visibility": 10_000,
        "frontend.namespaceCount": 100_000,
        "matching.rps": 100_000,
        "history.rps": 100_000,
        # The two poll rates are what costs a stock server its 40 to 50 ms a task.
        "history.transferProcessorMaxPollRPS": 100_000,
        "history.timerProcessorMaxPollRPS": 100_000,
        # Search attributes: a session that begins to wait shows up in the inbox at once.
        "history.visibilityProcessorMaxPollRPS": 100_000,
        # Stock 1 s: every timer and retry below a second would last a whole one.
        "history.timerProcessorMaxTimeShift": "10ms",
        # Stock 1 s: a session that continues as new, or restarts under its id, would wait for it.
        "history.workflowIdReuseMinimalInterval": "0s",
        # Stock 30 s: the history of a session that has just ended is not deleted before.
        "history.transferProcessorUpdateAckInterval": "1s",
        "history.visibilityProcessorUpdateAckInterval": "1s",
        "matching.numTaskqueueReadPartitions": 1,
        "matching.numTaskqueueWritePartitions": 1,
        # Lets the worker that completes a workflow task begin the activity without another poll.
        "system.enableActivityEagerExecution": True,
        # Stock 10. Each update above it is refused, and with it the server throws away what it knows of the others of
        # the session: their callers and the worker have to begin again.
        "history.maxInFlightUpdates": 0,
    }
)

SQLITE_PRAGMAS: Mapping[str, str] = MappingProxyType(
    # synchronous=1 in WAL mode loses nothing to `kill -9`; only a power cut may take the last moments.
    {"journal_mode": "WAL", "synchronous": "1"}
)


HOST = "127.0.0.1"
"""Anyone who reaches a development server owns it, so it is never bound to an address of the network."""
NOBODYS_HOST = "no host"
"""The only name under which the server's HTTP API answers. That API can't be turned off, and asks for nothing: any web
page could signal all sessions by it. With a space in it, no request can bear the name."""


WEDGED = "interrupted (9)"
"""What SQLite says to every request once a client has given up in the middle of one: the server's driver leaves that
statement open, and SQLite interrupts all that come while one is (modernc.org/sqlite 1.29 and newer). It never ends by
itself. A busy machine, where clients run out of time, gets there within seconds."""
WEDGED_LOOK_SECONDS = 1.0


class DevServerFailed(Unavailable, RuntimeError):
    """The server could not be started; the message says why and ends with the last lines of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevServerSettings:
    temporal: Path
    """The command, as `find_temporal` returns it."""
    directory: Path
    """Holds the database and the log; made when missing."""
    port: int = 0
    """Of the RPC service; 0 = a free one, kept over restarts."""
    ui_port: int | None = None
    """Of the Web UI; 0 = a free one, None = no UI."""
    search_attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name to type as the CLI spells it (Keyword, KeywordList, Datetime, Int, Double, Bool, Text)."""
    dynamic_config: Mapping[str, int | bool | str] = field(default_factory=lambda: DYNAMIC_CONFIG)
    die_with_parent: bool = True
    """Also when we are killed outright; False leaves the server running then."""
    start_seconds: float = 30.0
    stop_seconds: float = 10.0
    """Granted to a server that is asked to stop, before it is killed."""


class DevServer:
    """One server process at a time. `async with DevServer(settings) as server:` starts and stops it.

    All its state is in the directory's database: after `kill()`, or in a later process, `start()` goes on from there.
    """

    def __init__(self, settings: DevServerSettings) -> None:
        self.settings = settings
        self.port = settings.port or _free_port()
        self.ui_port = settings.ui_port if settings.ui_port != 0 else _free_port(self.port)
        self.http_port = _free_port(self.port, self.ui_port)
        """Of the HTTP API, which is closed to everybody."""
        # One of the loopback's 16 million: a web page that has a name lead there would have to guess it. Systems
        # other than Linux have 127.0.0.1 alone.
        if sys.platform != "linux":
            own_address = HOST
        else:
            own_address = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
        self.hidden_ui = (own_address, _free_port(self.port, self.ui_port, self.http_port))
        """Where the Web UI itself listens, behind the port that checks who asks."""
        self._web_ui: WebUi | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._alone: int | None = None
        """Held while our server writes to the database."""
        self._watch: asyncio.Task[None] | None = None
        self._replacing = asyncio.Lock()
        """Held while a wedged process is replaced by another one."""

    @property
    def address(self) -> str:
        """`host:port`, as TEMPORAL_ADDRESS wants it."""
        return f"{HOST}:{self.port}"

    @property
    def ui_url(self) -> str | None:
        return f"http://{HOST}:{self.ui_port}" if self.ui_port else None

    @property
    def database(self) -> Path:
        return self.settings.directory / "temporal.db"

    @property
    def log(self) -> Path:
        return self.settings.directory / "temporal.log"

    @property
    def pid(self) -> int | None:
        """None while no server runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Return when the server answers and knows the search attributes. Raises DevServerFailed.

        From then on a server whose database is wedged is killed and started again; clients see it as unavailable for
        about two seconds.
        """
        if self.pid is not None:
            return
        # Conversations lie in it: what we make is its owner's alone.
        self.settings.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._alone is None:
            self._alone = _alone_in(self.settings.directory)
        try:
            for port in filter(None, (self.port, self.ui_port)):
                _refuse_taken(port)
            if self.ui_port:
                self._web_ui = WebUi(self.hidden_ui)
                await self._web_ui.start(HOST, self.ui_port)
            await self._start_process()
        except BaseException:
            self._let_go()
            raise
        self._watch = asyncio.create_task(self._replace_when_wedged(), name="watch of the development server")

    async def _start_process(self) -> None:
        # What a program needs to run at all, and no key: commands of an agent can read what is in there. TEMPORAL_*
        # would be read as flags, too, and names the server that clients should use.
        self._process = await start_in_own_group(
            self._command(), self.log, {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
        )
        try:
            async with asyncio.timeout(self.settings.start_seconds):
                await self._answers(self._process)
                await self._refuses_http()
            # Also where the folder was there before, and stands open to others.
            for path in (self.log, *self.settings.directory.glob(f"{self.database.name}*")):
                with contextlib.suppress(OSError):
                    path.chmod(0o600)
        except TimeoutError as error:
            await self._kill_process()
            seconds = self.settings.start_seconds
            raise DevServerFailed(self._complaint(f"did not answer within {seconds:g} seconds")) from error
        except BaseException:
            await self._kill_process()
            raise

    async def _replace_when_wedged(self) -> None:
        client = await Client.connect(self.address, lazy=True, runtime=_silent())
        refusals = 0
        while True:
            await asyncio.sleep(WEDGED_LOOK_SECONDS)
            try:
                await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
                refusals = 0
            except RPCError as error:
                refusals = refusals + 1 if WEDGED in error.message else 0
            if refusals < 2:  # one may be the request of a client that has just given up
                continue
            log.warning(
                "the database of the Temporal server at %s refuses all requests; starting it again", self.address
            )
            async with self._replacing:
                await self._kill_process()
                await self._start_process()
            refusals = 0

    async def stop(self) -> None:
        """Ask the server to stop and wait for it; kill it when it takes too long. No server is no error."""
        await self._end_watch()
        if self._process is not None and self.pid is not None:
            self._process.terminate()
            try:
                async with asyncio.timeout(self.settings.stop_seconds):
                    await self._process.wait()
            except TimeoutError:
                await self._kill_process()
        self._let_go()

    async def kill(self) -> None:
        """SIGKILL, as a crash would: what the database holds is what was committed."""
        await self._end_watch()
        await self._kill_process()
        self._let_go()

    async def _kill_process(self) -> None:
        if self._process is not None and self.pid is not None:
            kill_group(self._process.pid)
            await self._process.wait()

    async def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None

    def _let_go(self) -> None:
        if self._web_ui is not None:
            self._web_ui.stop()
            self._web_ui = None
        if self._alone is not None:
            os.close(self._alone)
            self._alone = None

    async def wait(self) -> int:
        """Return the exit status when the server ends by itself or by a signal (then negative)."""
        if self._process is None:
            raise RuntimeError("wait() before start(): there is no server to wait for")
        while True:
            process = self._process
            status = await process.wait()
            async with self._replacing:
                if process is self._process:
                    return status

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _answers(self, process: asyncio.subprocess.Process) -> None:
        while not await self._serves():
            if process.returncode is not None:
                raise DevServerFailed(self._complaint(f"ended with exit status {process.returncode}"))
            await asyncio.sleep(0.05)

    async def _serves(self) -> bool:
        """Whether the namespace is there with all its search attributes, which are registered last. Raises
        DevServerFailed for one that the database has with another type: the server logs it, and serves without it."""
        try:
            client = await Client.connect(self.address, runtime=_silent())
            compared = await compare(client, self.settings.search_attributes)
        except (RPCError, RuntimeError):  # RuntimeError is how the SDK reports a connection that was refused
            return False
        if compared.others:
            wrong = "; ".join(map(str, compared.others))
            raise DevServerFailed(
                f"in the database {str(self.database)!r} the search attribute {wrong}, so sessions could not "
                "start; a type can't be changed: move that folder away, or name another one with --data-dir"
            )
        return compared.is_complete

    async def _refuses_http(self) -> None:
        """A server that does not know how to close its HTTP API must not run. Raises DevServerFailed."""
        reader, writer = await asyncio.open_connection(HOST, self.http_port)
        writer.write(b"GET /api/v1/namespaces HTTP/1.0\r\nHost: localhost\r\n\r\n")
        status = await reader.readline()
        writer.close()
        if status.split()[1:2] != [b"403"]:
            raise DevServerFailed(
                f"{str(self.settings.temporal)!r} leaves its HTTP API open, by which any web page could decide about "
                f"calls (it answered {status.decode(errors='replace').strip()!r}); install a newer Temporal CLI"
            )

    def _command(self) -> list[str]:
        command = [str(self.settings.temporal), *_arguments(self)]
        return bound_to_parent(command) if self.settings.die_with_parent else command

    def _complaint(self, what: str) -> str:
        return f"the Temporal server at {self.address} {what}; the end of its log {str(self.log)!r}:\n{tail(self.log)}"


def _arguments(server: DevServer) -> Iterator[str]:
    yield from ("server", "start-dev", "--log-level", "warn", "--ip", HOST, "--port", str(server.port))
    yield from ("--http-port", str(server.http_port))
    yield from ("--dynamic-config-value", f"frontend.httpAllowedHosts={json.dumps([NOBODYS_HOST])}")
    yield from ("--dynamic-config-value", "system.enableNexus=false")  # it answers by HTTP under any name
    yield from ("--db-filename", str(server.database))
    address, port = server.hidden_ui
    yield from ("--ui-ip", address, "--ui-port", str(port)) if server.ui_port else ("--headless",)
    for pragma, setting in SQLITE_PRAGMAS.items():
        yield from ("--sqlite-pragma", f"{pragma}={setting}")
    for key, value in server.settings.dynamic_config.items():
        # The server reads JSON, so a string needs quotes of its own: json.dumps adds them.
        yield from ("--dynamic-config-value", f"{key}={json.dumps(value)}")
    for name, kind in server.settings.search_attributes.items():
        yield from ("--search-attribute", f"{name}={kind}")


@cache
def _silent() -> Runtime:
    """Of itself the SDK writes to stdout what it warns of, as of each try while the server starts."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


_HANDED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "GOGC")


def _free_port(*others: int | None) -> int:
    """None of `others`. Below the range from which the system serves outgoing connections: while a killed server is
    down, one of those could take the port that its clients wait for."""
    for _ in range(100):
        port = 15_000 + secrets.randbelow(15_000)
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            if port not in others:
                return port
    raise DevServerFailed("no free port was found between 15000 and 30000 on this machine")


def _alone_in(directory: Path) -> int:
    """A lock that ends with this process, whatever ends it: two servers on one database write over each other. Raises
    DevServerFailed."""
    lock = os.open(directory / "temporal.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise DevServerFailed(
            f"another `longhaul dev` has its database in {str(directory)!r}; use that one, or name another folder with "
            "--data-dir"
        ) from error
    return lock


def _refuse_taken(port: int) -> None:
    """Without this a stranger on the port would answer in place of our server and be taken for it."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise DevServerFailed(f"port {port} of {HOST} cannot be used ({error.strerror}); name another one") from error
