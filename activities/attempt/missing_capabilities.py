"""A step that no worker can take is told to its session within seconds, while others are still asked."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.worker_departure import call_id_of
from longhaul.activities.contract import NOT_HERE
from longhaul.agent.letters.bodies import WORKER_LACKS

log = logging.getLogger(__name__)

TOLD_AT = (8, 20)
"""Attempts: a good second after the first, by when each worker was likely asked; and once more in case that the
first word was lost. A session that heard it before records nothing."""
TELL_SECONDS = 3
LONGEST_WHY = 2_000


class Lacking(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Telling(next)


class _Telling(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        try:
            return await super().execute_activity(input)
        except ApplicationError as error:
            if error.type == NOT_HERE and activity.info().attempt in TOLD_AT:
                await _tell_session(input, error.message)
            raise


async def _tell_session(input: ExecuteActivityInput, why: str) -> None:  # noqa: A002  the SDK's name
    worker, doing = activity.client().identity, activity.info().activity_type
    lacks = {
        "worker": worker,
        "doing": doing,
        "call_id": call_id_of(input.args) if "." not in doing else "",
        "why": f"{why[:LONGEST_WHY]} (worker {worker})".encode("utf-8", "replace").decode(),
    }
    try:
        await own_session.handle().signal(WORKER_LACKS, lacks, rpc_timeout=timedelta(seconds=TELL_SECONDS))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  nothing may take the place of NotHere
        log.warning("session %s could not be told what is missing: %s", own_session.key(), error)
