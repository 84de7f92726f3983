"""Hostile text made harmless for a terminal: what it would obey or hide is written as an escape.

Tabs and newlines stay as they are.
"""

import re

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
"""All but tab and newline; carriage return, escape and the eight-bit controls are among them."""
_BIDI_AND_LINES = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u202f\u205f-\u2065\u206a-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff"
)

_OBEYED = re.compile(f"[{_CONTROLS}{_BIDI_AND_LINES}]")
_OBEYED_OR_HIDDEN = re.compile(f"[{_CONTROLS}{_BIDI_AND_LINES}{_INVISIBLE}]")


def harmless(text: str) -> str:
    """For reading: nothing moves the cursor, colours or reorders; joiners stay, so that emoji look as meant."""
    return _OBEYED.sub(_escaped, text)


def visible(text: str) -> str:
    """For deciding: beside that, nothing hides; two texts that differ also look different."""
    return _OBEYED_OR_HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
