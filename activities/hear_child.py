"""hear_child: what the session of a sub-agent has returned that has closed, for a run that did not start it."""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.activities.contract import HEAR_CHILD, ChildHeard, HearChild

SECONDS = 10.0


@activity.defn(name=HEAR_CHILD)
async def hear_child(ask: HearChild) -> ChildHeard:
    """Raises what may pass; a session that somebody has opened again speaks for itself meanwhile."""
    session = activity.client().get_workflow_handle(ask.workflow_id, result_type=dict[str, Any])
    try:
        async with asyncio.timeout(SECONDS):
            return ChildHeard(closed=await session.result())
    except WorkflowFailureError as error:
        return ChildHeard(why=str(error.cause))
    except TimeoutError:
        raise ApplicationError("it has been opened again, and has not closed", type="Open") from None
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return ChildHeard(why="its history has been deleted")
