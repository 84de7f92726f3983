"""Bounds how much JSON from outside may hold and how deep it may nest. A letter is asked by its bytes, before it is
parsed: parsing rubbish can take minutes too."""

import re
from collections.abc import Iterable
from typing import cast

MAX_VALUES = 10_000
"""Of JSON, lists and objects counted with what is in them."""
MAX_STATE_VALUES = 40_000
"""Of a state that is to stand in the place of another: all that the session has said."""
MAX_DIGITS = 100
"""Of one number: reading a longer one takes the square of its length."""
MAX_DEPTH = 50
"""JSON within JSON. What nests deeper than about 200 could be recorded, but never be read back."""

_TOKEN = re.compile(rb"""[^"\[\]{},0-9eE.+-]*+("[^"]*+"|[\[\]{},]|[0-9eE.+-]++)?""")


class TooMuch(ValueError):
    """A letter that is not read; the sentence says what there is too much of, and how much may be."""


def check_bounds(name: str, text: bytes) -> None:
    """Raises TooMuch. Text that is not JSON may pass: it is not read further than to where it ends to be JSON."""
    most = MAX_STATE_VALUES if name == "replace_state" else MAX_VALUES
    values, atoms, depth = 1, 0, 0
    # Escaped quotes out of the way, a string ends at the next quote.
    for token in _TOKEN.finditer(text.replace(b"\\\\", b"").replace(b'\\"', b"")):
        match (found := token[1] or b"")[:1]:
            case b"[" | b"{":
                values, depth = values + 1, depth + 1
            case b",":
                values += 1
            case b"]" | b"}":
                depth -= 1
            case b'"' | b"":
                atoms += 1
            case _:
                atoms += 1
                if len(found) > MAX_DIGITS:
                    raise TooMuch(f"it has a number of {len(found)} characters, and the most is {MAX_DIGITS}")
        if depth > MAX_DEPTH:
            raise TooMuch(f"it nests deeper than {MAX_DEPTH} levels; send a flatter JSON object")
        if values > most:
            raise TooMuch(f"it holds more than {most:,} JSON values; send it in several letters, or name a file")
        if atoms > 3 * values:
            return  # each stands behind one of the marks above or a colon, and each colon behind a string: no JSON


def too_deep(body: object) -> bool:
    """Level by level, because a recursion here would end where the one that must be prevented does."""
    level: list[object] = [body]
    for _ in range(MAX_DEPTH):
        level = [part for value in level for part in _parts(value)]
    return bool(level)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()
