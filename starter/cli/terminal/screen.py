"""The terminal, the pipe or the JSON reader that a command talks to.

Below the printed text of a terminal some lines change: the paragraph that grows, the calls that run, how far it is.
Whoever looks elsewhere is told by the terminal that something waits.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from longhaul.starter.cli.terminal.sounds import Sounds
from longhaul.starter.cli.terminal.text_layout import MarkdownText, Painting, folded, joined

Notifications = Literal["auto", "osc9", "osc777", "off"]
LONGEST = 120
_OSC9 = frozenset({"iterm.app", "wezterm", "ghostty", "warpterminal"})
"""Names that terminals give themselves in TERM_PROGRAM."""
_OSC777_TERMS = ("foot", "rxvt")
"""How TERM begins in others."""
_STEERS = str.maketrans({";": ",", "<": "(", ">": ")", "&": "+"})
"""`;` parts the fields of OSC 777, and some desktops read a notification as markup."""


def notification(text: str, notifications: Notifications, environment: Mapping[str, str]) -> str:
    """What makes this terminal tell the desktop; empty where it does not know how, and a terminal that knows neither
    might print it. `text`: on one line; of what could steer a terminal nothing is left in it."""
    said = "".join(char for char in text.translate(_STEERS) if char.isprintable())[:LONGEST]
    match _kind(environment) if notifications == "auto" else notifications:
        case "osc9":
            # Behind `9;` a number is another command of some terminals, so no name stands there.
            return f"\x1b]9;Longhaul: {said}\x07"
        case "osc777":
            return f"\x1b]777;notify;Longhaul;{said}\x07"
        case _:
            return ""


def _kind(environment: Mapping[str, str]) -> Notifications:
    # tmux and screen keep the sequence to themselves, and the variables may be those of the terminal around them.
    if environment.get("TMUX") or environment.get("STY"):
        return "off"
    term = environment.get("TERM", "")
    if environment.get("TERM_PROGRAM", "").lower() in _OSC9 or term == "xterm-kitty":
        return "osc9"
    return "osc777" if term.startswith(_OSC777_TERMS) else "off"


Part = Literal["text", "running", "pace", "status"]
ORDER: tuple[Part, ...] = ("text", "running", "pace", "status")
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
        """All but the status, which is not a reply's."""
        self._parts = {name: part for name, part in self._parts.items() if name == "status"}
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


PIPE_WIDTH = 200
"""Cells of a result line where no terminal says how wide it is."""
PAINT_SECONDS = 0.06
IDLE_PAINTS = 8
"""Times that nothing may have changed before it is painted all the same: times that run are shown in it."""
Found = TypeVar("Found")


