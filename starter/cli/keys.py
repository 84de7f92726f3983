"""Answers at the terminal: one key, or a line. What was typed before the question could be read is never an answer."""

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STILL_SECONDS = 0.4
"""For which nothing is typed before a question counts as read: whoever writes a message is not answering."""
LONGEST_STILL_SECONDS = 5.0


def ask_key(question: str, keys: str) -> str | None:
    """One of `keys`, at once; elsewhere than on a terminal that can do so, the first letter of a line. None for Ctrl-D.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    if not _can_read_keys():
        return _from_line(ask(question), keys)
    sys.stdout.flush()
    with _interruptible(), _by_keys():
        _wait_until_still()
        print(question, end="", flush=True)
        while True:
            # What comes together is no single key: an arrow, or something pasted that may begin with a `y`.
            typed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
            if typed in ("\x04", ""):
                print()
                return None
            if len(typed) == 1 and typed in keys:
                print(typed)
                return typed
            if not typed.startswith("\x1b") and any(map(str.isprintable, typed)):
                print(f"\n(one of {', '.join(keys)})\n{question}", end="", flush=True)


def _from_line(line: str | None, keys: str) -> str | None:
    while line is not None and (len(line) != 1 or line not in keys):
        line = ask(f"(one of {', '.join(keys)}, then Enter) ")
    return line


def ask(question: str) -> str | None:
    """A line that answers just this question."""
    sys.stdout.flush()
    _forget_typed_ahead()
    return read_line(question)


def read_line(question: str) -> str | None:
    """One line from the terminal, or None for Ctrl-D. Raises KeyboardInterrupt on Ctrl-C."""
    with _interruptible():
        try:
            return input(question).strip()
        except EOFError:
            print()
            return None


@contextmanager
def _interruptible() -> Iterator[None]:
    """The event loop's handler of SIGINT only notes it, and `input` would go on waiting."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _can_read_keys() -> bool:
    return sys.platform != "win32" and sys.stdin.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


@contextmanager
def _by_keys() -> Iterator[None]:
    import termios  # noqa: PLC0415  not on every platform
    import tty  # noqa: PLC0415

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _wait_until_still() -> None:
    waited = 0.0
    _forget_typed_ahead()
    while select.select([sys.stdin], [], [], STILL_SECONDS)[0] and waited < LONGEST_STILL_SECONDS:
        _forget_typed_ahead()
        waited += STILL_SECONDS / 4


def _forget_typed_ahead() -> None:
    if not sys.stdin.isatty():
        return
    import termios  # noqa: PLC0415  not on every platform

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
