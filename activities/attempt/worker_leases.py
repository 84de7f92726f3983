"""A worker that dies takes its calls along: another worker tells the server at once, which gives them out again.

Without it the server notices a death by the heartbeats that stay away. Those are billed, so they are seldom
(`workflows.activity_options.HEARTBEAT`); what workers note in `stores.leases` costs the server nothing.

A call is failed by its task token, which names one attempt: of an attempt that has ended, or that the server has given
up, the server says that it knows nothing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt.heartbeat import poke_all
from longhaul.activities.contract import WORKER_LOST
from longhaul.stores.leases import DirectoryLeases, LeasedCall, Leases, LeasesUnavailable
from longhaul.stores.streams.streams import key_of

log = logging.getLogger(__name__)

RELEASE_SECONDS = 2.0
"""After the end of a call: its result may still be on its way to the server, and is lost with the worker."""
AT_ONCE = 8
"""Calls that are failed at a time."""
TRY_SECONDS = 20.0
"""To reach the server. Later the heartbeats have told it."""
AGAIN_SECONDS = 0.5


def open_leases(redis_url: str, *, data_dir: Path, key: str) -> list[Leases]:
    """In the data directory, and in Redis too where workers of other hosts look. Raises BadStoreSetting."""
    leases: list[Leases] = [DirectoryLeases(data_dir, key)]
    if redis_url:
        from longhaul.stores.redis_leases import RedisLeases  # noqa: PLC0415  only who uses Redis loads it

        leases.append(RedisLeases(redis_url, key))
    return leases


class WorkerLeases(Interceptor):
    """Of one worker, and those that poll the same task queue."""

    def __init__(
        self,
        client: Client,
        redis_url: str,
        *,
        data_dir: Path,
        task_queue: str,
        theirs: Collection[Callable[..., Any]] = (),
    ) -> None:
        """`theirs`: activities of the user's on this task queue. How these end is not for Longhaul to say."""
        self._client, self._theirs = client, theirs
        self._leases = open_leases(redis_url, data_dir=data_dir, key=key_of(client.namespace, task_queue))

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Leasing(next, self._leases, self._theirs)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look after the other workers while the block runs."""
        looking = [asyncio.create_task(self._watch(leases)) for leases in self._leases]
        try:
            yield
        finally:
            for task in looking:
                task.cancel()
            await asyncio.wait(looking)
            for leases in self._leases:
                await leases.close()

    async def _watch(self, leases: Leases) -> None:
        """Until it is cancelled, whatever the store does: a worker that gave up would notice no more deaths at once."""
        told = ""
        while True:
            try:
                if not await leases.look(self._fail):
                    log.warning(
                        "another worker took this one as dead; its calls ask the server whether they are wanted"
                    )
                    poke_all()
                told = ""
            except LeasesUnavailable as error:
                if told != (told := str(error)):
                    log.warning("deaths of other workers are noticed by their heartbeats alone: %s", error)
            except Exception:
                log.exception("the leases of other workers could not be read; trying again")
            await asyncio.sleep(leases.pause)

    async def _fail(self, calls: list[LeasedCall]) -> None:
        if calls:
            log.warning("a worker died; its calls are given up, so that others go on with them: %d", len(calls))
        some = asyncio.Semaphore(AT_ONCE)

        async def fail(call: LeasedCall) -> None:
            async with some:
                await self._fail_one(call)

        await asyncio.gather(*map(fail, calls))

    async def _fail_one(self, call: LeasedCall) -> None:
        handle = self._client.get_async_activity_handle(task_token=call.token)
        until = asyncio.get_running_loop().time() + TRY_SECONDS
        while asyncio.get_running_loop().time() < until:
            try:
                await handle.fail(ApplicationError("the worker that ran it was lost", type=WORKER_LOST))
            except RPCError as error:
                if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                    return  # it has ended, or this is no token of this server
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return


class _Leasing(ActivityInboundInterceptor):
    def __init__(
        self,
        next: ActivityInboundInterceptor,  # noqa: A002  the SDK's name
        leases: list[Leases],
        theirs: Collection[Callable[..., Any]],
    ) -> None:
        super().__init__(next)
        self._leases, self._theirs = leases, theirs

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        info = activity.info()
        if info.is_local or info.heartbeat_timeout is None or input.fn in self._theirs:
            return await super().execute_activity(input)
        held = list[LeasedCall]()

        def hold(*, runs_once: bool) -> None:
            held.append(LeasedCall(info.task_token, runs_once))
            for leases in self._leases:
                leases.hold(held[0])

        if "." in info.activity_type:
            hold(runs_once=False)
        else:
            _holding.set(hold)
        try:
            return await super().execute_activity(input)
        finally:
            asyncio.get_running_loop().call_later(RELEASE_SECONDS, self._release, held)

    def _release(self, held: list[LeasedCall]) -> None:
        for call in held:
            for leases in self._leases:
                leases.release(call)


class _Hold(Protocol):
    def __call__(self, *, runs_once: bool) -> None: ...


_holding: ContextVar[_Hold] = ContextVar("longhaul_holding")


def note_lease(*, runs_once: bool) -> None:
    """Of a tool's call, as soon as its effect is known: until then a death is noticed by its heartbeats alone."""
    if hold := _holding.get(None):
        hold(runs_once=runs_once)
