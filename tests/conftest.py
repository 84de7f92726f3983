"""The servers and programs that tests run against: one of each a session, started on first use.

A test that needs one is marked `server`, `redis`, `sql` or `aimock`. What cannot be had here is skipped, loudly, and
fails where CI=true. All tests and async fixtures share one event loop (pyproject.toml), so a client may be shared too.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.activities.process.threads import NotingPool
from longhaul.starter.dev_server.dev_server import DYNAMIC_CONFIG, DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import Say, TemporalCliMissing, find_temporal
from longhaul.starter.worker_host.own_process import collect_rarely, new_event_loop
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.limits import SURE_SECONDS, limit
from tests.servers.aimock import Aimock, aimock_server, find_aimock
from tests.servers.bubblewrap import find_working_bubblewrap
from tests.servers.compose import find_compose_loader
from tests.servers.local import ServerUnavailable
from tests.servers.mariadb_server import find_mariadb, mariadb_server
from tests.servers.mcp_packages import find_mcp_packages
from tests.servers.postgres_server import find_postgres, postgres_server
from tests.servers.redis_server import find_redis, redis_server
from tests.servers.time_server import find_time_server
from tests.servers.vocabularies import find_vocabularies
from tests.suite.order import slowest_first
from tests.suite.skips import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]

pytest_plugins = ["tests.suite.reports", "tests.suite.hangs"]

Found = TypeVar("Found")

missing: dict[str, str] = {}


# A worker's loop: most of what is tested runs on it. Commands of the CLI, tested as processes, do not. As a policy,
# which Python 3.14 gives up: pytest-asyncio's own way parametrizes every async test, and sets up shared fixtures twice.
if sys.version_info < (3, 14):

    class WorkerLoopPolicy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return new_event_loop()

    asyncio.set_event_loop_policy(WorkerLoopPolicy())


def found(name: str, find: Callable[[Say], Found]) -> Found:
    """What `find` finds; skips the test when there is nothing, or fails it where CI=true."""
    try:
        return find(print)
    except (TemporalCliMissing, ServerUnavailable) as reason:
        missing[name] = str(reason)
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is needed: {reason}", pytrace=False)
        pytest.skip(f"{name} is missing: {reason}")


def pytest_sessionstart() -> None:
    # What is read and collected stays until the end: to look through it again and again costs more than to read it.
    gc.disable()
    # Settings of whoever runs the tests are none of theirs: neither their own file, nor one in this folder.
    os.environ["XDG_CONFIG_HOME"] = str(Path(__file__).parent / "no-settings")
    os.environ["LONGHAUL_TRUST"] = "0"
    # Temporal's servers look for garbage a third as often: each has some hundred megabytes more for it.
    os.environ.setdefault("GOGC", "300")
    if problem := bwrap_problem():
        # Sessions would ask for each command that only reads. Tests of the sandbox itself say that they need it.
        os.environ.setdefault("LONGHAUL_SANDBOX", "off")
        missing["bubblewrap"] = problem
    # A shell starts what runs in its background deaf to SIGINT, and children inherit that: some here are to hear it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    collect_rarely()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, reason in missing.items():
        terminalreporter.section(f"NOT TESTED for want of {name}", sep="!", red=True, bold=True)
        terminalreporter.write_line(reason)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        limit(item, float(config.getini("timeout")))
        if "longhaul_server" in getattr(item, "fixturenames", ()):
            item.add_marker("server")  # the examples' tests, which are for readers, do not say so
    if hasattr(config, "workerinput"):  # one of several processes
        slowest_first(items)


@pytest.fixture(scope="session")
def temporal_cli() -> Path:
    """The `temporal` command."""
    return found("temporal", find_temporal)


@pytest.fixture(scope="session")
async def temporal_server(temporal_cli: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DevServer]:
    """A running server with the sessions' search attributes; `.address` is what clients connect to.

    Tests share it: give workflows ids and task queues of their own.
    """
    settings = DevServerSettings(
        temporal=temporal_cli,
        directory=tmp_path_factory.mktemp("temporal"),
        search_attributes=SEARCH_ATTRIBUTES,
        # It reports its metrics each second, and each test has a queue of its own: a thousand would be told apart.
        dynamic_config={**DYNAMIC_CONFIG, "metrics.breakdownByTaskQueue": False},
        start_seconds=SURE_SECONDS,
    )
    async with DevServer(settings) as server:
        yield server


@pytest.fixture(scope="session")
def time_server() -> Path:
    """The program of Temporal's test server, whose clock tests move."""
    return found("time-skipping test server", find_time_server)


@pytest.fixture(scope="session")
def longhaul_time_server_path(time_server: Path) -> str:
    """What the plugin of the test kit asks for."""
    return str(time_server)


@pytest.fixture(scope="session")
def longhaul_server(temporal_server: DevServer) -> str:
    """The same."""
    return temporal_server.address


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty Redis. Tests share it: use keys of your own."""
    with redis_server(found("redis", find_redis), tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database, shared by all tests."""
    with postgres_server(found("postgres", find_postgres)) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """An empty MariaDB database, shared by all tests."""
    with mariadb_server(found("mariadb", find_mariadb)) as url:
        yield url


OWN_THREADS = 2


@pytest.fixture
async def own_threads() -> AsyncIterator[int]:
    """How few threads the loop has of its own until the test is over. It is the loop of all tests: with so few left to
    them, one that waits for another in threads waits for ever."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(NotingPool(OWN_THREADS))
    yield OWN_THREADS
    loop.set_default_executor(ThreadPoolExecutor())


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Commands can be confined on this machine."""
    found("bubblewrap", find_working_bubblewrap)


@pytest.fixture(scope="session")
def compose_loader() -> Path:
    """The program that reads compose files."""
    return found("compose loader", find_compose_loader)


@pytest.fixture(scope="session")
def vocabularies() -> Path:
    """The package that has tiktoken's vocabularies."""
    return found("vocabularies", find_vocabularies)


@pytest.fixture(scope="session")
def mcp_packages() -> Path:
    """The folder of MCP servers from npm."""
    return found("MCP servers", find_mcp_packages)


@pytest.fixture(scope="session")
def aimock_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    with aimock_server(found("aimock", find_aimock), tmp_path_factory.mktemp("aimock")) as mock:
        yield mock


@pytest.fixture
def aimock(aimock_running: Aimock) -> Aimock:
    """The provider mock, with nothing left in it from the test before."""
    aimock_running.reset()
    return aimock_running
