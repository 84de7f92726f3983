"""Answers at the terminal: one key, or a line. What was typed before the question could be read is never an answer."""

import asyncio
import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STILL_SECONDS = 0.4
"""For which nothing is typed before a question counts as read: whoever writes a message is not answering."""
LONGEST_STILL_SECONDS = 5.0


class QuestionGone(Exception):
    """Nobody has to answer any more."""


async def await_key(question: str, keys: str, gone: asyncio.Event) -> str | None:
    """As `ask_key`, while everything else goes on. Raises QuestionGone when that is set before there is an answer;
    Ctrl-C is then for whoever handles the signal. Where no keys can be read it is `ask_key`."""
    if not _can_read_keys():
        return ask_key(question, keys)
    sys.stdout.flush()
    with _by_keys():
        waited, still = 0.0, False
        _forget_typed_ahead()
        while not still and not gone.is_set() and waited < LONGEST_STILL_SECONDS:
            await asyncio.sleep(STILL_SECONDS)
            waited += STILL_SECONDS
            still = not select.select([sys.stdin], [], [], 0)[0]
            _forget_typed_ahead()
        print(question, end="", flush=True)
        while True:
            typed = await _typed_before(gone)
            if (answer := _answer_in(typed, question, keys)) is not None:
                return answer or None


def ask_key(question: str, keys: str) -> str | None:
    """One of `keys`, at once; elsewhere than on a terminal that can do so, the first letter of a line. None for
    Ctrl-D.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    if not _can_read_keys():
        return _from_line(ask(question), keys)
    sys.stdout.flush()
    with _interruptible(), _by_keys():
        waited = 0.0
        _forget_typed_ahead()
        while select.select([sys.stdin], [], [], STILL_SECONDS)[0] and waited < LONGEST_STILL_SECONDS:
            _forget_typed_ahead()
            waited += STILL_SECONDS / 4
        print(question, end="", flush=True)
        while True:
            # What comes together is no single key: an arrow, or something pasted that may begin with a `y`.
            typed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
            if (answer := _answer_in(typed, question, keys)) is not None:
                return answer or None


CTRL_D = "\x04"
_NO_CHARACTER = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.")
"""Arrows and their like, and the marks around what is pasted."""


def typed_before() -> str:
    """What was typed before anybody read keys, as text. Enter is a newline in it, whatever the terminal made of it by
    then; keys that are no character are left out, but for Ctrl-D, which a terminal that still edits its line keeps as a
    zero."""
    if not _can_read_keys():
        return ""
    with _by_keys():
        typed = b""
        while select.select([sys.stdin], [], [], 0)[0] and (more := os.read(sys.stdin.fileno(), 4096)):
            typed += more
    text = _NO_CHARACTER.sub("", typed.decode(errors="replace")).replace("\r", "\n").replace("\0", CTRL_D)
    return "".join(char for char in text if char.isprintable() or char in ("\n", CTRL_D))


def _answer_in(typed: str, question: str, keys: str) -> str | None:
    """The key; empty for Ctrl-D. None for what is no answer: then it is asked again where that was meant as one."""
    if typed in ("\x04", ""):
        print()
        return ""
    if len(typed) == 1 and typed in keys:
        print(typed)
        return typed
    if not typed.startswith("\x1b") and any(map(str.isprintable, typed)):
        print(f"\n(one of {', '.join(keys)})\n{question}", end="", flush=True)
    return None


async def _typed_before(gone: asyncio.Event) -> str:
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), there.set)
    waits = [asyncio.create_task(there.wait()), asyncio.create_task(gone.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(sys.stdin.fileno())
        for wait in waits:
            wait.cancel()
    if gone.is_set():
        print()
        raise QuestionGone
    return os.read(sys.stdin.fileno(), 64).decode(errors="replace")


def _from_line(line: str | None, keys: str) -> str | None:
    while line is not None and (len(line) != 1 or line not in keys):
        line = ask(f"(one of {', '.join(keys)}, then Enter) ")
    return line


def ask(question: str) -> str | None:
    """A line that answers just this question."""
    sys.stdout.flush()
    _forget_typed_ahead()
    return read_line(question)


def read(question: str) -> str:
    """The same. Raises EOFError for Ctrl-D."""
    if (said := ask(question)) is None:
        raise EOFError
    return said


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
def returns_as_typed() -> Iterator[None]:
    """Enter stays the carriage return that it is, also in what is typed before somebody reads keys: turned into a
    newline by the terminal, it could not be told from Ctrl-J any more."""
    import termios  # noqa: PLC0415  not on every platform

    before = termios.tcgetattr(sys.stdin)
    changed = termios.tcgetattr(sys.stdin)
    changed[0] &= ~termios.ICRNL
    termios.tcsetattr(sys.stdin, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


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


def _forget_typed_ahead() -> None:
    if not sys.stdin.isatty():
        return
    import termios  # noqa: PLC0415  not on every platform

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
