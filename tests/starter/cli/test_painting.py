"""What is painted over at the end of a terminal's text leaves no trace, however the terminal changes meanwhile."""

import io

import pyte
import pytest
from rich.console import Console
from rich.text import Text

from longhaul.starter.cli.terminal.screen import MOST_LINES, BottomLines
from longhaul.starter.cli.terminal.streamed_text import MarkdownWriter
from longhaul.starter.cli.terminal.text_layout import MarkdownText, Painting
from tests.reflowing import laid_out_again, shown
from tests.starter.cli.test_live_screen import Terminal

HISTORY = 500
WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"


class Window:
    """A terminal of some size, and a console that writes to it."""

    def __init__(self, columns: int, rows: int = 24) -> None:
        self.console = Console(file=io.StringIO(), force_terminal=True, width=columns, height=rows, no_color=True)
        self._screen = pyte.HistoryScreen(columns, rows, history=HISTORY, ratio=0.5)

    @property
    def shown(self) -> str:
        self._take()
        return shown(self._screen)

    def becomes(self, columns: int, *, cuts: bool = False) -> None:
        self._take()
        if cuts:
            self._screen.resize(self._screen.lines, columns)
        else:
            self._screen = laid_out_again(self._screen, columns, self._screen.lines, HISTORY)
        self.console.width = columns

    def _take(self) -> None:
        file = self.console.file
        assert isinstance(file, io.StringIO)
        pyte.Stream(self._screen).feed(file.getvalue().replace("\n", "\r\n"))
        file.seek(0)
        file.truncate()


def below(text: str) -> BottomLines:
    part = BottomLines()
    part.put("text", Text(text))
    part.put("pace", Text("step 1"))
    return part


def test_what_is_painted_stands_behind_the_text_once() -> None:
    window, painting = Window(40), Painting()
    window.console.print("printed before")

    for end in range(10, len(WORDS), 7):
        painting.paint(window.console, below(WORDS[:end]))
    painted = window.shown
    painting.clear(window.console)
    window.console.print("printed after")

    assert painted.count("one two") == painted.count("step 1") == 1
    assert window.shown.splitlines() == ["printed before", "printed after"]


@pytest.mark.parametrize("cuts", [False, True])
@pytest.mark.parametrize("widths", [(60, 31), (60, 17), (31, 60), (60, 25, 60, 21, 40)])
def test_a_terminal_of_another_width_keeps_nothing_of_it(
    cuts: bool,
    widths: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.delenv("STY", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("XTERM_VERSION", "XTerm(390)") if cuts else monkeypatch.delenv("XTERM_VERSION", raising=False)
    window, painting = Window(widths[0]), Painting()
    window.console.print("before")

    painting.paint(window.console, below(WORDS))
    for width in widths[1:]:
        window.becomes(width, cuts=cuts)
        painting.paint(window.console, below(f"{WORDS} {width}"))
        assert window.shown.count("one") == window.shown.count("step 1") == 1, window.shown
    painting.clear(window.console)

    assert window.shown == "before"


def test_laid_out_text_has_no_blanks_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    window, painting = Window(60), Painting()
    part = BottomLines()
    part.put("text", MarkdownText("The **tide**.\n\n```\nmake\n```"))
    window.console.print("before")

    painting.paint(window.console, part)
    assert window.shown.splitlines() == ["before", "The tide.", "", "", " make"]
    window.becomes(20)
    painting.clear(window.console)

    assert window.shown == "before"


def test_what_grows_takes_a_dozen_lines_at_most() -> None:
    window = Window(40, rows=100)

    Painting().paint(window.console, below("\n".join(f"line {number}" for number in range(99))))

    assert window.shown.splitlines() == [*(f"line {number}" for number in range(100 - MOST_LINES, 99)), "step 1"]


def test_what_is_printed_meanwhile_comes_before_it() -> None:
    screen = Terminal(width=30)
    writer = MarkdownWriter(screen)
    window = pyte.HistoryScreen(30, 12, history=HISTORY, ratio=0.5)

    writer.say("TEXT_BLOCK_DELTA", "The **tide** comes in, and")
    screen.paint()
    screen.show(Text("a call has ended"))
    screen.remark(Text("and a remark"))
    writer.end()
    screen.hide()
    pyte.Stream(window).feed(screen.file.getvalue().replace("\n", "\r\n"))

    assert shown(window).splitlines() == ["a call has ended", "and a remark", "The tide comes in, and"]
