"""Finds out how the waiting for a model's provider stands: the server knows of each try, the session only of some."""

from datetime import UTC

from temporalio.api.failure.v1 import Failure
from temporalio.converter import WorkflowSerializationContext
from temporalio.exceptions import FailureError
from temporalio.service import RPCError

from longhaul.agent.plain.measures import iso
from longhaul.starter.client.reading.asking import Asking
from longhaul.workflows.contract import CALL_MODEL, COMPRESS, Status


async def with_newest_try(asking: Asking, status: Status) -> Status:
    """The status of a session whose provider is away, with the newest try; as it is where the server does not say."""
    if status.outage is None:
        return status
    try:
        described = await asking.handle.describe()
    except RPCError:
        return status
    for one in described.raw_description.pending_activities:
        if one.activity_type.name in {CALL_MODEL, COMPRESS} and one.HasField("last_failure"):
            next_try = iso(round(one.scheduled_time.ToDatetime(UTC).timestamp() * 1000))
            # Of one that is under way, `attempt` is its own number; of one that waits, that of the next.
            newest = {
                "attempt": max(one.attempt - 1, 1),
                "next_try": next_try,
                "why": await _said(asking, one.last_failure),
            }
            return status.model_copy(update={"outage": status.outage.model_copy(update=newest)})
    return status


async def _said(asking: Asking, failure: Failure) -> str:
    """Why it failed; it may be encrypted."""
    context = WorkflowSerializationContext(asking.client.namespace, asking.handle.id)
    told = await asking.client.data_converter.with_context(context).decode_failure(failure)
    return told.message if isinstance(told, FailureError) else str(told)
