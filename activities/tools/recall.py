"""recall: exact originals of what the session said and did, also what its context no longer shows, and whole outputs
that were kept among its blobs.
"""

import asyncio
import mimetypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.activities import recovery
from longhaul.activities.attempt import own_session
from longhaul.activities.tool import Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.read import IMAGE_CAP_BYTES, image_shown
from longhaul.agent.entries import Segment
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    Msg,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    parts_of,
)
from longhaul.agent.values.conversation.tools import Effect
from longhaul.stores.blobs.blobs import BlobsUnavailable, NoBlob
from longhaul.stores.offload.session_blobs import DIGITS, SessionBlobs
from longhaul.stores.segments import DamagedSegment, Read, Segments, messages_of, stretches

PAGE_CHARS = 8_000
"""About what a result may have before it is cut for the context: what is recalled must come as it was."""
MOST_MESSAGES = 50


@dataclass(frozen=True, slots=True)
class WantedMessages:
    """Which messages, from the newest back."""

    first: int
    last: int
    text: str
    limit: int
    offset: int
    """Characters of the newest one that are left out: how a long message is read on."""

    def takes(self, number: int, message: Msg) -> bool:
        return self.first <= number <= self.last and (not self.text or self.text in _body(message).casefold())


def wanted(arguments: dict[str, Any]) -> WantedMessages:
    return WantedMessages(
        first=arguments.get("from_message", 0),
        last=arguments.get("to_message", 2**53),
        text=arguments.get("text", "").casefold(),
        limit=arguments.get("limit", MOST_MESSAGES),
        offset=arguments.get("offset", 0),
    )


class FoundMessages:
    """Messages that were found, the newest first, and no more of them than can be shown."""

    def __init__(self, want: WantedMessages) -> None:
        self.messages: list[tuple[int, Msg]] = []
        self._want = want
        self._room = PAGE_CHARS + want.offset

    @property
    def enough(self) -> bool:
        """Nothing that is older will be shown; the oldest of what there is tells where to go on."""
        return len(self.messages) > self._want.limit or self._room < 0

    def add(self, older: Iterable[tuple[int, Msg]]) -> None:
        """From the newest to the oldest, all older than what there is."""
        for number, message in older:
            if self.enough:
                return
            self.messages.append((number, message))
            self._room -= len(_body(message))


class Newest:
    """Of messages that come with the oldest first, the newest that are wanted: so many that nothing else is shown."""

    def __init__(self, want: WantedMessages) -> None:
        self._want = want
        self._kept: deque[tuple[int, Msg]] = deque(maxlen=want.limit + 1)

    def look_at(self, messages: Iterable[tuple[int, Msg]]) -> None:
        self._kept.extend(pair for pair in messages if self._want.takes(*pair))

    def newest_first(self) -> Iterator[tuple[int, Msg]]:
        return reversed(self._kept)


def messages_text(found: FoundMessages, want: WantedMessages, total: int) -> str:
    """The messages as text; each body is exactly what it was."""
    if not found.messages:
        return f"Nothing was found. This session has {total} messages, numbered from 0."
    parts = list(_parts_of(found.messages, want))
    told = sum(part.is_message for part in parts)
    return "\n".join((f"{told} of {total} messages, the newest first.", *(part.text for part in parts)))


def part_of_output(whole: str, text: str, offset: int) -> str:
    """A page of an output from that character on; with `text`, of its lines that contain it, in any case of
    letters."""
    if text:
        wanted_text = text.casefold()
        lines = [f"{at}: {line}" for at, line in enumerate(whole.splitlines(), 1) if wanted_text in line.casefold()]
        whole = "\n".join(lines)
    part = whole[offset : offset + PAGE_CHARS]
    if not part:
        return "Nothing was found." if not offset else f"There are {len(whole)} characters, none from {offset} on."
    left = len(whole) - offset - len(part)
    return f"{part}\n[… {left} more characters: ask again with offset={offset + len(part)}]" if left else part


class _Part(NamedTuple):
    text: str
    is_message: bool = False


def _parts_of(found: list[tuple[int, Msg]], want: WantedMessages) -> Iterator[_Part]:
    room = PAGE_CHARS
    for place, (number, message) in enumerate(found):
        text = _body(message)
        part = text[want.offset :] if place == 0 else text
        if place and (place >= want.limit or len(part) > room):
            more = "more" if want.text else f"{number - want.first + 1} more"
            yield _Part(f"[… {more}: ask again with to_message={number}]")
            return
        cut = part[: max(room, 0)]
        yield _Part(f"--- message {number} · {message.role} · {message.name}\n{cut}", is_message=True)
        if len(cut) < len(part):
            done = len(text) - len(part) + len(cut)
            left = len(part) - len(cut)
            yield _Part(f"[… {left} more characters: ask again with to_message={number}, offset={done}]")
            return
        room -= len(part)


