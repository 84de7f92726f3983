"""Text from models, people and files: made harmless for a terminal, looked through for lookalikes and for our own
tags, shortened to one line, and compared with known names.
"""

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
"""All but tab and newline; carriage return, escape and the eight-bit controls are among them."""
_BIDI_AND_LINES = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u202f\u205f-\u2065\u206a-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff"
)

_OBEYED = re.compile(f"[{_CONTROLS}{_BIDI_AND_LINES}]")
_OBEYED_OR_HIDDEN = re.compile(f"[{_CONTROLS}{_BIDI_AND_LINES}{_INVISIBLE}]")
_DRAWN_AS_NOTHING = re.compile(rf"[{_INVISIBLE}\u2800\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]")
_EMOJI_OR_TEXT = "\ufe0e\ufe0f"
"""They choose how the character before them is drawn, and have no other use."""


def harmless(text: str) -> str:
    """For reading: nothing moves the cursor, colours or reorders; joiners stay, so that emoji look as meant."""
    return _OBEYED.sub(_escaped, text)


def visible(text: str) -> str:
    """For deciding: beside that, nothing hides; two texts that differ also look different."""
    return _OBEYED_OR_HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


OPEN, CLOSE = "\u27e8", "\u27e9"
"""The brackets of our marks."""

_LIKE_ASCII_LETTERS = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u0475\u0442\u043a\u043d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408\u04ae"
    "\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d"
    "\u039f\u03a1\u03a4\u03a5\u03a7\u0570\u0578\u057d\u0585\u0131\u0237\u01c0\u01c3\u13a1\u13a2\u13aa\u13b3"
    "\u13a5\u13bb\u13d2\u13da\u13de\u13df\u13e2\u13e6\u13f4\u2c9f\ua4d0\ua4d1\ua4d2\ua4d3\ua4d4"
)
"""Cyrillic, Greek, Armenian, Cherokee and other letters that are drawn like an ASCII one."""
_LIKE_ASCII_SIGNS = frozenset(
    "\u2010\u2011\u2012\u2013\u2212\u2018\u2019\u201a\u201b\u201c\u201d\u2032\u2035\u2039\u203a\u2044\u2215\u29f8"
    "\u2571\u2216\u29f5\u29f9\u2236\u02d0\ua789\u0589\u05c3\u2223\u2217\u204e\u02c6\u02cb\u02bc\u02b9\u201f\u2027"
    "\u2219\u22c5\u2024\u0660\u06d4\u3002"
)
_SCRIPTS_BESIDE_LATIN = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
_WORD = re.compile(r"\w+")
_ASCII_LETTER = re.compile("[A-Za-z]")
_ASCII = re.compile(r"[\t\n\x20-\x7e]*")


def told_apart(text: str) -> str:
    """`text` with each character that hides, reorders, or can be taken for another one as its mark.

    Tabs and newlines stay. Letters of other scripts stay where they can be told: a word that mixes them with Latin
    ones, or has none but look-alikes, is marked.
    """
    if _ASCII.fullmatch(text):
        return text
    doubtful = _doubtful_letters(text)
    return "".join(
        f"{OPEN}U+{ord(char):04X}{CLOSE}" if index in doubtful or _deceives(char, text[index - 1 : index]) else char
        for index, char in enumerate(text)
    )


def _deceives(char: str, before: str) -> bool:
    """Whether this one character, whatever its word, is not what it seems."""
    if char in "\t\n" or " " <= char <= "~":
        return False
    kind = unicodedata.category(char)
    if kind[0] in "CZ" or char in (OPEN, CLOSE) or char in _LIKE_ASCII_SIGNS:
        return True
    if _DRAWN_AS_NOTHING.match(char) and (char not in _EMOJI_OR_TEXT or before.isascii()):
        return True
    if kind in ("Mn", "Me"):
        # On an ASCII character it makes the twin of a letter that exists by itself; a second one may cover the
        # first.
        return before.isascii() or unicodedata.category(before) in ("Mn", "Me") or "\u0334" <= char <= "\u0338"
    return unicodedata.normalize("NFKC", char).isascii() or "\u0250" <= char <= "\u02af"


