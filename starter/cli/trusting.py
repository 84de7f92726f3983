"""The question whether what lies in a folder counts, which `longhaul trust` answers before it is asked."""

import sys

from longhaul.starter.trust import FolderFiles, Untrusted
from longhaul.starter.visible import one_line


def trust_if_told(error: Untrusted) -> bool:
    """Ask at a terminal, and remember a yes; without one, no. Raises OSError where it can't be remembered."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    import termios  # noqa: PLC0415  not on every platform

    found = error.found
    changed = " (it has changed since you trusted it)" if found.was_trusted else ""
    say(f"longhaul: {one_line(str(found.folder))} says how agents are set up here{changed}:")
    show(found)
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # what was typed or pasted before answers another question
    print("longhaul: does it count? It is asked again when it changes. [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        return False
    found.remember()
    return True


def show(found: FolderFiles) -> None:
    """All that it sets, on stderr."""
    for line in found.says():
        indented = "    " if line.startswith(" ") else "  "
        say(indented + one_line(line))


def say(line: str) -> None:
    print(line, file=sys.stderr)
