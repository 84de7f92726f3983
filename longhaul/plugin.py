"""The plugin of Temporal's SDK by which an application of its own has agents: `plugins=[LonghaulPlugin()]`.

On a client or a worker it hosts the agents' worker in the same process, on a task queue of its own and over the
application's connection. On a worker or a replayer it lets workflow code ask agents (`longhaul.workflow`). It changes
nothing else: the application's workflows stay in their sandbox, with their converter and their interceptors.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from temporalio.client import Client, ClientConfig
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    Interceptor,
    ReplayerConfig,
    Worker,
    WorkerConfig,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from longhaul.activities.worker_output import mask_logs
from longhaul.agent.plain.errors import BadSetup
from longhaul.starter.connection.connect import Naming, let_go, over_connection, settle_before_exit
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.requirements import check_lasting, check_shared
from longhaul.worker import hosted, secrets_of
from longhaul.workflow import PLACE, AgentsPlace
from longhaul.workflows.hubs import AgentHub
from longhaul.workflows.session import AgentSession


class SharedTaskQueue(BadSetup):
    """The application's worker polls the agents' task queue. The sentence says which variable to set."""


class LonghaulPlugin(SimplePlugin):
    """Agents in your Temporal application: a plugin for `Client.connect`, `Worker` and `Replayer`.

    `settings`: settings of the agents' worker; by default the LONGHAUL_… variables. `host`: False if the agents' worker
    runs elsewhere, as `longhaul worker` does. Several workers of one client share one worker of the agents, which ends
    after the last of them. Raises BadVariable. If the agents' worker can't start, raises the errors of `longhaul
    worker`.
    """

    def __init__(self, settings: Settings | None = None, *, host: bool = True) -> None:
        self.settings = settings or Settings()
        self._host = host
        super().__init__(
            "longhaul.LonghaulPlugin", workflow_runner=_with_longhaul, interceptors=[_Placing(self.settings)]
        )

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        settle_before_exit()
        return super().configure_client(config)

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Check the worker's task queue. Raises SharedTaskQueue."""
        queue = config.get("task_queue")
        if self._host and queue == self.settings.task_queue:
            raise SharedTaskQueue(
                f"LONGHAUL_TASK_QUEUE: {queue!r} is the task queue of this application's worker too, and the agents' "
                "worker needs one of its own; set another name there, or give the plugin host=False"
            )
        return super().configure_worker(config)

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Let the replayer replay sessions and hubs too, next to the application's workflows."""
        workflows = [*config.get("workflows", []), AgentSession, AgentHub]
        return super().configure_replayer({**config, "workflows": workflows})

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:  # noqa: A002  the SDK's name
        """Run the application's worker. The agents' worker starts before it and ends after it. If the agents' worker
        fails, the application's worker is shut down, and the error is raised."""
        if not self._host:
            await next(worker)
            return
        async with AsyncExitStack() as opened:
            try:
                agents = await opened.enter_async_context(_worker_host(worker.client, self.settings))
            except BaseException:
                # A worker that never ran would keep whoever shuts it down waiting for ever.
                stopping = asyncio.create_task(worker.shutdown())
                await asyncio.gather(next(worker), stopping, return_exceptions=True)
                raise
            theirs = asyncio.ensure_future(next(worker))
            try:
                await asyncio.wait((theirs, agents), return_when=asyncio.FIRST_COMPLETED)
                if not theirs.done():
                    await worker.shutdown()
                await theirs
            finally:
                if not theirs.done():
                    theirs.cancel()
                    await asyncio.wait((theirs,))
        if agents.done():
            await agents


class _Placing(Interceptor):
    """Tells workflow code where agents are, which it may not read from the environment."""

    def __init__(self, settings: Settings) -> None:
        naming = Naming(settings)
        self._place = AgentsPlace(
            settings.task_queue, settings.search_attributes, naming.is_opaque, naming.workflow_id, naming.indexed
        )

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor] | None:
        input.unsafe_extern_functions[PLACE] = lambda: self._place
        return None


def _with_longhaul(runner: WorkflowRunner | None) -> WorkflowRunner:
    """The sandbox loads nothing of ours again for each workflow: its values are data, and its rules pure functions."""
    if isinstance(runner, SandboxedWorkflowRunner):
        return replace(runner, restrictions=runner.restrictions.with_passthrough_modules("longhaul"))
    return cast(WorkflowRunner, runner)


@dataclass
class _Host:
    """A worker of agents, and how many of the application's workers are there."""

    running: asyncio.Task[None]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    guests: int = 0


_hosts: dict[tuple[int, str, str], _Host] = {}
"""By connection, namespace and task queue: the SDK lets a connection serve one worker of each queue."""


@asynccontextmanager
async def _worker_host(client: Client, settings: Settings) -> AsyncIterator[asyncio.Task[None]]:
    """The task of the worker that polls for agents, of whoever came first; raises what has kept it from starting."""
    place = id(client.service_client), client.namespace, settings.task_queue
    host = _hosts.get(place)
    if host is None or host.running.done():
        ready, stop = asyncio.Event(), asyncio.Event()
        host = _hosts[place] = _Host(asyncio.create_task(_host(client, settings, ready, stop)), stop)
        started = asyncio.create_task(ready.wait())
        await asyncio.wait((started, host.running), return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
    host.guests += 1
    try:
        if host.running.done():
            await host.running
        yield host.running
    finally:
        host.guests -= 1
        if not host.guests:
            if _hosts.get(place) is host:
                del _hosts[place]
            host.stop.set()
            await asyncio.wait((host.running,))


async def _host(client: Client, settings: Settings, ready: asyncio.Event, stop: asyncio.Event) -> None:
    check_shared(settings)
    await check_lasting(settings)
    secrets = secrets_of(settings)
    mask_logs(logging.getLogger(), secrets.masker)
    own = over_connection(client, settings)
    try:
        async with hosted(own, settings, secrets):
            ready.set()
            await stop.wait()
    finally:
        await let_go(own)
