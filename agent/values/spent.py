"""The use of one model in a session."""

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import Usage


class ModelSpent(OpenValue):
    """Of all its calls whose end was heard of; or of those that were lost, as estimated."""

    calls: int = 0
    usage: Usage = Usage()
    nanos: int = sparse(0)
    """Billionths of a dollar; 0 where nobody knows its price, or the session has no budget."""


NOTHING_SPENT = ModelSpent()
