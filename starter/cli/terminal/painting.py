"""Paints text at the end of a terminal again and again, and takes it away without a trace.

A terminal that becomes narrower may break the lines anew that it shows. Then they take more rows than were painted, and
whoever goes up by the old number leaves a part of them standing: so it is counted at the width of the moment.
"""

import os
from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments

_NEVER_BREAKS = ("linux", "vt100", "vt220")
"""Values of TERM of terminals that cut what became too long."""


class Painting:
    """At the end of a console's text; its cursor stays behind it."""

    def __init__(self) -> None:
        self._lines: list[int] = []
        """Cells of each line that stands there."""
        self._width = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def paint(self, console: Console, what: RenderableType) -> None:
        """In the place of what stood there. Each line has to be shorter than the terminal is wide."""
        drawn, cells = draw(console, what)
        taken_away = self._up(console)
        self._lines, self._width = cells, console.width
        _write(console, taken_away + drawn)

    def clear(self, console: Console) -> None:
        if self._lines:
            _write(console, self._up(console))
            self._lines = []

    def _up(self, console: Console) -> str:
        if not self._lines:
            return ""
        rows = min(rows_of(self._lines, self._width, console.width), console.height)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"


def draw(console: Console, what: RenderableType) -> tuple[str, list[int]]:
    """As it is written to the terminal, without a newline at its end; and the cells of each of its lines."""
    lines = [without_blank_end(line) for line in console.render_lines(what, pad=False)]
    with console.capture() as captured:
        console.print(Segments(list(joined(lines))), end="")
    return captured.get(), [sum(segment.cell_length for segment in line) for line in lines]


def without_blank_end(line: list[Segment]) -> list[Segment]:
    """Spaces at the end are cells like others: with them a line would be longer than what is seen of it."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style)
    return kept


def joined(lines: Sequence[list[Segment]]) -> Iterator[Segment]:
    for number, line in enumerate(lines):
        if number:
            yield Segment.line()
        yield from line


def _write(console: Console, text: str) -> None:
    console.file.write(text)
    console.file.flush()


def rows_of(cells: list[int], painted_at: int, width: int) -> int:
    """Rows that lines of so many cells take, painted at a width, now that the terminal may have another one."""
    if width >= painted_at or not breaks_anew():
        return len(cells)
    return sum(max(-(-each // max(width, 1)), 1) for each in cells)


def breaks_anew() -> bool:
    """Whether the terminal lays long lines out anew when it becomes narrower: most do; xterm and screen cut them."""
    inside = "TMUX" in os.environ
    cuts = "XTERM_VERSION" in os.environ or "STY" in os.environ or os.environ.get("TERM", "") in _NEVER_BREAKS
    return inside or not cuts
