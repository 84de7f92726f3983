"""Spells messages and results where they are kept: one line of JSON each, attachments by reference.

A line is the message as `Msg` reads it, with one more field at its end: `offloaded_as`, the key by which a repeated
attempt knows it again.
"""

import base64
import binascii
import hashlib
import json
import mimetypes
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longhaul.agent.plain.values import digest_of
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ToolResultBlock,
    URLSource,
    message_digest,
)

KeepData = Callable[[str, bytes], str]
"""Keeps bytes under a name of the form `{sha256}.{ext}`, and says where."""

_KEY = re.compile(rb',"offloaded_as":"([A-Za-z0-9_-]{43})"}\n\Z')
_KEY_BYTES = len(b',"offloaded_as":""}\n') + 43
_TYPES = mimetypes.MimeTypes()
"""Without the machine's own tables: two workers must find the same ending."""
_BREAKS = {ord(mark): f"\\u{ord(mark):04x}" for mark in "\x85\u2028\u2029"}
"""Line breaks for some readers, and plain characters in JSON."""


@dataclass(frozen=True, slots=True)
class Line:
    key: str
    """43 characters: of the batch, what the model saw of the message, and how many such came before it in the batch."""
    data: bytes
    """JSON in UTF-8, with its line break."""


def batch_of(msgs: Sequence[Msg], batch: str) -> str:
    """`batch`, or else a name for exactly these messages, so that the same call again is known by them."""
    return batch or digest_of([message_digest(message) for message in msgs])


def lines_of(msgs: Sequence[Msg], batch: str, keep: KeepData) -> list[Line]:
    """A line for each message; `keep` has been called with each attachment."""
    seen: Counter[str] = Counter()
    lines = []
    for message in msgs:
        digest = message_digest(message)
        key = digest_of([batch, digest, seen[digest]])
        seen[digest] += 1
        plain = message.model_copy(update={"content": tuple(_light(block, keep) for block in message.content)})
        text = json.dumps(plain.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":")).translate(_BREAKS)
        # A lone surrogate becomes the escape that JSON has for it.
        lines.append(Line(key, f'{text[:-1]},"offloaded_as":"{key}"}}\n'.encode("utf-8", "backslashreplace")))
    return lines


def key_of(line: bytes) -> str | None:
    """The key of a whole line; None for one that is torn or somebody else's."""
    found = _KEY.search(line[-_KEY_BYTES:])
    return found[1].decode("ascii") if found else None


def result_text(result: ToolResultBlock, keep: KeepData) -> str:
    """The whole output as text; an attachment is a line that says where it is."""
    if isinstance(result.output, str):
        return result.output
    return "\n".join(
        part.text if isinstance(part, TextBlock) else _described(_without_data(part, keep)) for part in result.output
    )


def _light(block: ContentBlock, keep: KeepData) -> ContentBlock:
    match block:
        case DataBlock():
            return _without_data(block, keep)
        case HintBlock() if not isinstance(block.hint, str):
            return block.model_copy(update={"hint": _parts(block.hint, keep)})
        case ToolResultBlock() if not isinstance(block.output, str):
            return block.model_copy(update={"output": _parts(block.output, keep)})
        case _:
            return block


def _parts(parts: tuple[TextBlock | DataBlock, ...], keep: KeepData) -> tuple[TextBlock | DataBlock, ...]:
    return tuple(_without_data(part, keep) if isinstance(part, DataBlock) else part for part in parts)


def _without_data(block: DataBlock, keep: KeepData) -> DataBlock:
    """With an address in place of the bytes: a plain path where it is a file, so that Read takes it as it stands."""
    if not isinstance(block.source, Base64Source):
        return block
    data = _decoded(block.source.data)
    media_type = block.source.media_type
    where = keep(f"{hashlib.sha256(data).hexdigest()}.{_ending(media_type)}", data)
    return block.model_copy(update={"source": URLSource(url=where, media_type=media_type)})


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "surrogatepass")  # no base64: kept as it came


def _ending(media_type: str) -> str:
    plain = media_type.partition(";")[0].strip().lower()
    known = (_TYPES.guess_extension(plain) or "").removeprefix(".") or plain.rpartition("/")[2]
    return known if re.fullmatch("[a-z0-9]{1,8}", known) else "bin"


def _described(block: DataBlock) -> str:
    named = f" {block.name!r}" if block.name else ""
    return f"[{block.source.media_type}{named}: {block.source.url if isinstance(block.source, URLSource) else ''}]"
