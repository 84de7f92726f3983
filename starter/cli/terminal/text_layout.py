"""Lays text out on a terminal: painted again and again at its end, folded at spaces, and Markdown, also while it
grows.

No text from outside can steer the terminal, begin a row as if it were ours, or hide anything.
"""

import os
import re
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment, Segments
from rich.text import Text

from longhaul.starter.visible import harmless

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
    if width >= painted_at or not breaks_again():
        return len(cells)
    return sum(max(-(-each // max(width, 1)), 1) for each in cells)


def breaks_again() -> bool:
    """Whether the terminal lays long lines out again when it becomes narrower: most do; xterm and screen cut them."""
    inside = "TMUX" in os.environ
    cuts = "XTERM_VERSION" in os.environ or "STY" in os.environ or os.environ.get("TERM", "") in _NEVER_BREAKS
    return inside or not cuts


LEAST_CELLS = 8
"""Of a row, however narrow the terminal is."""
_FROM_OUTSIDE = re.compile(r"  [│+\-@\\ ]")
"""How lines behind a bar begin, and those of a diff: where one of them goes on, it is marked."""
_GOES_ON = "  ┆ "
_COMMAND = re.compile(r" *([a-z ]+: )?longhaul ")
"""How a line begins that is there to be copied."""


def folded(text: Text, console: Console) -> Text:
    """In rows that fit the console; each goes on below its own line's beginning."""
    rows = [row for line in text.split("\n", allow_blank=True) for row in _rows(line, console)]
    return Text("\n").join(rows)


def _rows(line: Text, console: Console) -> list[Text]:
    if line.cell_len <= console.width or _COMMAND.match(line.plain):
        return [line]
    if _FROM_OUTSIDE.match(line.plain):
        mark, goes_on = line[:4], Text(_GOES_ON, "dim")
    else:
        own = len(line.plain) - len(line.plain.lstrip())
        mark, goes_on = line[:own], Text(" " * (own + 2))
    room = max(console.width - goes_on.cell_len, LEAST_CELLS)
    rest = line[len(mark) :]
    return [Text.assemble(goes_on if number else mark, row) for number, row in enumerate(rest.wrap(console, room))]


class MarkdownText:
    """One block or more. A link shows where it leads to, and none can be clicked that says another thing."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        laid_out = Markdown(harmless(self._text), hyperlinks=False, code_theme="ansi_dark")
        lines = console.render_lines(laid_out, options.update(height=None), pad=False)
        while lines and not _says_something(lines[-1]):
            lines.pop()
        first = next((number for number, line in enumerate(lines) if _says_something(line)), 0)
        for line in map(without_blank_end, lines[first:]):
            # Once more: an entity such as `&#x202e;` becomes its character only while it is laid out.
            yield from (Segment(harmless(segment.text), segment.style) for segment in line if not segment.control)
            yield Segment.line()


def _says_something(line: list[Segment]) -> bool:
    return any(segment.text.strip() for segment in line)


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownBlocks:
    """One text, fed piece by piece; gives each block when the next one has started."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""
        """The line that has no end yet."""
        self._fence = ""
        self._blank = False

    @property
    def rest(self) -> str:
        """What was given of no block yet."""
        return "\n".join([*self._lines, self._open])

    def feed(self, piece: str) -> list[str]:
        """The blocks that are finished by it."""
        *lines, self._open = (self._open + piece).split("\n")
        done = []
        for line in lines:
            done.append(self._ended_by(line))
            self._mind_fence(line)
            self._lines.append(line)
            self._blank = not line.strip()
        done.append(self._ended_by(self._open))
        return [block for block in done if block.strip()]

    def _ended_by(self, line: str) -> str:
        """The block that ends before this line, or its beginning; empty for most lines."""
        # An indented line goes on with the item of a list, and a fenced block may hold blank lines.
        if not self._blank or self._fence or not line or line[0].isspace():
            return ""
        done, self._lines, self._blank = "\n".join(self._lines).strip("\n"), [], False
        return done

    def _mind_fence(self, line: str) -> None:
        found = _FENCE.match(line)
        if not self._fence:
            self._fence = found[1] if found else ""
        elif found and found[1].startswith(self._fence) and not line.strip().strip(self._fence[0]):
            self._fence = ""
