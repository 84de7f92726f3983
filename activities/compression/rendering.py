"""Messages as plain text for whoever summarises them: no call stands there as a call, so none can lack its result."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from longhaul.agent.plain.text import tag_of, without
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    parts_of,
)

_MARKS = tag_of(r"(?:system-info|material|earlier-summary|agent-instructions|instructions|still-open)\b")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the material. Results are shortened first; `whole` ones are shortened last and never left out."""

    text: str
    is_result: bool = False
    whole: bool = False


def enclosed(tag: str, text: str) -> str:
    """Material between marks that nothing in it can close."""
    return f"<{tag}>\n{harmless(text)}\n</{tag}>"


def harmless(text: str) -> str:
    return without(_MARKS, text)


def pieces_of(index: int, message: Msg, remark: str = "") -> Iterator[Piece]:
    """The message, one piece for each block but thinking; `index` is its number for whoever reads."""
    when = (f" at {message.created_at}" if message.created_at else "") + remark
    for block in message.content:
        if heading := _heading(message, block):
            text = f"[{index}] {heading}{when}:\n{_arguments_or_text(block)}"
            yield Piece(harmless(text), is_result=isinstance(block, ToolResultBlock))


def _heading(message: Msg, block: ContentBlock) -> str:
    match block:
        case TextBlock() | DataBlock():
            return f"{message.name} ({message.role})"
        case ToolCallBlock():
            return f"{message.name} calls {block.name} (call {block.id})"
        case ToolResultBlock():
            state = "" if block.state is ToolResultState.SUCCESS else f", {block.state.value}"
            return f"result of {block.name} (call {block.id}{state})"
        case HintBlock():
            return "hint"
        case ThinkingBlock():
            return ""
        case _ as never:
            assert_never(never)


def _arguments_or_text(block: ContentBlock) -> str:
    return block.input if isinstance(block, ToolCallBlock) else _text_of(block)


def readable_text(message: Msg) -> str:
    """All that a model reads of a message: words, calls with their ids, results, and the names of attachments."""
    return "\n".join(_text_of(block) for block in message.content)


def _text_of(block: ContentBlock) -> str:
    texts = "\n".join(part if isinstance(part, str) else _not_shown(part) for part in parts_of(block))
    return f"{block.id} {block.name} {block.input}" if isinstance(block, ToolCallBlock) else texts


def _not_shown(block: DataBlock) -> str:
    name = f" {block.name!r}" if block.name else ""
    return f"(attachment{name} of type {block.source.media_type!r}, not shown here)"
