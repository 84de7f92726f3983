"""Keeps what came of a reply that was cut off: the pieces that clients have read, as blocks of a transcript."""

from collections.abc import Callable

from longhaul.activities.models.model import Delta
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock


class HalfSaid:
    """Hears the pieces of one attempt, and passes them on."""

    def __init__(self, hears: Callable[[Delta], None]) -> None:
        self._hears = hears
        self._blocks: dict[int, list[Delta]] = {}

    def hear(self, delta: Delta) -> None:
        self._blocks.setdefault(delta.index, []).append(delta)
        self._hears(delta)

    def blocks(self) -> tuple[TextBlock | ThinkingBlock, ...]:
        """Text and thinking as far as they came, in order. The thinking has no signature, so no provider is sent it."""
        made: list[TextBlock | ThinkingBlock] = []
        for pieces in self._blocks.values():
            text = "".join(piece.text for piece in pieces)
            if pieces[0].kind == "text" and text.strip():
                made.append(TextBlock(text=text))
            elif pieces[0].kind == "thinking" and text:
                made.append(ThinkingBlock(thinking=text))
        return tuple(made)

    def calls(self) -> tuple[str, ...]:
        """The tools of calls whose arguments had begun: half a call is none."""
        begun = (pieces for pieces in self._blocks.values() if pieces[0].kind == "tool_call")
        return tuple(next((piece.tool_name for piece in pieces if piece.tool_name), "?") for pieces in begun)
