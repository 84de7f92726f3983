"""A terminal's screen that became wider or narrower: cut, as xterm does it, or laid out again, as most others do."""

import pyte


def laid_out_again(screen: pyte.HistoryScreen, columns: int, rows: int, history: int) -> pyte.HistoryScreen:
    """Its lines on a screen of another size, the cursor behind the last one; colours are lost.

    A line that fills its row goes on in the next one.
    """
    past = ["".join(line[x].data for x in range(screen.columns)) for line in screen.history.top]
    here = screen.display[: screen.cursor.y + 1]
    lines = [""]
    for row in [*past, *here]:
        text = row.rstrip()
        lines[-1] += text
        if len(text) < screen.columns:
            lines.append("")
    lines.pop()
    again = pyte.HistoryScreen(columns, rows, history=history, ratio=0.5)
    pyte.Stream(again).feed("\r\n".join(lines))
    return again


def shown(screen: pyte.HistoryScreen) -> str:
    """Scrolled lines and the screen."""
    past = ["".join(line[x].data for x in range(screen.columns)) for line in screen.history.top]
    return "\n".join(line.rstrip() for line in [*past, *screen.display]).rstrip()
