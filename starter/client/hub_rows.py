"""The hubs that are open, as rows of the server's index: no hub is asked. And how one comes to be, with its row."""

from dataclasses import dataclass
from typing import Any

from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy

from longhaul.agent.hub_membership import HubState
from longhaul.starter.client.cards import texts_of_memo
from longhaul.starter.reach.hashed_ids import Naming
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import HUB, TASK_TIMEOUT, HubStart

OPEN_HUBS = f"WorkflowType = '{HUB}' AND ExecutionStatus = 'Running'"


@dataclass(frozen=True, slots=True)
class HubRow:
    """One hub of `Longhaul.hubs()`."""

    name: str
    user: str | None
    """None: of sessions without a user."""


def beginning_of(settings: Settings, name: str, user: str | None) -> WithStartWorkflowOperation[Any, Any]:
    """How a hub comes to be with its first members; one that there is stays as it is."""
    naming = Naming(settings)
    return WithStartWorkflowOperation(
        HUB,
        HubStart(hub=HubState(name=name, user_id=user)),
        id=naming.hub_id(user, name),
        task_queue=settings.task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        task_timeout=TASK_TIMEOUT,
        memo={"hub": name, "user": user},
        static_summary="hub" if naming.is_opaque else f"hub {name}"[:120],
    )


async def hub_rows(client: Client, naming: Naming) -> list[HubRow]:
    """By name. Anybody may start a workflow of our type: a row whose names do not give its id is not told."""
    found = list[HubRow]()
    async for row in client.list_workflows(OPEN_HUBS):
        memo = await texts_of_memo(row) or {}
        name, user = memo.get("hub"), memo.get("user")
        if name and naming.hub_id(user, name) == row.id:
            found.append(HubRow(name, user))
    return sorted(found, key=lambda one: (one.name, one.user or ""))
