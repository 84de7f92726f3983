"""Folds long lines at spaces, so that a narrow terminal breaks no word, and no text from outside begins a row as ours.

Commands stay as they are: a row that a terminal has broken is one line again when it is pasted.
"""

import re

from rich.console import Console
from rich.text import Text

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
