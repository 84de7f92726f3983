"""A terminal with a person at it, for commands that ask."""

import os
import pty
import select
import time
from dataclasses import dataclass

from tests.e2e.conftest import CLI, Cli


@dataclass(frozen=True, slots=True)
class Seen:
    code: int
    text: str


def at_a_terminal(cli: Cli, *arguments: str, answers: list[tuple[str, str]], seconds: float = 30.0) -> Seen:
    """Run `longhaul …` on a pseudo-terminal; when it shows the first text of a pair, the second is typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cli.folder)
        os.execve(CLI[0], [*CLI, *arguments], cli.environment)  # noqa: S606  the same command as elsewhere
    shown, read_to, left = "", 0, list(answers)
    deadline = time.monotonic() + seconds
    while (data := _next(terminal, deadline)) is not None:
        shown += data
        if left and left[0][0] in shown[read_to:]:
            read_to = len(shown)
            os.write(terminal, left.pop(0)[1].encode())
    os.close(terminal)
    return Seen(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.replace("\r\n", "\n"))


def _next(terminal: int, deadline: float) -> str | None:
    """What is shown next; None when the program has left the terminal or the time is up (closing it ends it then)."""
    readable, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
    try:
        data = os.read(terminal, 65_536) if readable else b""
    except OSError:  # how Linux says that the other side is closed
        return None
    return data.decode(errors="replace") or None
