"""The pytest plugin of the test kit: a Temporal server for the run, and a worker of its own for each test.

pytest loads this file in every project where the package is installed. It imports nothing of the kit before a fixture
is asked for.
"""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from longhaul.testing import AgentEnvironment

Held = TypeVar("Held")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "longhaul(**settings): settings of the worker of longhaul_env, as longhaul(tools='shop_tools')"
    )


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test of our fixtures that no other plugin runs; a plugin for asyncio takes its own first."""
    ours = any(name.startswith("longhaul_") for name in pyfuncitem.fixturenames)
    if not ours or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


class LoopThread:
    """An event loop in a thread: servers and workers live there while each test has a loop of its own."""

    def __init__(self) -> None:
        from longhaul.starter.worker_host.own_process import new_event_loop  # noqa: PLC0415  see the docstring above

        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="longhaul-testing", daemon=True)
        self._thread.start()

    @contextmanager
    def held(self, context: AbstractAsyncContextManager[Held]) -> Iterator[Held]:
        """Keep it open there, in one task from its beginning to its end."""
        opened, closing = Future[Held](), asyncio.Event()

        async def hold() -> None:
            async with context as value:
                opened.set_result(value)
                await closing.wait()

        holding = asyncio.run_coroutine_threadsafe(hold(), self._loop)
        holding.add_done_callback(lambda _: opened.cancel())  # nothing happens once it has its result
        try:
            yield opened.result()
        except CancelledError:
            holding.result()  # raises why it could not be opened
            raise
        finally:
            self._loop.call_soon_threadsafe(closing.set)
            if not opened.cancelled():
                holding.result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="session")
def longhaul_loop() -> Iterator[LoopThread]:
    """The loop of servers and workers."""
    loop = LoopThread()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def longhaul_server(longhaul_loop: LoopThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Temporal development server of this run, which keeps the machine's time. Override it to test on a
    server that runs already."""
    from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings  # noqa: PLC0415
    from longhaul.starter.dev_server.temporal_cli import find_temporal  # noqa: PLC0415
    from longhaul.workflows.contract import SEARCH_ATTRIBUTES  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("temporal")
    settings = DevServerSettings(temporal=find_temporal(print), directory=folder, search_attributes=SEARCH_ATTRIBUTES)
    with longhaul_loop.held(DevServer(settings)) as server:
        yield server.address


@pytest.fixture(scope="session")
def longhaul_time_server_path() -> str | None:
    """Program of Temporal's time-skipping test server; None: the SDK downloads it. Override it to name another one."""
    return None


@pytest.fixture(scope="session")
def longhaul_time_server(longhaul_loop: LoopThread, longhaul_time_server_path: str | None) -> Iterator[Any]:
    """`temporalio.testing.WorkflowEnvironment` of a test server whose clock moves when a test says so."""
    from longhaul.testing import time_server  # noqa: PLC0415

    with longhaul_loop.held(time_server(longhaul_time_server_path)) as server:
        yield server


@pytest.fixture
def longhaul_env(
    request: pytest.FixtureRequest, longhaul_loop: LoopThread, longhaul_server: str, tmp_path: Path
) -> Iterator["AgentEnvironment"]:
    """An environment on the development server."""
    yield from _environment(request, longhaul_loop, tmp_path, longhaul_server, None)


@pytest.fixture
def longhaul_time_env(
    request: pytest.FixtureRequest, longhaul_loop: LoopThread, longhaul_time_server: Any, tmp_path: Path
) -> Iterator["AgentEnvironment"]:
    """An environment on the test server: `move_time` works there, and it has no inbox and no list of sessions."""
    address = longhaul_time_server.client.service_client.config.target_host
    yield from _environment(request, longhaul_loop, tmp_path, address, longhaul_time_server)


def _environment(
    request: pytest.FixtureRequest, loop: LoopThread, folder: Path, address: str, time_server: Any
) -> Iterator["AgentEnvironment"]:
    from longhaul.testing import hosted, settings_for  # noqa: PLC0415

    given: dict[str, Any] = {}
    for mark in reversed([*request.node.iter_markers("longhaul")]):  # the nearest to the test counts
        given |= mark.kwargs
    with loop.held(hosted(address, settings_for(folder, **given), time_server)) as environment:
        yield environment
