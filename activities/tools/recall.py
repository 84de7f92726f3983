"""recall: exact originals of what the session said and did, also what its context no longer shows, and whole outputs
that were kept among its blobs."""

import asyncio
import mimetypes
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from longhaul.activities.attempt import own_session
from longhaul.activities.recovery import readout
from longhaul.activities.tool import Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.read import IMAGE_CAP_BYTES, image_shown
from longhaul.activities.tools.recalled import (
    MOST_MESSAGES,
    FoundMessages,
    Newest,
    WantedMessages,
    part_of_output,
    shown,
    wanted,
)
from longhaul.agent.entries import Segment
from longhaul.agent.values.conversation.tools import Effect
from longhaul.stores.blobs.blobs import BlobsUnavailable, NoBlob
from longhaul.stores.offload.session_blobs import DIGITS, SessionBlobs
from longhaul.stores.segments import DamagedSegment, Read, Segments, messages_of, stretches


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
            "text": {"type": "string", "description": "Only messages that contain this text, in any case of letters."},
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
            return await self._whole(output, call.arguments)
        want = wanted(call.arguments)
        found = FoundMessages(want)
        try:
            first, total = await _look_at_live(want, found)
            if first > want.first and not found.enough:
                sealed = await readout.sealed(own_session.handle())
                older = replace(want, last=min(want.last, first - 1))
                await look_at_sealed(self._segments.read_whole, sealed, older, found)
        except (DamagedSegment, ValueError) as error:
            raise ToolError(f"part of this session's record is damaged: {error}") from error
        except (BlobsUnavailable, RPCError, WorkflowQueryFailedError) as error:
            raise ToolError(f"the session's record can't be read now: {error}") from error
        return ToolOutput(await asyncio.to_thread(shown, found, want, total))

    async def _whole(self, digits: str, arguments: dict[str, Any]) -> ToolOutput:
        try:
            name, data = await self._of_session().read(digits)
        except NoBlob as error:
            raise ToolError(str(error)) from error
        except BlobsUnavailable as error:
            raise ToolError(f"the output can't be read now: {error}") from error
        if name:
            return await asyncio.to_thread(_attachment, name, data)
        text, offset = arguments.get("text", ""), arguments.get("offset", 0)
        return ToolOutput(await asyncio.to_thread(part_of_output, data.decode(errors="replace"), text, offset))


def _attachment(name: str, data: bytes) -> ToolOutput:
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if not media_type.startswith("image/") or len(data) > IMAGE_CAP_BYTES:
        return ToolOutput(f"{name!r}: {media_type}, {len(data)} bytes; its content is not shown", failed=True)
    return image_shown(name, media_type, data, len(data))


async def _look_at_live(want: WantedMessages, found: FoundMessages) -> tuple[int, int]:
    """What the session itself still holds: the number of the first such message that is wanted, and of all of them."""
    session = own_session.handle()
    newest = Newest(want)
    page = await readout.messages(session, want.first)
    first = page.start
    while page.messages and page.start <= want.last:
        await asyncio.to_thread(newest.look_at, list(enumerate(page.messages, start=page.start)))
        page = await readout.messages(session, page.start + len(page.messages))
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
