"""An activity asks its own session by query for what its worker does not have."""

from typing import Any

from temporalio import activity
from temporalio.client import WorkflowHandle

from longhaul.activities.contract import RECEIVED, SPEC, TRANSCRIPT, SpecTexts, TranscriptPage
from longhaul.agent.values.conversation.messages import ToolResultBlock
from longhaul.stores.blobs.blobs import session_prefix


def key() -> str:
    """The id of the session that this activity works for."""
    workflow_id = activity.info().workflow_id
    if workflow_id is None:
        raise RuntimeError("this activity was started without a session; ours are always started by one")
    return workflow_id


def blobs_prefix() -> str:
    """What the keys of its blobs begin with."""
    return session_prefix(activity.info().namespace, key())


def handle() -> WorkflowHandle[Any, Any]:
    """Pinned to the run: a query answered by another run could be about another epoch."""
    return activity.client().get_workflow_handle(key(), run_id=activity.info().workflow_run_id)


async def pull_page(epoch: int, start: int) -> TranscriptPage:
    page: TranscriptPage = await handle().query(TRANSCRIPT, args=[epoch, start], result_type=TranscriptPage)
    return page


async def pull_spec() -> SpecTexts:
    spec: SpecTexts = await handle().query(SPEC, result_type=SpecTexts)
    return spec


async def pull_received(call_id: str) -> ToolResultBlock:
    """What was handed in from outside for a call."""
    found: ToolResultBlock = await handle().query(RECEIVED, call_id, result_type=ToolResultBlock)
    return found
