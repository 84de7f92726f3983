"""Says the demo's numbered steps, on a terminal or into a pipe."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock, ToolResultState
from longhaul.starter import render, render_session
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.demo.proof import Cost
from longhaul.starter.render_calls import FAILED_LINES, end_of

INDENT = "   "


class Narrator:
    """Short sentences; every step is numbered."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._steps = 0

    @property
    def has_person(self) -> bool:
        return self._screen.answers

    def step(self, sentence: str) -> None:
        self._steps += 1
        self._screen.show(Text.assemble(f"\n{self._steps}. ", (sentence, "bold")))

    def remark(self, sentence: str) -> None:
        self._screen.show(Text(INDENT + sentence, style="dim"))

    def show(self, shown: Text) -> None:
        """Any text of the agent's, already harmless, below a step."""
        self._screen.show(_indented(shown))

    def calls(self, messages: Sequence[Msg]) -> None:
        """Each call that has a result, with that result, on a line."""
        arguments = {call.id: call.input for message in messages for call in message.get_tool_calls()}
        for message in messages:
            for result in message.get_tool_results():
                self.show(self._line(result, arguments.get(result.id, "")))
                if result.state is ToolResultState.ERROR:
                    for line in end_of(result.get_text(), FAILED_LINES)[0]:
                        self.show(line)

    def transcript(self, messages: Sequence[Msg]) -> None:
        for line in render_session.transcript(messages, width=self._width):
            self.show(line)

    def cost(self, cost: Cost, kills: int) -> None:
        self.step(
            f"It took {cost.seconds:.1f} s with {kills} processes killed, {cost.model_calls} model calls, "
            f"{cost.input_tokens} tokens in and {cost.output_tokens} out."
        )
        self.remark(f"all of it is in Temporal's history: {cost.events} events, {cost.history_bytes / 1000:.0f} kB")

    @property
    def _width(self) -> int:
        return self._screen.width - len(INDENT)

    def _line(self, result: ToolResultBlock, arguments: str) -> Text:
        return render.result_line(result.name, arguments, result.state, result.get_text(), width=self._width)


def _indented(shown: Text) -> RenderableType:
    return Text("\n").join(Text(INDENT).append_text(line) for line in shown.split("\n"))
