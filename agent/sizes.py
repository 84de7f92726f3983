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

BYTES_PER_TOKEN = 3
"""Of UTF-8, rounded up: rather too many than too few, until the next model call reports the true number."""
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
            return _of_text(block.text)
        case ThinkingBlock():
            return _of_text(block.thinking)
        case ToolCallBlock():
            return _of_text(block.name) + _of_text(block.input)
        case DataBlock():
            return DATA_TOKENS
        case HintBlock():
            return _of_parts(block.hint)
        case ToolResultBlock():
            return _of_parts(block.output)
        case _ as never:
            assert_never(never)


def _of_parts(parts: str | tuple[TextBlock | DataBlock, ...]) -> int:
    return _of_text(parts) if isinstance(parts, str) else sum(_tokens(part) for part in parts)


def _of_text(text: str) -> int:
    # A lone surrogate has no UTF-8: it is counted as what stands in its place.
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
