"""Batches hold what waits to be written to one stream: bounded, in order, neighbouring pieces joined, numbered when it
is taken."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from longhaul.stores.streams.items import PIECES, SETTLED, Item, Kind, encode

MOST_CHARACTERS = 256_000
"""Waiting to be written, of one session."""
MOST_OF_AN_ATTEMPT = 2_000_000
"""Characters: a tool that floods its output is shown no further."""
BATCH_BYTES = 32_000
"""Of one write, about: small enough to be one piece in a file."""
LONGEST_PIECE = 8_000
"""Characters of one line."""
READ_AT_ONCE: frozenset[Kind] = frozenset(("text", "thinking", "output"))
"""What a person reads as it comes."""


@dataclass(slots=True)
class WrittenAttempt:
    """One attempt at a call, as far as it was written."""

    call: str
    turn: int
    attempt: int
    items: int = 0
    characters: int = 0
    dropped: bool = False
    """Since the last item that was taken."""
    digest: Any = field(default_factory=hashlib.sha256)
    """Of all pieces that were written."""


@dataclass(slots=True)
class WaitingPieces:
    kind: Kind
    attempt: WrittenAttempt | None = None
    block: int = 0
    text: str = ""
    tool_call_id: str = ""
    name: str = ""

    def continues(self, other: "WaitingPieces") -> bool:
        """Whether it can be joined to the one before it."""
        return (
            self.kind in PIECES
            and (self.kind, self.block, self.tool_call_id, self.name)
            == (other.kind, other.block, other.tool_call_id, other.name)
            and self.attempt is other.attempt
            and len(self.text) + len(other.text) <= LONGEST_PIECE
        )


def _is_urgent(one: WaitingPieces) -> bool:
    """Also the end of what came in pieces: who has seen the first ones is to see the last before all is recorded."""
    begun = one.attempt is not None and one.attempt.items > 0
    return one.kind in READ_AT_ONCE or one.name == SETTLED or (one.kind == "end" and begun)


class Batches:
    def __init__(self) -> None:
        self._waiting: list[WaitingPieces] = []
        self._characters = 0
        self._urgent = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, new: WaitingPieces) -> None:
        """Pieces that there is no room for are dropped, and that is said; marks are always taken."""
        attempt = new.attempt
        if attempt is not None and new.kind in PIECES:
            attempt.characters += len(new.text)
            if self._characters + len(new.text) > MOST_CHARACTERS or attempt.characters > MOST_OF_AN_ATTEMPT:
                attempt.dropped = True
                return
        if attempt is not None and attempt.dropped:
            attempt.dropped = False
            self._waiting.append(WaitingPieces("lost", attempt))
        self._characters += len(new.text)
        self._urgent = self._urgent or _is_urgent(new)
        if self._waiting and new.continues(self._waiting[-1]):
            self._waiting[-1].text += new.text
        elif not (new.kind == "wake" and not new.name and self._waiting and self._waiting[-1].kind == "wake"):
            self._waiting.append(new)

    @property
    def urgent(self) -> bool:
        """Whether there is something that a person would read as it comes, or somebody waits for."""
        return self._urgent or self._characters > BATCH_BYTES

    def take(self) -> bytes:
        """The lines of the next batch; empty when nothing waits."""
        lines, taken = bytearray(), 0
        while taken < len(self._waiting) and len(lines) < BATCH_BYTES:
            lines += encode(self._numbered(self._waiting[taken]))
            taken += 1
        del self._waiting[:taken]
        self._urgent = any(map(_is_urgent, self._waiting))
        return bytes(lines)

    def _numbered(self, one: WaitingPieces) -> Item:
        self._characters -= len(one.text)
        attempt = one.attempt
        if attempt is None:
            return Item(one.kind, name=one.name, text=one.text)
        index, text = attempt.items, one.text
        attempt.items += 1
        if one.kind in PIECES:
            attempt.digest.update(text.encode("utf-8", "surrogatepass"))
        elif one.kind == "end":
            text = attempt.digest.hexdigest()[:16]
        return Item(
            one.kind, attempt.call, attempt.turn, attempt.attempt, index, one.block, text, one.tool_call_id, one.name
        )
