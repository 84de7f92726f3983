"""Output of a program that is told line by line while it comes, on its way to where it is kept."""

import codecs

from longhaul.activities.process.masked_bytes import MaskedBytes
from longhaul.activities.process.progress import progress

LONGEST_LINE = 2_000
"""Characters: more without a line's end are told as they are."""
MOST_BYTES = 3_000_000
"""More than live streams show of one call, so nothing beyond needs to be decoded."""


class ToldBytes:
    """A sink in front of the one that keeps. What is told is masked by whoever publishes it."""

    def __init__(self, kept: MaskedBytes) -> None:
        self._kept = kept
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._line = ""

    @property
    def total_bytes(self) -> int:
        return self._kept.total_bytes

    @property
    def full(self) -> bool:
        return self._kept.full

    def add(self, chunk: bytes) -> None:
        self._kept.add(chunk)
        if self.total_bytes > MOST_BYTES:
            return
        self._line += self._decode(chunk).replace("\0", "\ufffd")
        whole = len(self._line) if len(self._line) > LONGEST_LINE else self._line.rfind("\n") + 1
        progress(self._line[:whole])
        self._line = self._line[whole:]

    def end(self) -> None:
        """Nothing more comes: a last line may have no end."""
        self._kept.end()
        progress(self._line)
        self._line = ""
