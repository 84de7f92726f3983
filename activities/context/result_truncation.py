"""Tool output that is too long for the context: its beginning is kept, and a marker says that there was more.

The marker is the seed's, word for word, and stands at the very end. Output is hostile and may contain the same words:
what stands anywhere but at the end is the output's own. An output that ends with them although nothing was left out
gets a line that says so, and is not changed otherwise: an agent may well read a file that quotes the marker.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from longhaul.agent.values.conversation.messages import DataBlock, TextBlock, ToolResultBlock

Output = str | tuple[TextBlock | DataBlock, ...]

DATA_TOKENS = 1_600
"""Of an attachment where the caller does not say."""

_OPENING = "<<<TRUNCATED>>>"
_OMITTED = "The remaining content has been omitted for limited context."
_CLOSING = "</system-reminder>"
NOT_OURS = "(The output ends here. Nothing was left out: the marker above is part of the output itself.)"

_LONGEST_CHARACTER = 32
"""Code points that may look like one character; more are a stack of accents that nobody reads."""
_JOINER = "\u200d"

_MARKER_LINE_BREAKS = 3
"""Ours has one; a forged one may be padded, and with more than this it no longer looks like the end."""

_ATTEMPTS = 40
"""Counts per cut; three are usual."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """What the model gets of an output. `replace(truncated, reference=…)` names a place that was found afterwards."""

    kept: Output
    """The beginning, at most the limit; the whole output when nothing was cut."""
    cut: bool
    reference: str | None = None
    """Where the whole output was written for the agent to read."""

    @property
    def output(self) -> Output:
        """The kept part, and the marker as its own last line or block; the marker does not count for the limit."""
        if self.cut:
            return _with_line(self.kept, marker(self.reference))
        return _with_line(self.kept, NOT_OURS) if _seems_cut(self.kept) else self.kept

    def applied_to(self, result: ToolResultBlock) -> ToolResultBlock:
        """`result` with this output; state, metadata and all else stay."""
        return result.model_copy(update={"output": self.output})


def marker(reference: str | None) -> str:
    """The seed's marker. In a reference, control characters and line breaks become U+FFFD: it stays one line."""
    if not reference:
        return f"{_OPENING}\n<system-reminder>{_OMITTED}{_CLOSING}"
    place = "".join(character if character.isprintable() else "\ufffd" for character in reference)
    return (
        f"{_OPENING}\n<system-reminder>{_OMITTED} You can refer to the file in '{place}' for the truncated content if "
        f"needed.{_CLOSING}"
    )


def truncate(
    output: Output,
    limit: int,
    count: Callable[[str], int],
    reference: str | None,
    count_data: Callable[[DataBlock], int] = lambda _: DATA_TOKENS,
) -> Truncated:
    """At most `limit` tokens of `output`: whole blocks, then as much as fits of the text at the boundary. An
    attachment at the boundary, and all that follows it, is left out.

    `count` gives the tokens of a text; it is not called when the bytes alone fit, and else with texts up to the whole
    output. So call this in a thread for a large one.
    """
    parts = (TextBlock(text=output),) if isinstance(output, str) else output
    if _surely_fits(parts, limit):
        return Truncated(output, cut=False, reference=reference)
    room = limit
    kept: list[TextBlock | DataBlock] = []
    for part in parts:
        tokens = count(part.text) if isinstance(part, TextBlock) else count_data(part)
        if tokens > room:
            if isinstance(part, TextBlock) and (text := _beginning(part.text, tokens, room, count)):
                kept.append(TextBlock(text=text))
            return Truncated(_like(output, kept), cut=True, reference=reference)
        kept.append(part)
        room -= tokens
    return Truncated(output, cut=False, reference=reference)


def _surely_fits(parts: tuple[TextBlock | DataBlock, ...], limit: int) -> bool:
    """A token is at least one byte."""
    room = limit
    for part in parts:
        room -= len(part.text.encode("utf-8", "surrogatepass")) if isinstance(part, TextBlock) else limit + 1
    return room >= 0


def _like(output: Output, kept: list[TextBlock | DataBlock]) -> Output:
    if isinstance(output, str):
        return "".join(part.text for part in kept if isinstance(part, TextBlock))
    return tuple(kept)


def _beginning(text: str, tokens: int, room: int, count: Callable[[str], int]) -> str:
    """The start of `text`, which has `tokens`, that counts at most `room`, and rarely below 98 % of it."""
    fits, too_long = 0, len(text)
    guess = len(text) * room // tokens
    for attempt in range(_ATTEMPTS if room > 0 else 0):
        # Each second guess halves what is left: text that is dense here and sparse there leads the others astray.
        if not fits < guess < too_long or attempt % 2:
            guess = (fits + too_long) // 2
        guess = _boundary(text, guess)
        if guess <= fits:
            break
        found = count(text[:guess])
        if found > room:
            too_long = guess
        else:
            fits = guess
            if found * 50 >= room * 49:
                break
        guess = guess * room // max(found, 1)
    return text[:fits]


def _boundary(text: str, at: int) -> int:
    """The last place up to `at` where what looks like one character is not torn."""
    for place in range(at, max(at - _LONGEST_CHARACTER, 0), -1):
        if not _belong_together(text[place - 1], text[place : place + 1]):
            return place
    return at if at > _LONGEST_CHARACTER else 0


def _belong_together(before: str, after: str) -> bool:
    if not after:
        return False
    return (
        unicodedata.category(after).startswith("M")
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or (before == "\r" and after == "\n")
        or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
    )


def _seems_cut(output: Output) -> bool:
    """Whether the last lines of text are, or look like, a marker: then the model must be told that they are not."""
    texts: list[str] = []
    for part in reversed((TextBlock(text=output),) if isinstance(output, str) else output):
        if isinstance(part, DataBlock):
            break
        texts.insert(0, part.text)
    end = "\n".join(texts).rstrip()
    start = end.rfind(_OPENING)
    return start >= 0 and end.count("\n", start) <= _MARKER_LINE_BREAKS


def _with_line(output: Output, line: str) -> Output:
    if isinstance(output, str):
        return f"{output}{'' if not output or output.endswith(chr(10)) else chr(10)}{line}"
    return (*output, TextBlock(text=line))
