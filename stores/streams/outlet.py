"""One attempt's way into the live stream, and the mask that each text passes on its way."""

from collections.abc import Callable
from typing import Protocol

from longhaul.stores.streams.buffer import LONGEST_PIECE, WaitingPieces, WrittenAttempt
from longhaul.stores.streams.items import Piece


class Mask(Protocol):
    """Takes one block's text in pieces and gives back what may be shown of it. It may keep the end of a piece back
    until it has seen how it goes on: what it hides may be torn."""

    def feed(self, piece: str) -> str: ...

    def end(self) -> str:
        """What was kept back, when no more comes."""
        ...


class Unmasked:
    """Shows everything."""

    def feed(self, piece: str) -> str:
        return piece

    def end(self) -> str:
        return ""


Put = Callable[[WaitingPieces], None]


class Outlet:
    """What an activity writes to while it works on one attempt. Nothing here waits or raises."""

    def __init__(self, put: Put, mask: Callable[[], Mask], attempt: WrittenAttempt, name: str = "") -> None:
        self._put = put
        self._new_mask = mask
        self._masks: dict[tuple[Piece, int], tuple[Mask, str, str]] = {}
        self._attempt = attempt
        put(WaitingPieces("begin", attempt, name=name))

    def write(self, kind: Piece, text: str, *, block: int = 0, tool_call_id: str = "", name: str = "") -> None:
        """Publish the next piece of a block."""
        mask, *_ = self._masks.get((kind, block), (self._new_mask(), "", ""))
        self._masks[kind, block] = (mask, tool_call_id, name)
        self._publish(kind, mask.feed(text), block, tool_call_id, name)

    def end(self) -> None:
        """The attempt has come to a result; without it, readers take what they have for torn."""
        for (kind, block), (mask, tool_call_id, name) in self._masks.items():
            self._publish(kind, mask.end(), block, tool_call_id, name)
        self._put(WaitingPieces("end", self._attempt))

    def _publish(self, kind: Piece, text: str, block: int, tool_call_id: str, name: str) -> None:
        for start in range(0, len(text), LONGEST_PIECE):
            piece = text[start : start + LONGEST_PIECE]
            self._put(WaitingPieces(kind, self._attempt, block, piece, tool_call_id, name))
