"""Blocks of recorded messages as the events that tell of them."""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from longhaul.agent.values.conversation.messages import (
    Base64Source,
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from longhaul.agent.views.event_types import AgentEvent


def of(block: ContentBlock, block_id: str) -> Iterator[AgentEvent]:
    """Of what a model has said."""
    match block:
        case TextBlock():
            yield AgentEvent(type="TEXT_BLOCK_START", block_id=block_id)
            yield AgentEvent(type="TEXT_BLOCK_DELTA", block_id=block_id, delta=block.text)
            yield AgentEvent(type="TEXT_BLOCK_END", block_id=block_id, metadata=block.extras)
        case ThinkingBlock():
            yield AgentEvent(type="THINKING_BLOCK_START", block_id=block_id)
            yield AgentEvent(type="THINKING_BLOCK_DELTA", block_id=block_id, delta=block.thinking)
            yield AgentEvent(type="THINKING_BLOCK_END", block_id=block_id, metadata=block.model_extra or {})
        case DataBlock():
            yield AgentEvent(type="DATA_BLOCK_START", block_id=block_id, media_type=block.source.media_type)
            yield AgentEvent(type="DATA_BLOCK_DELTA", block_id=block_id, **_data(block))
            yield AgentEvent(type="DATA_BLOCK_END", block_id=block_id)
        case ToolCallBlock():
            yield AgentEvent(type="TOOL_CALL_START", tool_call_id=block.id, tool_call_name=block.name)
            yield AgentEvent(type="TOOL_CALL_DELTA", tool_call_id=block.id, delta=block.input)
            yield AgentEvent(type="TOOL_CALL_END", tool_call_id=block.id, metadata=block.extras)
        case HintBlock():
            yield _hint(block, block_id)
        case ToolResultBlock():
            yield from of_result(block)
        case _ as never:
            assert_never(never)


def of_result(result: ToolResultBlock, told: int = 0) -> Iterator[AgentEvent]:
    """`told`: characters of its text that came before in pieces. Parts of a result that is not one text have ids."""
    if isinstance(result.output, str):
        yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", tool_call_id=result.id, delta=result.output[told:])
    else:
        for index, part in enumerate(result.output):
            about: dict[str, Any] = {"tool_call_id": result.id, "block_id": f"{result.id}.{index}"}
            if isinstance(part, TextBlock):
                # The pieces are the beginning of the first part.
                yield AgentEvent(type="TOOL_RESULT_TEXT_DELTA", **about, delta=part.text[told:])
                told = 0
            else:
                yield AgentEvent(type="TOOL_RESULT_DATA_DELTA", **about, **_data(part))
    yield AgentEvent(
        type="TOOL_RESULT_END",
        tool_call_id=result.id,
        tool_call_name=result.name,
        state=result.state,
        metadata=result.metadata,
    )


def of_hints(messages: Iterable[Msg], seq: int) -> Iterator[AgentEvent]:
    """Of what the entry with this number tells the model, and nobody has said."""
    hints = (block for message in messages for block in message.content if isinstance(block, HintBlock))
    for index, block in enumerate(hints):
        yield _hint(block, f"{seq}.hint{index}")


def _hint(block: HintBlock, block_id: str) -> AgentEvent:
    return AgentEvent(type="HINT_BLOCK", block_id=block_id, hint=block.hint, source=block.source)


def _data(block: DataBlock) -> dict[str, Any]:
    source = block.source
    where = {"data": source.data} if isinstance(source, Base64Source) else {"url": source.url}
    return {"media_type": source.media_type, "name": block.name or "", **where}
