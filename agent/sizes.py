"""How large a message is for a model, guessed from its bytes: for those that no worker has counted yet."""

from typing import assert_never

from agent.messages import (
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from agent.tokens import outside_estimate

DATA_TOKENS = 1_600
"""An image, whatever its bytes: providers scale it down to about this."""
FRAME_TOKENS = 8
"""Role, name and what stands around a message."""


def outside_tokens(message: Msg) -> int:
    """Tokens of a message that came from outside or that the record made itself."""
    return FRAME_TOKENS + sum(_tokens(block) for block in message.content)


def _tokens(block: ContentBlock) -> int:
    match block:
        case TextBlock():
            return text_tokens(block.text)
        case ThinkingBlock():
            return text_tokens(block.thinking)
        case ToolCallBlock():
            return text_tokens(block.name) + text_tokens(block.input)
        case DataBlock():
            return DATA_TOKENS
        case HintBlock():
            return _of_parts(block.hint)
        case ToolResultBlock():
            return _of_parts(block.output)
        case _ as never:
            assert_never(never)


def _of_parts(parts: str | tuple[TextBlock | DataBlock, ...]) -> int:
    return text_tokens(parts) if isinstance(parts, str) else sum(_tokens(part) for part in parts)


def text_tokens(text: str) -> int:
    """Tokens of a text, guessed from its bytes."""
    # A lone surrogate has no UTF-8: it is counted as what stands in its place.
    return outside_estimate(len(text.encode("utf-8", "replace")))
