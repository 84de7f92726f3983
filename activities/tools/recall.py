"""recall: exact originals of what the session said and did, also what its context no longer shows."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from activities import own_session, readout
from activities.blobs.blobs import BlobsUnavailable
from activities.segments import DamagedSegment, Segments
from activities.tools.tool import Tool, ToolCall, ToolError, ToolOutput
from agent.entries import AnyEntry
from agent.history import messages
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
from agent.tools import Effect

PAGE_CHARS = 8_000
"""About what a result may have before it is cut for the context: what is recalled must come as it was."""
MOST_MESSAGES = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages, from the newest back."""

    first: int
    last: int
    text: str
    limit: int
    offset: int
    """Characters of the newest one that are left out: how a long message is read on."""


class Recall(Tool):
    name = "recall"
    description = (
        "Read earlier messages of this session word for word, also those that are no longer in the context. Give a "
        "range of message numbers, a text to search for, or both; the newest come first. Message numbers count from 0."
    )
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {
            "from_message": {"type": "integer", "minimum": 0, "description": "Number of the first message wanted."},
            "to_message": {"type": "integer", "minimum": 0, "description": "Number of the last message wanted."},
            "text": {"type": "string", "description": "Only messages that contain this text, in any case of letters."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_MESSAGES, "description": "Messages at most."},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "Skip so many characters of the first message shown, to read on in a long one.",
            },
        },
        "additionalProperties": False,
    }
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    timeout_seconds = 120.0

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    async def run(self, call: ToolCall) -> ToolOutput:
        """Raises ToolError when what is wanted can't be read now."""
        try:
            entries = await self._entries()
            return ToolOutput(await asyncio.to_thread(recalled, entries, wanted(call.arguments)))
        except DamagedSegment as error:
            raise ToolError(f"part of this session's record is damaged: {error}") from error
        except (BlobsUnavailable, RPCError, WorkflowQueryFailedError) as error:
            raise ToolError(f"the session's record can't be read now: {error}") from error

    async def _entries(self) -> list[AnyEntry]:
        """All of them: what stands in segments, and what only the session itself has yet."""
        session = own_session.handle()
        entries: list[AnyEntry] = []
        for segment in await readout.sealed(session):
            entries += await self._segments.read(segment)
        live = await readout.entries_after(session, entries[-1].seq if entries else 0)
        return [*entries, *live.entries]


def wanted(arguments: dict[str, Any]) -> Wanted:
    return Wanted(
        first=arguments.get("from_message", 0),
        last=arguments.get("to_message", 2**53),
        text=arguments.get("text", "").casefold(),
        limit=arguments.get("limit", MOST_MESSAGES),
        offset=arguments.get("offset", 0),
    )


def recalled(entries: Iterable[AnyEntry], want: Wanted) -> str:
    """The messages that are wanted, as text; each body is exactly what it was."""
    total = 0
    found: list[tuple[int, Msg]] = []
    for number, message in messages(entries):
        total = number + 1
        if want.first <= number <= want.last and _matches(message, want.text):
            found.append((number, message))
    if not found:
        return f"Nothing was found. This session has {total} messages, numbered from 0."
    found.reverse()
    return "\n".join(_shown(found, want, total))


def _shown(found: list[tuple[int, Msg]], want: Wanted, total: int) -> Iterator[str]:
    yield f"{len(found)} of {total} messages, the newest first."
    room = PAGE_CHARS
    for place, (number, message) in enumerate(found):
        text = _body(message)
        part = text[want.offset :] if place == 0 else text
        if place and (place >= want.limit or len(part) > room):
            yield f"[… {len(found) - place} more: ask again with to_message={number}]"
            return
        cut = part[: max(room, 0)]
        yield f"--- message {number} · {message.role} · {message.name}"
        yield cut
        if len(cut) < len(part):
            done = len(text) - len(part) + len(cut)
            yield f"[… {len(part) - len(cut)} more characters: ask again with to_message={number}, offset={done}]"
            return
        room -= len(part)


def _matches(message: Msg, text: str) -> bool:
    return not text or text in _body(message).casefold()


def _body(message: Msg) -> str:
    return "\n".join(_block(block) for block in message.content)


def _block(block: ContentBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ThinkingBlock():
            return f"[thinking]\n{block.thinking}"
        case ToolCallBlock():
            return f"[call {block.id} of {block.name}]\n{block.input}"
        case ToolResultBlock():
            return f"[result of call {block.id} of {block.name}: {block.state.value}]\n{_parts(block.output)}"
        case HintBlock():
            return _parts(block.hint)
        case DataBlock():
            return _named(block)
        case _ as never:
            assert_never(never)


def _parts(parts: str | tuple[TextBlock | DataBlock, ...]) -> str:
    if isinstance(parts, str):
        return parts
    return "\n".join(part.text if isinstance(part, TextBlock) else _named(part) for part in parts)


def _named(block: DataBlock) -> str:
    return f"[attachment {block.name or 'without a name'}]"
