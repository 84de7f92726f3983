"""Text writers bring a text onto a screen while it is being made: piece by piece, or laid out with its growing end
below."""

from collections.abc import Callable
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from longhaul.starter import render
from longhaul.starter.cli.terminal.markdown import MarkdownText
from longhaul.starter.cli.terminal.markdown_blocks import MarkdownBlocks
from longhaul.starter.cli.terminal.screen import Screen

PIECES: dict[str, Callable[[str], Text]] = {
    "TEXT_BLOCK_DELTA": render.said,
    "THINKING_BLOCK_DELTA": render.thought,
}
DRAWN_CHARS = 4_000
"""Of a block that is longer, its end alone is drawn while it grows, and as plain text."""


class TextWriter(Protocol):
    def say(self, kind: str, piece: str) -> None:
        """The next piece; `kind` is the type of the event that brought it."""

    def end(self) -> None:
        """The text is complete."""

    def drop(self) -> bool:
        """It will not be completed. Whether some of it stays on the screen."""
        ...


class PlainWriter:
    """Each piece at once, as it is. What was shown stays."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def say(self, kind: str, piece: str) -> None:
        self._screen.say(PIECES[kind](piece))

    def end(self) -> None:
        self._screen.end_line()

    def drop(self) -> bool:
        self._screen.end_line()
        return True


class MarkdownWriter:
    """A block is printed when it is finished; the one that grows stands below."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._kind = ""
        self._paragraphs = MarkdownBlocks()
        self._printed = 0

    def say(self, kind: str, piece: str) -> None:
        if kind != self._kind:
            self.end()
        self._kind = kind
        for block in self._paragraphs.feed(piece):
            self._print(block)
        self._screen.below.put("text", self)

    def end(self) -> None:
        if (rest := self._paragraphs.rest).strip():
            self._print(rest)
        self.drop()

    def drop(self) -> bool:
        stays = self._printed > 0
        self._paragraphs = MarkdownBlocks()
        self._printed = 0
        self._screen.below.put("text", None)
        return stays

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The block that grows."""
        rest = self._paragraphs.rest
        if len(rest) > DRAWN_CHARS:
            yield PIECES[self._kind](rest[-DRAWN_CHARS:])
        elif rest.strip():
            yield _laid_out(self._kind, rest)

    def _print(self, block: str) -> None:
        if self._printed:
            self._screen.show(Text())
        self._printed += 1
        self._screen.show(_laid_out(self._kind, block))


def _laid_out(kind: str, block: str) -> RenderableType:
    return MarkdownText(block) if kind == "TEXT_BLOCK_DELTA" else PIECES[kind](block.strip("\n"))


def writer_for(screen: Screen) -> TextWriter:
    return MarkdownWriter(screen) if screen.renders else PlainWriter(screen)
