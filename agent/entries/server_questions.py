"""Entries about what MCP servers ask people, and what these answer."""

from typing import Literal

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.conversation.server_questions import ServerAsked
from longhaul.agent.values.spec.mcp_sampling import Sampled


class InputAsked(Entry):
    """A server needs to know something of a person before it goes on with a call; nothing is under way meanwhile."""

    kind: Literal["input_asked"] = "input_asked"
    call_id: str
    asked: ServerAsked
    sampled: Sampled | None = sparse(None)
    """What a model was asked in the name of the server before."""


class InputAnswered(Entry):
    """A person has answered: the call is decided on once more, and made again with the answers."""

    kind: Literal["input_answered"] = "input_answered"
    call_id: str
    answers: Written
    """JSON: as `ServerAsked.answers`, of this round."""
    by: str = sparse("")


InputEntry = InputAsked | InputAnswered