def _doubtful_letters(text: str) -> set[int]:
    """Where letters stand that are drawn like ASCII ones, in words that could be read as Latin."""
    found: set[int] = set()
    for word in _WORD.finditer(text):
        letters = [(word.start() + at, char) for at, char in enumerate(word[0]) if not char.isascii()]
        if _ASCII_LETTER.search(word[0]):
            found |= {
                at
                for at, char in letters
                if char in _LIKE_ASCII_LETTERS or unicodedata.name(char, "").startswith(_SCRIPTS_BESIDE_LATIN)
            }
        elif letters and all(char in _LIKE_ASCII_LETTERS for _, char in letters):
            found |= {at for at, _ in letters}
    return found


def tag_of(words: str) -> re.Pattern[str]:
    """The `<` before words that an expression names, at the beginning or the end of an element, in capitals or not.

    What is blank is given back to nobody: a long run of it would else be tried at each of its places.
    """
    return re.compile(rf"<(?=\s*+/?\s*+(?:{words}))", re.IGNORECASE)


def without(tag: re.Pattern[str], text: str) -> str:
    """With words in the place of these tags."""
    return tag.sub("&lt;", text)


MOST_LISTED = 20
LONGEST_NAME = 100
"""Characters that are compared and shown: what comes from outside may be of any length."""


ALIKE = 0.6
"""As `difflib` measures: 1 is the same name, 0 one without a letter in common."""


def nearest(name: str, known: Iterable[str], alike: float = ALIKE) -> str:
    """The one of `known` that was probably meant; empty when none is near. `alike`: what counts as near."""
    brief, names = name[:LONGEST_NAME], sorted(known)
    for spelt in (brief, brief.lower()):
        if near := difflib.get_close_matches(spelt, names, n=1, cutoff=alike):
            return near[0]
    return ""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "there are") -> str:
    """`did you mean 'x'?`, or, where none is near, `there are: a, b, c`; the first words of that are `otherwise`."""
    names = sorted(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"{otherwise}: {', '.join(names[:MOST_LISTED]) or 'none'}{more}"


_TELLING = ("command", "file_path", "pattern", "path", "url", "query")
"""Arguments that say on one line what a call is about; without any, all of them are shown."""

_DEEPEST = 4
"""So far may lists and objects stand within each other."""


def gist(arguments: str) -> str:
    """The telling argument of a call's JSON arguments, an only text by itself, others as `name: value, name: value`. Of
    an object within them its first text is told. What is not a JSON object comes back as it is."""
    given = parsed(arguments)
    if given is None:
        return arguments
    for name in _TELLING:
        if isinstance(given.get(name), str):
            return str(given[name])
    if len(given) == 1 and isinstance(only := next(iter(given.values())), str):
        return only
    return _describe(given)


def _describe(value: Any, depth: int = 0) -> str:
    """A value in words. What nests deeper is not looked at: it could be read, and be too deep to be written."""
    match value:
        case str():
            return value
        case list() if depth < _DEEPEST:
            return ", ".join(_describe(one, depth + 1) for one in value)
        case dict() if depth < _DEEPEST:
            named = cast(dict[str, Any], value)
            texts = [one for one in named.values() if isinstance(one, str)] if depth else []
            return (
                texts[0] if texts else ", ".join(f"{name}: {_describe(one, depth + 1)}" for name, one in named.items())
            )
        case list() | dict():
            return "…"
        case _:
            return json.dumps(value, ensure_ascii=False)


def parsed(arguments: str) -> dict[str, Any] | None:
    """JSON arguments as a dictionary; None for anything else that a model may write."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], given) if isinstance(given, dict) else None


@dataclass
class Pages:
    """What has come so far; the next page is asked for from `len(text)` on, and of the moment `seq`."""

    text: str = ""
    seq: int = 0
    """Entry of which the pages are; 0 before the first."""
    whole: bool = False

    def take(self, seq: int, total: int, text: str) -> bool:
        """Add a page. False when the session has moved on: pages of two moments do not fit together."""
        if self.seq not in (0, seq):
            return False
        self.text, self.seq = self.text + text, seq
        self.whole = len(self.text) >= total
        return True


def names(text: str) -> frozenset[str]:
    """The words of `text`, for tables of names."""
    return frozenset(text.split())
