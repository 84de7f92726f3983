"""Firings of a schedule as the server knows them: what one has come to, and one that is made now."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import cast

from temporalio.api.schedule.v1 import SchedulePatch, TriggerImmediatelyRequest
from temporalio.api.workflowservice.v1 import PatchScheduleRequest
from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleHandle,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.values.scheduled_request import Requested
from longhaul.starter.client.schedule_cards import PastFiring

POLL_SECONDS, TELL_AGAIN_SECONDS = 0.1, 1.0


async def fire_now(client: Client, schedule: ScheduleHandle, within: timedelta) -> PastFiring:
    """What comes of it; "under way" if that is not known in time. Raises RPCError.

    The server forgets a trigger when another change comes in the same moment, so it is told again until it shows the
    firing: the time that goes along is the firing's identity, and two of one second are one.
    """
    due, began, told = datetime.now(UTC).replace(microsecond=0), time.monotonic(), 0
    came = PastFiring(due.isoformat(timespec="seconds"), "under way", why="the server has not begun it yet")
    while (spent := time.monotonic() - began) < within.total_seconds() or not told:
        seen = [one for one in (await schedule.describe()).info.recent_actions if one.scheduled_at == due]
        if seen and (came := await past_firing(client, seen[-1])).state != "under way":
            break
        if not seen and spent >= told * TELL_AGAIN_SECONDS:
            told += 1
            await _tell(client, schedule.id, due)
        await asyncio.sleep(POLL_SECONDS)
    return came


async def _tell(client: Client, schedule_id: str, due: datetime) -> None:
    trigger = TriggerImmediatelyRequest()
    trigger.scheduled_time.FromDatetime(due)
    await client.workflow_service.patch_schedule(
        PatchScheduleRequest(
            namespace=client.namespace,
            schedule_id=schedule_id,
            identity=client.identity,
            patch=SchedulePatch(trigger_immediately=trigger),
        ),
        retry=True,
    )


async def past_firing(client: Client, result: ScheduleActionResult) -> PastFiring:
    at = result.scheduled_at.isoformat(timespec="seconds")
    action = cast(ScheduleActionExecutionStartWorkflow, result.action)  # the SDK knows of no other kind
    handle = client.get_workflow_handle(action.workflow_id, run_id=action.first_execution_run_id, result_type=Requested)
    try:
        if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
            return PastFiring(at, "under way")
        came = await handle.result()
    except WorkflowFailureError as error:
        return PastFiring(at, "failed", why=str(error.cause.__cause__ or error.cause))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return PastFiring(at, "failed", why="the server knows nothing of it any more")
    if came.left_out:
        return PastFiring(at, "left out", why=came.left_out)
    return PastFiring(at, "asked", came.session, came.reply_id)
