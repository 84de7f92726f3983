"""The terminal, the pipe or the JSON reader that a command talks to."""

import json
import os
import sys
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console, RenderableType

PIPE_WIDTH = 200
"""Cells of a result line where no terminal says how wide it is."""


class Screen:
    """`show` writes for people and is silent under --json; `document` writes the one JSON document."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = Console(highlight=False, markup=False, emoji=False)
        self.err = Console(highlight=False, markup=False, emoji=False, stderr=True)
        self._open_line = False

    @property
    def width(self) -> int:
        return self.out.width if self.out.is_terminal else PIPE_WIDTH

    @property
    def answers(self) -> bool:
        """Whether a person sits there who can be asked."""
        return not self.as_json and os.isatty(0) and os.isatty(1)

    @property
    def shows_live(self) -> bool:
        """Whether text is shown piece by piece: elsewhere it comes whole, so that nothing has to be taken back."""
        return not self.as_json and self.out.is_terminal

    def say(self, piece: RenderableType) -> None:
        """Go on in the same line; the next thing that is shown begins a new one."""
        self.out.print(piece, soft_wrap=True, end="")
        self._open_line = True

    def end_line(self) -> None:
        """If something was said in it."""
        if self._open_line:
            self._open_line = False
            self.out.print()

    def show(self, *lines: RenderableType) -> None:
        if self.as_json:
            return
        self.end_line()
        for line in lines:
            # Wrapped by the terminal itself: then a copied command is one line again, and a pipe gets whole lines.
            self.out.print(line, soft_wrap=True)

    def remark(self, line: RenderableType) -> None:
        """Beside the matter, so on stderr."""
        self.end_line()
        self.err.print(line, soft_wrap=True)

    def document(self, value: Any) -> None:
        """Only under --json."""
        if self.as_json:
            write_json(value)


def write_json(value: Any) -> None:
    """One JSON document on one line. ASCII only: a lone surrogate or a hostile mark comes out as its escape."""
    sys.stdout.write(json.dumps(to_jsonable_python(value, fallback=_plain)) + "\n")
    sys.stdout.flush()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
