"""A session whose tasks fail for good, brought back: its run is ended, and it begins again from its last checkpoint."""

import json
from typing import NamedTuple

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.values.conversation.messages import HintBlock, UserMsg
from longhaul.starter.client.reading.queries import QUERY_TIMEOUT, Asking, BlobsUnreachable, NoWorker, Unexplained
from longhaul.starter.client.updates import Sending
from longhaul.starter.client.wire import Refused, as_messages
from longhaul.starter.connection.query_retries import Pauses
from longhaul.workflows.contract import BLOBS_UNREACHABLE, CHECKPOINT, Status

RESTORE_SECONDS = 120.0
_ENDS = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: ("activity_task_completed_event_attributes", "ended"),
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: ("activity_task_failed_event_attributes", "failed"),
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: ("activity_task_timed_out_event_attributes", "was lost"),
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: ("activity_task_canceled_event_attributes", "was cancelled"),
}


class Ran(NamedTuple):
    """A tool call of the ended run that the new incarnation may not know."""

    tool: str
    summary: str
    how: str
    """`ended`, `failed`, `was lost`, `was cancelled`, or `may still run`."""

    def __str__(self) -> str:
        return f"{self.tool} ({self.summary}) {self.how}" if self.summary else f"{self.tool} {self.how}"


class Rescued(NamedTuple):
    quarantine: str
    """Why the session is quarantined, and what may be missing. Call `resume` to continue it."""
    ran: tuple[Ran, ...]
    """Calls after the last checkpoint, in order."""


async def rescue(asking: Asking, sending: Sending, by: str) -> Rescued:
    """End the session's run and begin it again. Raises Refused for one that is well, NoSession when there is none."""
    if not await _why_lost(asking):
        raise Refused("the session answers, so there is nothing to rescue")
    ran = await _since_the_checkpoint(asking)
    await asking.handle.terminate(f"rescued by {by or 'somebody'}: its tasks failed for good")
    calls = "; ".join(map(str, ran)) or "none"
    hint = (
        "This session could not continue and was started again from its last checkpoint. These later calls may have "
        f"had effects that you do not see: {calls}. Check before you repeat any."
    )
    await sending.update_with_start("observe", {"messages": as_messages(UserMsg("longhaul", [HintBlock(hint=hint)]))})
    return Rescued((await _started(asking)).quarantine, ran)


async def _why_lost(asking: Asking) -> str:
    """What its worker says instead of an answer; empty when it answers. Raises NoSession, and Refused when nobody says
    anything."""
    try:
        await asking.handle.query("status", rpc_timeout=QUERY_TIMEOUT)
    except WorkflowQueryFailedError as error:
        if BLOBS_UNREACHABLE in str(error):
            raise Refused(f"there is nothing to rescue: {error}; it continues by itself") from error
        return str(error)
    except RPCError as error:
        match error.status:
            case RPCStatusCode.FAILED_PRECONDITION:
                silence = await asking.explained(error)
                if isinstance(silence, BlobsUnreachable | NoWorker | Unexplained):
                    raise Refused(f"there is nothing to rescue: {silence}") from silence
                return str(silence)
            case RPCStatusCode.NOT_FOUND:
                raise await asking.explained(error) from error
            case _:
                why = "no worker answers for the session, so nobody knows whether it can continue; start one first"
                raise Refused(why) from error
    return ""


async def _since_the_checkpoint(asking: Asking) -> tuple[Ran, ...]:
    calls: dict[int, Ran] = {}
    checkpoints: set[int] = set()
    async for event in asking.handle.fetch_history_events():
        if event.HasField("activity_task_scheduled_event_attributes"):
            name = event.activity_task_scheduled_event_attributes.activity_type.name
            if name == CHECKPOINT:
                checkpoints.add(event.event_id)
            elif "." not in name:
                calls[event.event_id] = Ran(name, _text(event.user_metadata.summary), "may still run")
        elif event.event_type in _ENDS:
            attributes, how = _ENDS[event.event_type]
            started: int = getattr(event, attributes).scheduled_event_id
            if started in calls:
                calls[started] = calls[started]._replace(how=how)
            elif started in checkpoints and how == "ended":
                # What was started before it, and had ended, is in it.
                calls = {number: ran for number, ran in calls.items() if number > started or ran.how == "may still run"}
    return tuple(calls.values())


def _text(payload: Payload) -> str:
    try:
        return str(json.loads(payload.data))
    except ValueError:
        return ""


async def _started(asking: Asking) -> Status:
    """Once the new incarnation knows what it was."""
    pauses = Pauses()
    while True:
        status = await asking.query("status", Status)
        if status.quarantine or status.incarnation > 1 or pauses.waited > RESTORE_SECONDS:
            return status
        await pauses.rest()
