"""Text for whoever decides on it: what hides, or looks like something else, is named by its number.

`⟨U+202E⟩` stands for the character of that number, and the text's own `⟨` is named too: so two texts that differ
are shown differently, and no text can pose as a mark of ours.
"""

import re
import unicodedata

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
    if kind in ("Mn", "Me"):
        # On an ASCII character it makes the twin of a letter that exists by itself; a second one may cover the first.
        return before.isascii() or unicodedata.category(before) in ("Mn", "Me") or "\u0334" <= char <= "\u0338"
    return _is_invisible(char) or unicodedata.normalize("NFKC", char).isascii() or "\u0250" <= char <= "\u02af"


def _is_invisible(char: str) -> bool:
    """Letters and marks that are drawn as nothing."""
    return char in "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800" or "\ufe00" <= char <= "\ufe0f"


def _doubtful_letters(text: str) -> set[int]:
    """Where letters stand that are drawn like ASCII ones, in words that could be read as Latin."""
    found: set[int] = set()
    for word in _WORD.finditer(text):
        letters = [(word.start() + at, char) for at, char in enumerate(word[0]) if not char.isascii()]
        if _ASCII_LETTER.search(word[0]):
            found |= {at for at, char in letters if char in _LIKE_ASCII_LETTERS or _beside_latin(char)}
        elif letters and all(char in _LIKE_ASCII_LETTERS for _, char in letters):
            found |= {at for at, _ in letters}
    return found


def _beside_latin(char: str) -> bool:
    return unicodedata.name(char, "").startswith(_SCRIPTS_BESIDE_LATIN)
