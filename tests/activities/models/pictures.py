"""Looks at a picture's bytes as providers do."""

import struct
import zlib
from collections.abc import Iterator


def kind_of(data: bytes) -> str:
    starts = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
    return next((kind for start, kind in starts.items() if data.startswith(start)), "")


def is_picture(data: bytes) -> bool:
    """Whether all of its pixels can be read; of a JPEG, whether it has an end."""
    if data.startswith(b"\xff\xd8\xff"):
        return data.endswith(b"\xff\xd9")
    if not data.startswith(b"\x89PNG"):
        return data.startswith(b"GIF8")
    try:
        pixels = b"".join(body for kind, body in _chunks(data) if kind == b"IDAT")
        return bool(zlib.decompress(pixels))
    except (ValueError, struct.error, zlib.error):
        return False


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body, crc = data[at + 8 : at + 8 + length], data[at + 8 + length : at + 12 + length]
        if struct.pack(">I", zlib.crc32(kind + body)) != crc:
            raise ValueError(kind)
        yield kind, body
        at += 12 + length
