"""A terminal with a person at it, for commands that ask: a real pseudo-terminal, and what its screen shows."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

from tests.e2e.conftest import Cli
from tests.e2e.warm_cli import Command
from tests.limits import SURE_SECONDS
from tests.reflowing import laid_out_again, shown

SCROLLED_LINES = 2_000
REPAINT_SECONDS = 0.8


@dataclass(frozen=True, slots=True)
class Seen:
    code: int
    text: str
    """All that was written, with what steers the terminal."""
    shown: str
    """What a person sees who scrolls back."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of its own, in a folder, in place of the `longhaul` of a Cli."""

    environment: Mapping[str, str]
    folder: Path

    def at_terminal(
        self, arguments: Sequence[str], environment: Mapping[str, str], terminal: int
    ) -> subprocess.Popen[bytes]:
        there = {**self.environment, "TERM": "xterm", **environment}
        return subprocess.Popen(
            [*arguments],
            cwd=self.folder,
            env=there,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )


class Terminal:
    """`longhaul …` on a pseudo-terminal. Leaving it kills a command that still runs."""

    def __init__(
        self,
        cli: Cli | Program,
        *arguments: str,
        columns: int = 100,
        rows: int = 40,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.written = ""
        self._screen = pyte.HistoryScreen(columns, rows, history=SCROLLED_LINES, ratio=0.5)
        self._stream = pyte.Stream(self._screen)
        self._terminal, theirs = os.openpty()
        try:
            # Before anything reads it: a list that was laid out for another width is broken again by the terminal.
            self._size(columns, rows)
            self._command: Command | subprocess.Popen[bytes] | None = cli.at_terminal(
                arguments, environment or {}, theirs
            )
        finally:
            os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._command:
            self._command.kill()
            self.end()

    @property
    def shown(self) -> str:
        """Scrolled lines and the screen."""
        return shown(self._screen)

    @property
    def in_sight(self) -> str:
        """The screen alone, without what has scrolled away."""
        return "\n".join(self._screen.display)

    def until(self, text: str, *, seconds: float = SURE_SECONDS, raw: bool = False) -> str:
        """Read until it stands on the screen, or was written ever (`raw`). Raises AssertionError when it never does."""
        deadline = time.monotonic() + seconds
        while text not in (self.written if raw else self.shown):
            assert self.read(deadline), f"{text!r} was not shown:\n{self.shown}"
        return self.shown

    def types(self, keys: str) -> None:
        """A newline is the Enter key, which sends a carriage return; `presses` sends each byte as it is."""
        self.presses(keys.replace("\n", "\r"))

    def steps(self, *steps: tuple[str, str]) -> None:
        """Of each: press the keys, and wait until the text stands there. Enter is `\\r`, and Ctrl-J `\\n`."""
        for keys, text in steps:
            self.presses(keys)
            self.until(text, seconds=30.0)

    def presses(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def resized(self, columns: int, rows: int) -> None:
        """Lines that are too long are laid out again, as most terminals do. Returns when the command has had time to
        paint for the new size: which lines went on in the next row is not known any more after a second time."""
        while self.read(0):
            pass
        self._screen = laid_out_again(self._screen, columns, rows, SCROLLED_LINES)
        self._stream = pyte.Stream(self._screen)
        self._size(columns, rows)
        deadline = time.monotonic() + REPAINT_SECONDS
        while time.monotonic() < deadline:
            self.read(deadline)

    def read(self, deadline: float) -> bool:
        """The next piece; False when the command has left the terminal or the time is up."""
        readable, _, _ = select.select([self._terminal], [], [], max(deadline - time.monotonic(), 0))
        try:
            data = os.read(self._terminal, 65_536) if readable else b""
        except OSError:  # how Linux says that the other side is closed
            return False
        piece = data.decode(errors="replace")
        self.written += piece
        self._stream.feed(piece)
        return bool(data)

    def end(self, seconds: float = SURE_SECONDS) -> Seen:
        """Read to the end; closing the terminal ends what has not ended in time."""
        deadline = time.monotonic() + seconds
        while self.read(deadline):
            pass
        os.close(self._terminal)
        assert self._command is not None
        code = self._command.wait()
        self._command = None
        return Seen(code, self.written.replace("\r\n", "\n"), self.shown)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def at_a_terminal(
    cli: Cli | Program, *arguments: str, answers: list[tuple[str, str]], seconds: float = SURE_SECONDS
) -> Seen:
    """Run `longhaul …`; when it writes the first text of a pair, the second is typed."""
    with Terminal(cli, *arguments) as terminal:
        read_to, left = 0, list(answers)
        deadline = time.monotonic() + seconds
        while terminal.read(deadline):
            if left and left[0][0] in terminal.written[read_to:]:
                read_to = len(terminal.written)
                terminal.types(left.pop(0)[1])
        return terminal.end(0)
