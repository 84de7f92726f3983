"""Text on a terminal while it is being made, piece by piece or laid out with its growing end, and what becomes of it
when the record has it.
"""

from collections.abc import Callable
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter import render
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.text_layout import MarkdownBlocks, MarkdownText
from longhaul.starter.client.reading.event_reader import UNAVAILABLE
from longhaul.starter.client.reading.live_stream import LOST, RESTARTED
from longhaul.starter.visible import harmless, one_line

PIECES: dict[str, Callable[[str], Text]] = {
    "TEXT_BLOCK_DELTA": render.model_text,
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


LINES_SHOWN = 40
"""Of a tool's output while it runs."""


class StreamedText:
    """Shows live events, and of recorded text what was not shown yet."""

    def __init__(self, screen: Screen, writer: TextWriter | None = None) -> None:
        self._screen = screen
        self._writer = writer or PlainWriter(screen)
        self._blocks: list[tuple[str, str, list[str]]] = []
        """Type of the deltas, block, and what was shown of it, in the order of their beginning."""
        self._output: dict[str, tuple[str, int]] = {}
        """Of a running call: a line that has no end yet, and how many came."""
        self._told: dict[str, int] = {}
        """Of a running call: how many lines that say something were shown."""

    def live(self, event: AgentEvent) -> None:
        """Show it, where that is a terminal."""
        if event.type == "CUSTOM":
            self._happened(event)
        elif self._screen.shows_live and event.type in PIECES:
            self._say(event)
        elif self._screen.shows_live and event.type == "TOOL_RESULT_TEXT_DELTA":
            self._tell(event)

    def recorded(self, event: AgentEvent) -> None:
        """The whole text of a block."""
        shown = self._shown_text(event.type)
        if shown and event.delta.startswith(shown):
            if rest := event.delta[len(shown) :]:
                self._writer.say(event.type, rest)
            self._writer.end()
            return
        if shown:
            self._writer.drop()
            self._screen.show(Text("(not as it was shown; this counts:)", style="yellow"))
        self._writer.say(event.type, event.delta)
        self._writer.end()

    def called(self) -> None:
        """The model call is recorded to its end."""
        self._blocks = []
        self._writer.drop()

    def left(self) -> None:
        """Nobody looks any more."""
        self._writer.end()

    def returned(self, call_id: str) -> int:
        """A call has its result. How many lines of it that say something stand on the screen."""
        self._output.pop(call_id, None)
        return self._told.pop(call_id, 0)

    def _say(self, event: AgentEvent) -> None:
        if not self._blocks or self._blocks[-1][1] != event.block_id:
            self._writer.end()
            self._blocks.append((event.type, event.block_id, []))
        self._blocks[-1][2].append(event.delta)
        self._writer.say(event.type, event.delta)

    def _shown_text(self, kind: str) -> str:
        """Of the first block of this kind; blank ones are not recorded."""
        while self._blocks:
            found, _, pieces = self._blocks.pop(0)
            if found == kind and (text := "".join(pieces)).strip():
                return text
        return ""

    def _tell(self, event: AgentEvent) -> None:
        rest, count = self._output.get(event.tool_call_id, ("", 0))
        *lines, rest = (rest + event.delta).split("\n")
        for line in lines[: max(LINES_SHOWN - count, 0)]:
            self._screen.show(Text(f"  │ {harmless(line)}", style="dim"))
            self._told[event.tool_call_id] = self._told.get(event.tool_call_id, 0) + bool(line.strip())
        if count < LINES_SHOWN <= count + len(lines):
            self._screen.show(Text("  │ …", style="dim"))
        self._output[event.tool_call_id] = (rest, count + len(lines))

    def _happened(self, event: AgentEvent) -> None:
        if event.name == UNAVAILABLE and self._screen.shows_live:
            self._screen.remark(Text(f"nothing is shown while it runs: {one_line(str(event.value))}", style="dim"))
        elif event.name == LOST and self._screen.shows_live:
            self._screen.show(Text("(some of this is missing)", style="yellow"))
        elif event.name == RESTARTED and self._screen.shows_live:
            self._blocks = []
            if self._writer.drop():
                self._screen.show(Text("(started again: what was shown of it does not count)", style="yellow"))
