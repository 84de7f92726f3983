"""Speaks to other workflows by signals, which the server delivers once."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError

from longhaul.agent.entries import HubTold
from longhaul.agent.record import Record
from longhaul.agent.values.hubs import MEMBER_SAID
from longhaul.agent.views.session_views import member_said


async def signal(workflow_id: str, letter: str, body: dict[str, Any]) -> str:
    """Why it could not be sent; empty when it was."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(letter, body)
    except FailureError as error:
        return str(error) or type(error).__name__
    return ""


async def tell_hub(record: Record, hub: str, reply: str) -> HubTold:
    """What is to be written down of it. A hub that is gone is told nothing more."""
    said = member_said(record, workflow.info().workflow_id, hub, reply)
    return HubTold(hub=hub, reply_id=reply, error=await signal(hub, MEMBER_SAID, said.model_dump(mode="json")))
