"""Output of a program, masked before it is shortened: what is cut out of the middle may have half of a secret in it."""

import codecs

from longhaul.activities.masking.masker import Masker
from longhaul.activities.masking.stream import MaskedStream
from longhaul.activities.process.output_truncation import ClippedBytes


class MaskedBytes:
    """A sink in front of another one. What may be the beginning of a secret comes late; `end` brings the rest."""

    def __init__(self, inner: ClippedBytes, masker: Masker) -> None:
        self.inner = inner
        self._stream = MaskedStream(masker)
        # Bytes that are no UTF-8 come out as they went in.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    @property
    def total_bytes(self) -> int:
        return self.inner.total_bytes

    @property
    def full(self) -> bool:
        return self.inner.full

    def add(self, chunk: bytes) -> None:
        self._pass(self._stream.feed(self._decoder.decode(chunk)))

    def end(self) -> None:
        """Nothing more comes."""
        self._pass(self._stream.feed(self._decoder.decode(b"", final=True)) + self._stream.end())

    def _pass(self, text: str) -> None:
        if text:
            self.inner.add(text.encode("utf-8", "surrogateescape"))
