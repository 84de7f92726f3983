"""Entries about hubs that the session is in."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.conversation.messages import Msg


class HubHeard(Entry):
    """A hub has told what was said there, or that this session has come in or left."""

    kind: Literal["hub_heard"] = "hub_heard"
    hub: str
    """Id of its workflow."""
    life: str
    name: str
    member: str
    through: int
    """With this, everything up to that number has been told."""
    numbers: tuple[int, ...] = sparse(())
    """One to each message: those that were heard before are passed over."""
    messages: tuple[Msg, ...] = sparse(())
    """As the model reads them."""
    left: bool = sparse(False)
    tainted: str = sparse("")


class HubTold(Entry):
    """A hub knows what a reply came to; `error`: it is not there any more."""

    kind: Literal["hub_told"] = "hub_told"
    hub: str
    reply_id: str
    error: str = sparse("")


HubEntry = HubHeard | HubTold
