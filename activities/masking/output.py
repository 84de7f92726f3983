"""Masks secrets in the output of a worker's own process: a tool's `print`, a warning, a traceback.

What a program that a tool has started writes to the same terminal goes past this.
"""

import codecs
import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from longhaul.activities.masking.masker import Masker
from longhaul.activities.masking.stream import MaskedStream

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@contextmanager
def masked_output(masker: Masker) -> Iterator[None]:
    """Within the block stdout and stderr are masked. What may be the beginning of a secret comes late, at the latest at
    the end of the block."""
    if not masker:
        yield
        return
    before = sys.stdout, sys.stderr
    masked = tuple(MaskedOutput(stream, masker) for stream in before)
    sys.stdout, sys.stderr = masked
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in masked:
            stream.end()


class MaskedOutput(io.TextIOBase):
    """In front of a stream of text. Threads may write at once."""

    def __init__(self, inner: TextIO, masker: Masker) -> None:
        self._inner = inner
        self._stream = MaskedStream(masker)
        self._lock = threading.Lock()
        self._bytes = _MaskedBytes(self)

    def write(self, text: str, /) -> int:
        with self._lock:
            self._inner.write(self._stream.feed(text))
        return len(text)

    def end(self) -> None:
        """Let out the rest."""
        with self._lock:
            self._inner.write(self._stream.end())
            self._inner.flush()

    def flush(self) -> None:
        with self._lock:
            self._inner.flush()

    @property
    def buffer(self) -> "_MaskedBytes":
        """For those who write bytes."""
        return self._bytes

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute
        return self._inner.encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._inner.isatty()

    def fileno(self) -> int:
        return self._inner.fileno()


class _MaskedBytes(io.RawIOBase):
    def __init__(self, text: MaskedOutput) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: "ReadableBuffer", /) -> int:
        given = bytes(data)
        self._text.write(self._decoder.decode(given))
        return len(given)

    def flush(self) -> None:
        self._text.flush()

    def writable(self) -> bool:
        return True