class Screen:
    """`show` writes for people and is silent under --json; `document` writes the one JSON document."""

    whole_by = ""
    """What shows all that a call has answered, where somebody may type it here; else it is a command."""
    notifications: Notifications = "auto"
    """How the terminal tells the desktop that somebody is waited for."""

    def __init__(self, *, as_json: bool = False, play: bool = False) -> None:
        """`play`: sound too, beside keeping it."""
        self.as_json = as_json
        self.sounds = Sounds(play=play)
        self.out = Console(highlight=False, markup=False, emoji=False)
        self.err = Console(highlight=False, markup=False, emoji=False, stderr=True)
        self.below = BottomLines()
        self._open_line = False
        self._aside = False
        """Something else has the terminal for itself."""
        self._painting = Painting()

    @property
    def width(self) -> int:
        return self.out.width if self.out.is_terminal else PIPE_WIDTH

    @property
    def answers(self) -> bool:
        """Whether a person sits there who can be asked."""
        return not self.as_json and os.isatty(0) and os.isatty(1)

    @property
    def shows_live(self) -> bool:
        """Whether text is shown piece by piece: elsewhere it comes whole, so that nothing has to be taken back."""
        return not self.as_json and self.out.is_terminal

    @property
    def renders(self) -> bool:
        """Whether text is laid out, and what changes is painted over: not in a log, nor where no cursor can move."""
        return self.shows_live and not self.out.is_dumb_terminal and "CI" not in os.environ

    def say(self, piece: RenderableType) -> None:
        """Go on in the same line; the next thing that is shown begins a new one."""
        if self.as_json:
            return
        self.out.print(piece, soft_wrap=True, end="")
        self._open_line = True

    def end_line(self) -> None:
        """If something was said in it."""
        if self._open_line:
            self._open_line = False
            self.out.print()

    def show(self, *lines: RenderableType) -> None:
        if self.as_json:
            return
        self._put(self.out, lines)

    def show_folded(self, *lines: Text) -> None:
        """As `show`, in rows that break no word: for what is read, and not copied."""
        self.show(*(self._in_rows(self.out, line) for line in lines))

    def show_fields(self, *fields: Text) -> None:
        """What stands side by side in a list: in one line, or where that has no room, each in a line of its own, whole,
        for it may be copied."""
        line = Text("  ").join(fields)
        if line.cell_len <= self.width or not self.out.is_terminal:
            self.show(line)
        else:
            self.show(*(Text("  " * bool(number)).append_text(each) for number, each in enumerate(fields)))

    def in_rows(self, question: str) -> str:
        """The same of one behind which the answer is typed."""
        return f"{self._in_rows(self.out, Text(question.rstrip())).plain} "

    @staticmethod
    def _in_rows(console: Console, line: Text) -> Text:
        return folded(line, console) if console.is_terminal and not console.is_dumb_terminal else line

    def remark(self, line: Text | str) -> None:
        """Beside the matter, so on stderr; in rows, too."""
        self._put(self.err, [self._in_rows(self.err, Text(line) if isinstance(line, str) else line)])

    def document(self, value: Any) -> None:
        """Only under --json."""
        if self.as_json:
            write_json(value)

    @asynccontextmanager
    async def lively(self) -> AsyncIterator[None]:
        """What stands below is painted inside, and is gone afterwards."""
        painting = asyncio.create_task(self._keep_painting())
        try:
            yield
        finally:
            painting.cancel()
            self.below.clear()
            self.hide()

    async def aside(self, work: Callable[[], Awaitable[Found]]) -> Found:
        """Do what needs the terminal for itself, such as asking: nothing is painted meanwhile."""
        self.hide()
        self._aside = True
        try:
            return await work()
        finally:
            self._aside = False

    def ring(self, why: str) -> None:
        """Call somebody who looks elsewhere, and say why where the terminal can tell the desktop."""
        if self.renders:
            self.out.bell()
            self.out.file.write(notification(why, self.notifications, os.environ))
            self.out.file.flush()

    def hide(self) -> None:
        """Take away what stands below, until it is painted again."""
        self._painting.clear(self.out)

    def paint(self) -> None:
        if self._aside:
            return
        if self.below:
            self._painting.paint(self.out, self.below)
        else:
            self.hide()

    async def _keep_painting(self) -> None:
        idle = 0
        while self.renders:
            idle = 0 if self.below.changed else idle + 1
            if idle % IDLE_PAINTS == 0:
                self.below.changed = False
                self.paint()
            await asyncio.sleep(PAINT_SECONDS)

    def _put(self, console: Console, lines: Iterable[RenderableType]) -> None:
        self.end_line()
        painted = bool(self._painting)
        self._painting.clear(self.out)
        for line in lines:
            self._print(console, line)
        if painted:
            self.paint()

    def _print(self, console: Console, line: RenderableType) -> None:
        # Wrapped by the terminal itself: then a copied command is one line again, and a pipe gets whole lines.
        console.print(line, soft_wrap=not isinstance(line, MarkdownText))


def write_json(value: Any) -> None:
    """One JSON document on one line. ASCII only: a lone surrogate or a hostile mark comes out as its escape."""
    sys.stdout.write(json.dumps(to_jsonable_python(value, fallback=_plain)) + "\n")
    sys.stdout.flush()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
