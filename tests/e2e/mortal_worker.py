"""A worker that kills itself at an exact moment of a roll-over: `python -m tests.e2e.mortal_worker before|after`.

`before`: the session has decided to go on in a fresh history, and nobody has heard of it. `after`: the server has begun
that history, and its first task has done nothing yet.
"""

import asyncio
import os
import signal
import sys
from typing import Any, NoReturn

from temporalio import workflow
from temporalio.client import Client
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from longhaul.activities.models.key_places import read_key_places
from longhaul.activities.models.providers import Providers
from longhaul.starter.hosting.own_process import new_event_loop
from longhaul.starter.reach.connection import connect
from longhaul.starter.settings import Settings
from longhaul.worker import READY, build

MODE = sys.argv[1] if len(sys.argv) > 1 else ""


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived SIGKILL")


class Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(Outbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  the SDK's name
        first_task = workflow.info().continued_run_id is not None and not workflow.unsafe.is_replaying()
        if MODE == "after" and first_task:
            die()
        return await super().execute_workflow(input)


class Outbound(WorkflowOutboundInterceptor):
    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002  the SDK's name
        if MODE == "before":
            die()
        super().continue_as_new(input)


class Mortal(ClientInterceptor, Interceptor):
    """Of a client, and so of each worker that it serves."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        del input
        return Inbound


async def serve() -> None:
    settings = Settings()
    config = (await connect(settings=settings)).config()
    config["interceptors"] = [Mortal()]
    async with build(Client(**config), settings, Providers(places=read_key_places(settings.model_keys))):
        print(READY, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve())
