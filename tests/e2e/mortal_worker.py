"""A worker that kills itself at an exact moment: `python -m tests.e2e.mortal_worker MOMENT [ACTIVITY NUMBER]`.

`before`: a session has decided to go on in a fresh history, and nobody has heard of it. `after`: the server has started
that history, and its first task has done nothing yet. `asking`: a session asks for its NUMBERth activity of this type,
and the task that does so never ends. `within`: such an activity has done its work, and nobody has heard of it.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from typing import Any, NoReturn

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from longhaul.activities.models.profiles import read_key_places
from longhaul.activities.models.providers import Providers
from longhaul.starter.connection.connect import connect
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.own_process import new_event_loop
from longhaul.worker import READY, build

MOMENT, *WHICH = sys.argv[1:] or [""]
_seen = Counter[str]()


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived SIGKILL")


def die_at(moment: str, activity_type: str) -> None:
    """If this is the one."""
    if moment == MOMENT and activity_type == WHICH[0]:
        _seen[activity_type] += 1
        if _seen[activity_type] == int(WHICH[1]):
            die()


class Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(Outbound(outbound))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  the SDK's name
        first_task = workflow.info().continued_run_id is not None and not workflow.unsafe.is_replaying()
        if MOMENT == "after" and first_task:
            die()
        return await super().execute_workflow(input)


class Outbound(WorkflowOutboundInterceptor):
    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002  the SDK's name
        if MOMENT == "before":
            die()
        super().continue_as_new(input)

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002  the SDK's name
        die_at("asking", input.activity)
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002  the SDK's
        die_at("asking", input.activity)
        return super().start_local_activity(input)


class Acting(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        done = await super().execute_activity(input)
        die_at("within", activity.info().activity_type)
        return done


class Mortal(ClientInterceptor, Interceptor):
    """Of a client, and so of each worker that it serves."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002
        del input
        return Inbound

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return Acting(next)


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
