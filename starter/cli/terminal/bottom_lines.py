"""The lines below the printed text of a terminal change: the paragraph that grows, the calls that run, how far it
is."""

from collections.abc import Iterable
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from longhaul.starter.cli.terminal.painting import joined

Part = Literal["text", "running", "pace"]
ORDER: tuple[Part, ...] = ("text", "running", "pace")
ROOM_LINES = 3
"""Of the terminal that stay free: for the line that a person types, and for what was printed last."""
LEAST_LINES = 4
MOST_LINES = 12
"""Also of a high terminal: what has left it at its upper edge, when it becomes smaller, can't be taken away."""


class BottomLines:
    """Parts that draw themselves whenever they are painted."""

    def __init__(self) -> None:
        self._parts: dict[Part, RenderableType] = {}
        self.changed = False
        """Since whoever paints has set it back."""

    def put(self, name: Part, part: RenderableType | None) -> None:
        """None takes it away. To be called again when it draws itself in another way, time apart."""
        self.changed = True
        if part is None:
            self._parts.pop(name, None)
        else:
            self._parts[name] = part

    def clear(self) -> None:
        self._parts.clear()
        self.changed = True

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # A line as wide as the terminal would be wrapped by some, and then more would be erased than was drawn.
        options = options.update(width=max(options.max_width - 1, 1), height=None)
        drawn = {name: console.render_lines(self._parts[name], options, pad=False) for name in self._named()}
        most = min(max(console.height - ROOM_LINES, LEAST_LINES), MOST_LINES)
        rest = sum(len(lines) for name, lines in drawn.items() if name != "text")
        if "text" in drawn:
            drawn["text"] = _end_of(drawn["text"], max(most - rest, 1))
        every = [line for lines in drawn.values() for line in lines][-most:]
        yield from joined(every)

    def _named(self) -> Iterable[Part]:
        return [name for name in ORDER if name in self._parts]


def _end_of(lines: list[list[Segment]], most: int) -> list[list[Segment]]:
    """Its end is where it grows."""
    return lines if len(lines) <= most else lines[len(lines) - most :]
