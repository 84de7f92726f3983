"""The leave of an MCP server to have a model asked in its name (sampling), and what that has taken."""

from longhaul.agent.plain.values import OpenValue, Value, sparse
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.known_names import FullModelName


class Sampling(Value):
    """What one call of a tool of the server may have asked; all of it counts to the session's budget."""

    model: FullModelName = sparse("", max_length=1_000)
    """Empty: the agent's."""
    max_calls: int = sparse(5, ge=1, le=100)
    max_tokens: int = sparse(20_000, ge=1, le=10_000_000)
    """Read and written, of all of these calls."""


class Sampled(OpenValue):
    """What a model was asked in the name of a server, while one call ran."""

    model: str
    """As the agent names it."""
    calls: int
    usage: Usage
