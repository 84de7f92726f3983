"""The hubs that are open, as rows of the server's index: no hub is asked."""

from dataclasses import dataclass

from temporalio.client import Client

from longhaul.starter.client.cards import texts_of_memo
from longhaul.starter.reach.hashed_ids import Naming
from longhaul.workflows.contract import HUB

OPEN_HUBS = f"WorkflowType = '{HUB}' AND ExecutionStatus = 'Running'"


@dataclass(frozen=True, slots=True)
class HubRow:
    """One hub of `Longhaul.hubs()`."""

    name: str
    user: str | None
    """None: of sessions without a user."""


def memo_of(name: str, user: str | None) -> dict[str, str | None]:
    """What a hub's row says of it, from its beginning on."""
    return {"hub": name, "user": user}


async def hub_rows(client: Client, naming: Naming) -> list[HubRow]:
    """By name. Anybody may start a workflow of our type: a row whose names do not give its id is not told."""
    found = list[HubRow]()
    async for row in client.list_workflows(OPEN_HUBS):
        memo = await texts_of_memo(row) or {}
        name, user = memo.get("hub"), memo.get("user")
        if name and naming.hub_id(user, name) == row.id:
            found.append(HubRow(name, user))
    return sorted(found, key=lambda one: (one.name, one.user or ""))
