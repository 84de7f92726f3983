"""Unpacks what a provider has packed, a little at a time, and reads no answer without an end: 300 MB behind a few kB of
gzip would keep the event loop busy for minutes, and no other session of the worker would send a heartbeat."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2

from longhaul.activities.models.failures.status_table import NoReplyError

PACKED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""Encodings, and what zlib calls them."""
PIECE_BYTES = 256_000
"""Unpacked at once, before other calls have their turn."""
LONGEST_ANSWER_BYTES = 100_000_000
"""Of one answer, unpacked: far beyond what a model writes, with each token in an event of its own."""


async def bound(response: Any) -> None:
    """A hook of HTTP clients: from now on the body of `response` is read in bounded pieces."""
    encoding = str(response.headers.get("content-encoding", "")).strip().lower()
    window = PACKED.get(encoding)
    if window is not None:
        del response.headers["content-encoding"]
    response.stream = BoundedStream(response.stream, window, str(response.headers.get("content-type", "")))


class BoundedStream(httpx2.AsyncByteStream, httpx.AsyncByteStream):
    """The bytes of another stream, unpacked. Raises NoReplyError when there are too many."""

    def __init__(self, packed: Any, window: int | None, media_type: str) -> None:
        self._packed = packed
        self._unpacker = None if window is None else zlib.decompressobj(window)
        self._media_type = media_type
        self._read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._packed:
            async for piece in self._unpacked(chunk):
                self._read += len(piece)
                if self._read > LONGEST_ANSWER_BYTES:
                    raise NoReplyError(self._media_type, f"more than {LONGEST_ANSWER_BYTES:,} bytes")
                yield piece

    async def _unpacked(self, chunk: bytes) -> AsyncIterator[bytes]:
        if self._unpacker is None:
            yield chunk
            return
        rest = chunk
        while rest and not self._unpacker.eof:
            try:
                piece = self._unpacker.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from error
            rest = self._unpacker.unconsumed_tail
            if piece:
                yield piece
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._packed.aclose()
