"""A terminal at which one may type at any time: above the line that is typed stands what changes."""

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TextIO, TypeVar, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle
from rich.console import Console, RenderableType

from longhaul.starter.cli.terminal.completions import Completions
from longhaul.starter.cli.terminal.key_presses import CTRL_D
from longhaul.starter.cli.terminal.painting import draw, rows_of
from longhaul.starter.cli.terminal.screen import Screen

Found = TypeVar("Found")


class PromptScreen(Screen):
    """A screen that renders. It has to be open for anything to stand below."""

    whole_by = "Ctrl-O"

    def __init__(
        self,
        history: Path,
        take: Callable[[str], None],
        interrupt: Callable[[], None],
        *,
        commands: Iterable[str] = (),
        play: bool = False,
    ) -> None:
        """`commands` are completed at Tab."""
        super().__init__(play=play)
        self._take = take
        self._cells: list[int] = []
        """Of each line that stands below."""
        self._drawn_at = 0
        self._rows_more = 0
        """Of what stood there before it was drawn anew, and is still to be taken away."""
        self._prompt: PromptSession[str] = PromptSession(
            history=_kept(history),
            key_bindings=_keys(take, interrupt),
            erase_when_done=True,
            completer=Completions(commands),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            output=_output(self.out, self._take_more_rows),
        )

    async def open(self, typed: str = "") -> None:
        """Give each line that is typed to `take`, until Ctrl-D. `typed`: what was typed before. Several lines of it
        may be something pasted: none is given before a person has seen them."""
        *lines, begun = typed.split("\n")
        if begun.startswith(CTRL_D):
            return
        begun = begun.partition(CTRL_D)[0]
        if len(lines) > 1:
            begun = "\n".join([*lines, begun])
        elif lines:
            self._take(lines[0])
        while True:
            try:
                # It returns by keys alone that are not ours: what was typed is not lost by them.
                self._take(await self._prompt.prompt_async(self._message, default=begun, handle_sigint=False))
                begun = ""
            except EOFError:
                return

    def forget_typed(self) -> bool:
        """Empty the line that is being typed; False when it was empty, or something is asked instead."""
        if self._aside:
            return False
        typed = bool(self._prompt.default_buffer.text)
        self._prompt.default_buffer.reset()
        return typed

    async def aside(self, work: Callable[[], Awaitable[Found]]) -> Found:
        """What was typed so far stays, and is there again afterwards."""
        async with in_terminal():
            self._aside = True
            try:
                return await work()
            finally:
                self._aside = False

    def paint(self) -> None:
        self._prompt.app.invalidate()

    def hide(self) -> None:
        """The prompt takes it away itself."""
        self._prompt.app.invalidate()

    def _print(self, console: Console, line: RenderableType) -> None:
        app = self._prompt.app
        if self._aside or not app.is_running:
            super()._print(console, line)
            return
        # In the terminal's raw mode, which changes nothing in what is printed: else keys that come meanwhile were lost.
        app.renderer.erase()
        super()._print(console, line)
        app.renderer.reset()
        app.invalidate()

    def _message(self) -> ANSI:
        self._rows_more = self._more_rows()
        if not self.below:
            self._cells = []
            return ANSI("> ")
        drawn, self._cells = draw(self.out, self.below)
        self._drawn_at = self.out.width
        return ANSI(drawn + "\n> ")

    def _more_rows(self) -> int:
        """That what stands below takes by now, when the terminal has become narrower since it was drawn."""
        return self._rows_more + rows_of(self._cells, self._drawn_at, self.out.width) - len(self._cells)

    def _take_more_rows(self) -> int:
        """The same, for whoever goes up over them: once."""
        if more := self._more_rows():
            self._cells, self._rows_more = [], 0
        return more


def _keys(take: Callable[[str], None], interrupt: Callable[[], None]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        # The prompt does not end with a line: keys that come before the next one has begun would be lost.
        line = event.current_buffer.text
        event.current_buffer.reset(append_to_history=True)
        take(line)

    @keys.add("escape", "enter", filter=~is_searching)
    @keys.add("c-j", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-o")
    def _(event: KeyPressEvent) -> None:
        take("/output")

    @keys.add("c-c", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        interrupt()

    return keys


class _Output(Vt100_Output):
    """Goes up by the rows that stand there now: the prompt counts those that it has drawn."""

    rows_more: Callable[[], int]

    def cursor_up(self, amount: int) -> None:
        super().cursor_up(amount + self.rows_more())


def _output(console: Console, rows_more: Callable[[], int]) -> _Output:
    """One that never asks the terminal where its cursor is: some never answer, and the answer may end as input."""
    output = cast(_Output, _Output.from_pty(cast(TextIO, console.file)))
    output.enable_cpr = False
    output.rows_more = rows_more
    return output


def _kept(file: Path) -> History:
    """What was typed stays with its owner; where it can't be kept, it is forgotten at the end."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(file)
