"""Asking the person at the terminal about one call."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from starter import render
from starter.cli.screen import Screen
from workflows.contract import PendingCall


@dataclass(frozen=True, slots=True)
class Allow:
    accept_rules: bool = False
    input: str | None = None
    """Other arguments, as a JSON object."""


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


@dataclass(frozen=True, slots=True)
class Leave:
    """No decision: it goes on waiting."""


def ask_about(screen: Screen, call: PendingCall) -> Allow | Deny | Leave:
    """Show a call and return what the person decides. Raises KeyboardInterrupt on Ctrl-C."""
    screen.show(Text("\nmay it do this?", style="bold yellow"), render.pending_call(call))
    rules = ", [A]llow with rules" if call.suggested_rules else ""
    more = ", [s]how all" if render.is_cut(call) else ""
    question = f"[a]llow{rules}, [e]dit, [d]eny{more}, [l]ater: "
    while True:
        match ask(question):
            case "a":
                return Allow()
            case "A" if call.suggested_rules:
                return Allow(accept_rules=True)
            case "e":
                if (edited := _edited(screen, call.input)) is not None:
                    return Allow(input=edited)
            case "d":
                return Deny(ask("reason (may be empty): ") or "")
            case "s":
                screen.show(render.pending_call(call, whole=True))
            case "l" | None:
                return Leave()
            case _:
                screen.show(Text("type one of the letters, then Enter"))


def ask(question: str) -> str | None:
    """An answer to just this question: what was typed before it could be read is dropped."""
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


def _forget_typed_ahead() -> None:
    if not sys.stdin.isatty():
        return
    import termios  # noqa: PLC0415  not on every platform

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _edited(screen: Screen, arguments: str) -> str | None:
    """Other arguments from the person's editor, or typed on one line where none is set; None when they are no use."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    text = _from_editor(editor, arguments) if editor else ask("new arguments (a JSON object): ")
    try:
        given = json.loads(text or "")
    except ValueError as error:
        screen.show(Text(f"that is not JSON: {error}", style="red"))
        return None
    if not isinstance(given, dict):
        screen.show(Text("the arguments must be a JSON object", style="red"))
        return None
    return json.dumps(given, ensure_ascii=False)


def _from_editor(editor: str, arguments: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(_indented(arguments), encoding="utf-8")
        subprocess.run([*shlex.split(editor), str(file)], check=False)
        return file.read_text(encoding="utf-8")


def _indented(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), indent=2)
    except ValueError:
        return arguments
