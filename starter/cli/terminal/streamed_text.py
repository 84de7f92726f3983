"""Text on a terminal while it is being made, and what becomes of it when the record has it."""

from rich.text import Text

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.cli.terminal.text_writers import PIECES, PlainWriter, TextWriter
from longhaul.starter.client.reading.following import UNAVAILABLE
from longhaul.starter.client.reading.live_events import LOST, RESTARTED
from longhaul.starter.visible import harmless, one_line

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
        shown = self._shown(event.type)
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

    def _shown(self, kind: str) -> str:
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
            self._screen.remark(Text(f"nothing is shown while it is made: {one_line(str(event.value))}", style="dim"))
        elif event.name == LOST and self._screen.shows_live:
            self._screen.show(Text("(some of this is missing)", style="yellow"))
        elif event.name == RESTARTED and self._screen.shows_live:
            self._blocks = []
            if self._writer.drop():
                self._screen.show(Text("(begun anew: what was shown of it does not count)", style="yellow"))
