"""Output of a program, and the progress of a tool: masked first, told line by line while it comes, and shortened to
head and tail where it does not fit. Progress is shown to whoever follows the session, and kept nowhere.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from longhaul.activities.masker import MaskedStream, Masker

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
            return clipped(as_on_terminal(_decoded(bytes(self._head + self._tail))), self._character_cap)
        # Each half holds more bytes than what is shown of it can have, so a character torn by the cut is not shown.
        size = f"{self.total_bytes} bytes in all"
        head, tail = as_on_terminal(_decoded(bytes(self._head))), as_on_terminal(_decoded(bytes(self._tail)))
        return _joined(head, tail, self._character_cap, size)


def clipped(text: str, character_cap: int = CHARACTER_CAP) -> str:
    """`text` itself if it fits, else its head and tail around a marker; never longer than the cap."""
    if len(text) <= character_cap:
        return text
    return _joined(text, text, character_cap, f"{len(text)} characters in all")


def as_on_terminal(text: str) -> str:
    """`text` with each line that was drawn again over itself, as progress bars are, as a terminal shows it last.
    Words of warning that were drawn over stay, as lines of their own; the last line counts what is gone."""
    if "\r" not in text.replace("\r\n", "\n"):
        return text
    lines, gone = list[str](), 0
    for line in text.split("\n"):
        drawn = [state for state in line.removesuffix("\r").split("\r") if state.strip()]
        if line.removesuffix("\r").count("\r") == 0:
            lines.append(line)
            continue
        warnings = [state for state in dict.fromkeys(drawn[:-1]) if _WARNING.search(state)]
        gone += max(len(drawn) - 1 - len(warnings), 0)
        lines += [*warnings, _drawn_over(drawn)]
    note = f"[{gone} earlier states of lines that were drawn again, as of progress bars, are left out]"
    return "\n".join(lines) + (f"{'' if lines[-1] == '' else chr(10)}{note}" if gone else "")


_WARNING = re.compile(r"warn|error|fail|fatal|exception|denied|abort|retry", re.IGNORECASE)
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _drawn_over(drawn: Sequence[str]) -> str:
    """A shorter state leaves the end of a longer one visible, unless the line was cleared or holds other controls."""
    shown = ""
    for state in drawn:
        plain = _ESCAPE.search(state) is None and _ESCAPE.search(shown) is None
        shown = state + shown[len(state) :] if plain else state
    return shown


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


Tell = Callable[[str], None]

_tell: ContextVar[Tell | None] = ContextVar("longhaul_progress", default=None)


def progress(text: str) -> None:
    """Show text, with its line ends, to people who follow the running call. Call it from any tool, also from a plain
    function in its thread.

    It never waits and never raises. The model does not read the text, and the tool's result replaces it. Outside of a
    call it does nothing.
    """
    tell = _tell.get()
    if tell is not None and text:
        tell(text)


@contextmanager
def told_to(tell: Tell) -> Iterator[None]:
    """Hand over what is told inside, in this task and in what it starts; nothing more afterwards: a thread that runs on
    would else show pieces of a call that is over."""
    over = False

    def tell_until_over(text: str) -> None:
        if not over:
            tell(text)

    token = _tell.set(tell_until_over)
    try:
        yield
    finally:
        over = True
        _tell.reset(token)


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
