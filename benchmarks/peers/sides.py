"""Everybody who takes part: the floor, ours, and each peer on a worker in its own environment."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import TerminatedError

from benchmarks.contenders import Contender, Load, SessionEnded, contenders, worker_process

PROGRAMS: Mapping[str, Mapping[str, str]] = {
    "pydantic_ai": {"pydantic-ai": "Plain", "pydantic-ai rolling": "Rolling"},
    "openai_agents": {"openai-agents": "Plain"},
}
"""Program to its contenders, each with the workflow that it runs."""

FLAGS: dict[str, str] = {"OPENAI_AGENTS_DISABLE_TRACING": "1"}
"""Tracing is off for everybody."""

HOPELESS_ATTEMPTS = 4
"""A task that failed this often, with a model and a tool that cannot fail, will fail for ever."""

LOOK_SECONDS = 2.0

PATIENCE_SECONDS, PATIENCE_SECONDS_A_STEP = 60.0, 1.0
"""Past this a session counts as stuck even if no task of it is seen to fail, as when its worker has died."""


@contextlib.asynccontextmanager
async def sides(address: str, folder: Path, pythons: Mapping[str, Path]) -> AsyncIterator[list[Contender]]:
    """All of them, each polling a queue of its own; `pythons` names the Python of each program."""
    plain = await Client.connect(address)
    async with contextlib.AsyncExitStack() as stack:
        taking_part = await stack.enter_async_context(contenders(address, folder))
        for program, workflows in PROGRAMS.items():
            queue = f"{program}-{uuid.uuid4().hex[:8]}"
            command = [str(pythons[program]), "-m", f"benchmarks.peers.{program}", address, queue]
            worker = await stack.enter_async_context(Serving(command, folder / f"{program}.log"))
            taking_part += [Peer(name, workflow, plain, queue, worker) for name, workflow in workflows.items()]
        yield taking_part


class Serving(contextlib.AbstractAsyncContextManager["Serving"]):
    """A program's worker. One that has lost a session is started again: a session that the server has killed can leave
    a worker behind that takes nothing more, and what comes next must not pay for that."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self.pid = 0
        self._command = command
        self._log = log
        self._environment = {**FLAGS, **environment}
        self._process = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Serving":
        self.pid = await self._process.enter_async_context(worker_process(self._command, self._environment, self._log))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._process.aclose()

    async def start_again(self) -> None:
        await self._process.aclose()
        await self.__aenter__()


class Peer:
    """A framework's agent in its own workflow."""

    def __init__(self, name: str, workflow: str, client: Client, queue: str, worker: Serving) -> None:
        self.name = name
        self._workflow = workflow
        self._client = client
        self._queue = queue
        self._worker = worker

    @property
    def pid(self) -> int:
        return self._worker.pid

    async def recover(self) -> None:
        """After a lost session."""
        await self._worker.start_again()

    async def session(self, load: Load) -> str:
        """Raises SessionEnded when the server kills it, it fails, or no task of it gets through any more: stuck."""
        handle: WorkflowHandle[Any, str] = await self._client.start_workflow(
            self._workflow, args=[load.steps, load.chars], id=f"peer-{uuid.uuid4().hex}", task_queue=self._queue
        )
        result, hopeless = (
            asyncio.create_task(handle.result()),
            asyncio.create_task(_until_hopeless(self._client, handle.id)),
        )
        patience = PATIENCE_SECONDS + PATIENCE_SECONDS_A_STEP * load.steps
        await asyncio.wait((result, hopeless), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        hopeless.cancel()
        if not result.done():
            result.cancel()
            await self._client.get_workflow_handle(handle.id).terminate("its tasks fail for ever")
            raise SessionEnded(handle.id, "stuck", "")
        try:
            await result
        except WorkflowFailureError as failure:
            how = "killed" if isinstance(failure.cause, TerminatedError) else "failed"
            raise SessionEnded(handle.id, how, str(failure.cause)) from failure
        return handle.id


async def _until_hopeless(client: Client, workflow_id: str) -> None:
    """Return once a workflow task or an activity has failed too often to ever get through."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        found = (await client.get_workflow_handle(workflow_id).describe()).raw_description
        attempts = [found.pending_workflow_task.attempt, *(each.attempt for each in found.pending_activities)]
        if max(attempts) >= HOPELESS_ATTEMPTS:
            return
