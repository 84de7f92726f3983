"""Guesses from its bytes how large a message is for a model, where no worker has counted it yet."""

from longhaul.agent.plain.token_correction import outside_estimate
from longhaul.agent.values.conversation.messages import Msg, parts_of

DATA_TOKENS = 1_600
"""An image, whatever its bytes: providers scale it down to about this."""
FRAME_TOKENS = 8
"""Role, name and what stands around a message."""


def outside_tokens(message: Msg) -> int:
    """Tokens of a message that came from outside or that the record made itself."""
    names = sum(text_tokens(call.name) for call in message.get_tool_calls())
    parts = (part for block in message.content for part in parts_of(block))
    return FRAME_TOKENS + names + sum(text_tokens(part) if isinstance(part, str) else DATA_TOKENS for part in parts)


def text_tokens(text: str) -> int:
    """Tokens of a text, guessed from its bytes."""
    # A lone surrogate has no UTF-8: it is counted as what stands in its place.
    return outside_estimate(len(text.encode("utf-8", "replace")))
