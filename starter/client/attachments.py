"""Looks into attachments before they are sent to a session: what no model could be shown is refused here, while its
sender still has the file. A session that was given one all the same goes on without it (`activities.context`)."""

import asyncio
import struct
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from longhaul.activities.context.attachments import LONGEST_BASE64, MOST_PIXELS_A_SIDE, sound
from longhaul.agent.values.conversation.messages import DataBlock
from longhaul.starter.client.wire import Refused, plain

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
}
"""What a model can be shown or played, by the ending of a file's name."""
_WHAT_TO_DO = (
    "send the whole file as base64: a PDF, or a PNG, JPEG, GIF or WebP of at most "
    f"{LONGEST_BASE64 * 3 // 4000} kB and {MOST_PIXELS_A_SIDE} pixels a side; or say what is in it as text"
)
Place = tuple[str, object]
"""Where something stands in a body, and what."""


async def check_attachments(name: str, body: Mapping[str, Any]) -> None:
    """Raise Refused, which names the place, for the first one that is broken, not what it says it is, or too large.

    `name`: of the letter. What has another shape than it should is left to the session, which refuses it.
    """
    if found := list(_attachments(body)):
        await asyncio.to_thread(_check, name, found)


def _check(name: str, found: list[tuple[str, DataBlock]]) -> None:
    for place, block in found:
        try:
            sound(block)
        except (ValueError, struct.error) as error:
            shown = f"{block.name[:200]!r}, {block.source.media_type[:100]}" if block.name else block.source.media_type
            raise Refused(f"{name}: {place} ({shown[:310]}): {error}; {_WHAT_TO_DO}") from None


def _attachments(body: Mapping[str, Any]) -> Iterator[tuple[str, DataBlock]]:
    """Where messages and results hold blocks: elsewhere the same JSON would mean something else."""
    for field in ("messages", "message"):
        for place, message in _items(field, body.get(field)):
            yield from _of_blocks(f"{place}.content", _part(message, "content"))
    for field in ("results", "execution_results"):
        for place, result in _items(field, body.get(field)):
            output = _part(result, "output")
            # Anything else is JSON that the model reads.
            if all(_part(item, "type") in ("text", "data") for _, item in _items("", output)):
                yield from _of_blocks(f"{place}.output", output)


def _of_blocks(field: str, blocks: object) -> Iterator[tuple[str, DataBlock]]:
    for place, block in _items(field, blocks) if isinstance(blocks, list | tuple) else ():
        match _part(block, "type"):
            case "data":
                try:
                    yield place, DataBlock.model_validate(plain(block))
                except ValidationError:
                    continue
            case "hint":
                yield from _of_blocks(f"{place}.hint", _part(block, "hint"))
            case _:
                continue


def _items(field: str, given: object) -> Iterator[Place]:
    """One that stands alone is the first."""
    if isinstance(given, list | tuple):
        for index, item in enumerate(cast(list[object], given)):
            yield f"{field}[{index}]", item
    elif given is not None and not isinstance(given, str):
        yield field, given


def _part(whole: object, name: str) -> object:
    return cast(dict[str, object], whole).get(name) if isinstance(whole, dict) else getattr(whole, name, None)