def _body(message: Msg) -> str:
    return "\n".join(_block(block) for block in message.content)


def _block(block: ContentBlock) -> str:
    if isinstance(block, ToolCallBlock):
        return f"[call {block.id} of {block.name}]\n{block.input}"
    if isinstance(block, ThinkingBlock):
        heading = "[thinking]\n"
    elif isinstance(block, ToolResultBlock):
        heading = f"[result of call {block.id} of {block.name}: {block.state.value}]\n"
    else:
        heading = ""
    return heading + "\n".join(
        part if isinstance(part, str) else f"[attachment {part.name or 'without a name'}]" for part in parts_of(block)
    )


class Recall(Tool):
    name = "recall"
    description = (
        "Read earlier messages of this session word for word, also those that are no longer in the context. Give a "
        "range of message numbers, a text to search for, or both; the newest come first. Message numbers count from 0. "
        "Where a shortened result names 'recall output=…', give `output` to read all of it, or its lines with `text`."
    )
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {
            "from_message": {"type": "integer", "minimum": 0, "description": "Number of the first message wanted."},
            "to_message": {"type": "integer", "minimum": 0, "description": "Number of the last message wanted."},
            "text": {
                "type": "string",
                "description": "Only messages that contain this text, in any case of letters.",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_MESSAGES, "description": "Messages at most."},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "Skip so many characters of the first message shown, to read on in a long one.",
            },
            "output": {"type": "string", "pattern": DIGITS, "description": "The digits behind 'recall output='."},
        },
        "additionalProperties": False,
    }
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    timeout_seconds = 120.0

    def __init__(self, segments: Segments, of_session: Callable[[], SessionBlobs]) -> None:
        """`of_session`: whole outputs of the running activity's session."""
        self._segments = segments
        self._of_session = of_session

    async def run(self, call: ToolCall) -> ToolOutput:
        """Raises ToolError when what is wanted can't be read now."""
        if output := call.arguments.get("output"):
            try:
                name, data = await self._of_session().read(output)
            except NoBlob as error:
                raise ToolError(str(error)) from error
            except BlobsUnavailable as error:
                raise ToolError(f"the output can't be read now: {error}") from error
            if name:
                return await asyncio.to_thread(_attachment, name, data)
            text, offset = call.arguments.get("text", ""), call.arguments.get("offset", 0)
            return ToolOutput(await asyncio.to_thread(part_of_output, data.decode(errors="replace"), text, offset))
        want = wanted(call.arguments)
        found = FoundMessages(want)
        try:
            first, total = await _look_at_live(want, found)
            if first > want.first and not found.enough:
                sealed = await recovery.sealed(own_session.handle())
                older = replace(want, last=min(want.last, first - 1))
                await look_at_sealed(self._segments.read_whole, sealed, older, found)
        except (DamagedSegment, ValueError) as error:
            raise ToolError(f"part of this session's record is damaged: {error}") from error
        except (BlobsUnavailable, RPCError, WorkflowQueryFailedError) as error:
            raise ToolError(f"the session's record can't be read now: {error}") from error
        return ToolOutput(await asyncio.to_thread(messages_text, found, want, total))


def _attachment(name: str, data: bytes) -> ToolOutput:
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if not media_type.startswith("image/") or len(data) > IMAGE_CAP_BYTES:
        return ToolOutput(f"{name!r}: {media_type}, {len(data)} bytes; its content is not shown", failed=True)
    return image_shown(name, media_type, data, len(data))


async def _look_at_live(want: WantedMessages, found: FoundMessages) -> tuple[int, int]:
    """What the session itself still holds: the number of the first such message that is wanted, and of all of them."""
    session = own_session.handle()
    newest = Newest(want)
    page = await recovery.messages(session, want.first)
    first = page.start
    while page.messages and page.start <= want.last:
        await asyncio.to_thread(newest.look_at, list(enumerate(page.messages, start=page.start)))
        page = await recovery.messages(session, page.start + len(page.messages))
    found.add(newest.newest_first())
    return first, page.total


async def look_at_sealed(read: Read, segments: Sequence[Segment], want: WantedMessages, found: FoundMessages) -> None:
    """What stands in segments, from the newest back until enough is found: one segment at a time is in memory."""
    for stretch in stretches(segments, want.last + 1):
        if found.enough or stretch.end <= want.first:
            return
        if stretch.first > want.last:
            continue
        newest = Newest(want)
        async with aclosing(messages_of(read, stretch)) as pages:
            async for page in pages:
                await asyncio.to_thread(newest.look_at, page)
                if page and page[-1][0] >= want.last:
                    break
        found.add(newest.newest_first())
