"""Draws the pictures chat and approval of docs/images, light and dark: `longhaul chat` on a real pseudo-terminal.

`make pictures` starts a server and a worker of its own, and types to a scripted model.
"""

import fcntl
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text
from screenshots import IMAGES, LONGHAUL, TEST, development_server

COLUMNS, ROWS = 96, 32
PATIENCE_SECONDS = 30.0
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""A picture must not fetch operations from somewhere when it is looked at."""
DIM = {"\x1b[2m": "\x1b[90m", "\x1b[2;3m": "\x1b[90;3m", "\x1b[2;33m": "\x1b[33m"}
"""The emulator knows no dim operations."""
COLOURS = {"brown": "yellow", "brightblack": "bright_black", "brightbrown": "bright_yellow"}

REPLIES: tuple[dict[str, Any], ...] = (
    {
        "thinking": "A red test: either it is wrong, or what it tests.",
        "text": "I look around first.",
        "tool_calls": [
            {"name": "Glob", "input": {"pattern": "*.py"}},
            {"name": "Read", "input": {"file_path": "test_sums.py"}},
        ],
    },
    {
        "text": "`2 + 2` is **4**, so the test is wrong. I fix it.",
        "tool_calls": [
            {"name": "Edit", "input": {"file_path": "test_sums.py", "old_string": "2, 5", "new_string": "2, 4"}}
        ],
    },
    {
        "text": "Now I run it, three times over.",
        "tool_calls": [
            {
                "name": "Bash",
                "input": {"command": "for n in 1 2 3; do python3 -m unittest -q; sleep 3; done"},
            }
        ],
    },
    {"text": "It is green."},
)


class Terminal:
    """A program on a pseudo-terminal, and what its screen shows."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            time.sleep(0.1)  # the size is set by then
            os.execve(command[0], command, environment)  # noqa: S606  our own program
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def types(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def until(self, text: str) -> None:
        """Until it stands on the screen. Raises TimeoutError."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in "\n".join(self._screen.display):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{text!r} was not shown:\n" + "\n".join(self._screen.display))
            self._read()

    def end(self) -> None:
        os.close(self._terminal)
        os.waitpid(self._pid, 0)

    def picture(self, title: str, theme: TerminalTheme) -> str:
        """The screen as SVG."""
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
        for number in range(self._last_line() + 1):
            console.print(self._line(number), end="\n", soft_wrap=True)
        name = title.replace(" ", "-")
        return console.export_svg(title=title, theme=theme, code_format=FORMAT, unique_id=name)

    def _read(self) -> None:
        if not select.select([self._terminal], [], [], 0.1)[0]:
            return
        piece = os.read(self._terminal, 65_536).decode(errors="replace")
        for dim, stand_in in DIM.items():
            piece = piece.replace(dim, stand_in)
        self._stream.feed(piece)

    def _last_line(self) -> int:
        return max(number for number, line in enumerate(self._screen.display) if line.strip())

    def _line(self, number: int) -> Text:
        shown = Text()
        for column in range(COLUMNS):
            cell = self._screen.buffer[number][column]
            shown.append(cell.data, _style(cell))
        shown.rstrip()
        return shown


def _style(cell: pyte.screens.Char) -> str:
    words = [
        word for word, is_so in (("bold", cell.bold), ("italic", cell.italics), ("reverse", cell.reverse)) if is_so
    ]
    if cell.fg != "default":
        words.append(COLOURS.get(cell.fg, cell.fg if not _is_number(cell.fg) else f"#{cell.fg}"))
    return " ".join(words)


def _is_number(colour: str) -> bool:
    return len(colour) == 6 and all(letter in "0123456789abcdef" for letter in colour)


def talk(terminal: Terminal) -> None:
    """One conversation, with a picture of the question and one of the work."""
    terminal.until("/help says more")
    terminal.until("\n>")  # typed before the prompt stands, it would be shown twice
    terminal.types("Mend the red test.\r")
    terminal.until("later:")
    draw("approval", terminal)
    terminal.types("y")
    terminal.until("three times over")
    terminal.until("[e]dit, [q] later:")
    terminal.types("y")
    terminal.until("| OK")
    terminal.types("And what about the docs?\r")
    terminal.until("queued")
    terminal.types("/now Say it in one wor")
    terminal.until("in one wor")
    draw("chat", terminal)


def draw(name: str, terminal: Terminal) -> None:
    """In light and dark: what is typed stands still meanwhile."""
    for ending, theme in (("", DEFAULT_TERMINAL_THEME), ("-dark", SVG_EXPORT_THEME)):
        file = IMAGES / f"{name}{ending}.svg"
        title = f"longhaul {name}" if name == "chat" else f"an {name}"
        file.write_text(terminal.picture(title, theme), encoding="utf-8")
        print(f"{file}: {file.stat().st_size // 1000} kB")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="lh-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        project, script = folder / "project", folder / "script.jsonl"
        project.mkdir()
        (project / "test_sums.py").write_text(TEST, encoding="utf-8")
        script.write_text("".join(json.dumps(reply) + "\n" for reply in REPLIES), encoding="utf-8")
        environment = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
        with development_server(folder / "data") as (address, _):
            environment |= {"TERM": "xterm-256color", "TEMPORAL_ADDRESS": address, "LONGHAUL_DATA_DIR": str(folder)}
            # Until a worker is there: it may take a while.
            hello = [str(LONGHAUL), "run", "Hello", "--model", f"scripted:{script}", "--session", "hello"]
            subprocess.run(
                hello, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            command = [str(LONGHAUL), "chat", "--model", f"scripted:{script}", "--session", "red-test"]
            terminal = Terminal(command, project, environment)
            try:
                talk(terminal)
            finally:
                terminal.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
