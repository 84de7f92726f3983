"""Looks into attachments before a model is sent them: one that is broken would be refused with every later request.

What is decoded here is the outside of a file (its kind, its size, its checksums), not its pixels.
"""

import base64
import binascii
import struct
import zlib
from collections.abc import Mapping

from longhaul.activities.context.attachment_tokens import size_in
from longhaul.agent.fold.context_state import words_for
from longhaul.agent.values.conversation.messages import IMAGES, Base64Source, DataBlock, TextBlock

LONGEST_BASE64 = 5 * 1024 * 1024
"""Of one image. Claude refuses more ("Vision", platform.claude.com), and so do most servers."""
MOST_PIXELS_A_SIDE = 8_000
"""The same source. OpenAI scales larger ones down, at no gain for anybody."""

_SAME = {"image/jpg": "image/jpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/mp3": "audio/mpeg"}
_PNG_HEAD = b"\x89PNG\r\n\x1a\n"


def looked_into(block: DataBlock) -> DataBlock | TextBlock:
    """The block itself when nothing is wrong with it; the same under its right type; or words that say what is."""
    try:
        return sound(block)
    except (ValueError, struct.error) as error:
        return TextBlock(text=words_for(block, str(error)))


def sound(block: DataBlock) -> DataBlock:
    """The block, under its right type. Raises ValueError or struct.error for one that no provider takes: it says why.
    What an address leads to is not looked at."""
    source = block.source
    if not isinstance(source, Base64Source):
        return block
    declared = source.media_type.partition(";")[0].strip().lower()
    data = _decoded(source.data)
    kind = _as_it_is(data, _SAME.get(declared, declared))
    if kind in IMAGES:
        _check_image(kind, data, len(source.data))
    if kind in (source.media_type, declared):
        return block
    return block.model_copy(update={"source": source.model_copy(update={"media_type": kind})})


def _decoded(text: str) -> bytes:
    if not text:
        raise ValueError("it is empty")
    try:
        # Without line breaks: MIME has them, and providers refuse them as well as other strange characters.
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not valid base64") from None


def _kind_of(data: bytes) -> str:
    """By its first bytes; empty for what is not known here."""
    for kind, starts in _STARTS.items():
        if data.startswith(starts):
            return kind
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    return "application/pdf" if b"%PDF-" in data[:1024] else ""


def _as_it_is(data: bytes, declared: str) -> str:
    """Its kind. Of one image that calls itself another nothing is lost; a page of HTML that does is no image."""
    kind = _kind_of(data)
    if declared in IMAGES or declared == "application/pdf" or (kind and declared.startswith("audio/")):
        if kind.partition("/")[0] != declared.partition("/")[0]:
            found = kind or f"something else (it begins with {data[:8].hex(' ')})"
            raise ValueError(f"it is not {declared}, but {found}")
        return kind
    return declared


def _check_image(kind: str, data: bytes, base64_characters: int) -> None:
    if base64_characters > LONGEST_BASE64:
        raise ValueError(f"it has {len(data) // 1000} kB, and {LONGEST_BASE64 * 3 // 4000} kB are taken")
    if kind == "image/png":
        _check_parts(data)
    try:
        width, height = size_in(data)
    except (ValueError, struct.error):
        raise ValueError(f"it is not a valid {kind.partition('/')[2].upper()}: its size can't be read") from None
    if not (width > 0 and height > 0):
        raise ValueError("it has no pixels")
    if max(width, height) > MOST_PIXELS_A_SIDE:
        raise ValueError(f"it has {width} x {height} pixels, and {MOST_PIXELS_A_SIDE} a side are taken")


def _check_parts(data: bytes) -> None:
    """Of a PNG, whose parts have checksums. In those that may be missing every reader passes over damage."""
    at, last = len(_PNG_HEAD), b""
    while last != b"IEND":
        if len(data) < at + 12:
            raise ValueError("it is not a valid PNG: its end is missing")
        length, last = struct.unpack(">I4s", data[at : at + 8])
        end = at + 12 + length
        if len(data) < end:
            raise ValueError("it is not a valid PNG: its end is missing")
        damaged = zlib.crc32(data[at + 4 : end - 4]) != struct.unpack(">I", data[end - 4 : end])[0]
        if damaged and last[:1].isupper():
            raise ValueError(f"it is not a valid PNG: its part {last.decode('latin-1')!r} is damaged")
        at = end


_STARTS: Mapping[str, bytes | tuple[bytes, ...]] = {
    "image/png": _PNG_HEAD,
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": (b"GIF87a", b"GIF89a"),
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/ogg": b"OggS",
    "audio/flac": b"fLaC",
}
