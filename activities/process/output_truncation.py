"""Output that does not fit: its head and its tail are kept, and the gap says how much is missing. Errors in words."""

CHARACTER_CAP = 30_000
BYTES_PER_CHARACTER = 4
"""At most, in UTF-8: so many bytes are kept for each character that may be shown."""


class ClippedBytes:
    """A stream of any length, held in bounded memory: the first and the last bytes, and how many came in all."""

    def __init__(self, character_cap: int = CHARACTER_CAP) -> None:
        self._character_cap = character_cap
        self._half = character_cap * BYTES_PER_CHARACTER // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self.full = False

    def add(self, chunk: bytes) -> None:
        """Take the next piece."""
        self.total_bytes += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        # Twice the half, so that a stream of small pieces does not move the tail each time.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        """What was kept, as text of at most the cap: NUL and what is not UTF-8 are shown as �."""
        lost_bytes = self.total_bytes - len(self._head) - len(self._tail)
        if not lost_bytes:
            return clipped(_decoded(bytes(self._head + self._tail)), self._character_cap)
        # Each half holds more bytes than what is shown of it can have, so a character torn by the cut is not shown.
        size = f"{self.total_bytes} bytes in all"
        return _joined(_decoded(bytes(self._head)), _decoded(bytes(self._tail)), self._character_cap, size)


def clipped(text: str, character_cap: int = CHARACTER_CAP) -> str:
    """`text` itself if it fits, else its head and tail around a marker; never longer than the cap."""
    if len(text) <= character_cap:
        return text
    return _joined(text, text, character_cap, f"{len(text)} characters in all")


def _joined(head: str, tail: str, character_cap: int, size: str) -> str:
    marker = f"\n\n[… the middle of the output is left out here: {size}, only its start and its end are shown …]\n\n"
    kept = character_cap - len(marker)
    return head[: kept // 2] + marker + tail[-(kept - kept // 2) :]


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "�")


def words_of(error: BaseException, character_cap: int = 10_000) -> str:
    """Its kind, and what it says. An exception is somebody else's code too: saying it may raise."""
    try:
        said = str(error)
    except BaseException as worse:  # noqa: BLE001  it would take the place of the one that is told of
        said = f"(saying why failed with {type(worse).__name__})"
    return clipped(f"{type(error).__name__}: {said}" if said else type(error).__name__, character_cap)
