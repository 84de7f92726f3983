"""Texts and names that differ from what a model has written only in characters that look alike: curly quotes, dashes,
blanks of other kinds, tabs, blanks at the ends of lines, invisible characters, and Unicode forms.

A model reads the file again and sees the same; so it is told which characters differ, by their numbers and names.
"""

import difflib
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

COMPARED_CHARS = 2_000_000
"""Of a file; in a longer one nothing is looked for."""
COMPARED_LINE = 2_000
SHOWN_DIFFERENCES = 5
SHOWN_CHARACTERS = 4
MOST_NAMES = 20_000
"""Of one folder that are held against a missing name."""

_AS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
}


def differing_characters(text: str, wanted: str) -> str:
    """Which characters of `text` differ from `wanted` where it stands but for lookalikes; empty where it does not."""
    if len(text) > COMPARED_CHARS or len(wanted) > COMPARED_CHARS:
        return ""
    (plain, places), (plain_wanted, _) = _plain(text), _plain(wanted)
    found = plain.find(plain_wanted) if plain_wanted else -1
    if found < 0:
        return ""
    start, end = places[found], places[found + len(plain_wanted) - 1] + 1
    while wanted[0] in " \t" and start and text[start - 1] in " \t":
        start -= 1
    while wanted[-1].isspace() and end < len(text) and text[end] in " \t":
        end += 1
    if wanted.endswith("\n") and text[end : end + 1] == "\n":
        end += 1
    first = text.count("\n", 0, start) + 1
    told = list(dict.fromkeys(_differences(text[start:end].split("\n"), wanted.split("\n"), first)))
    more = f"; and {len(told) - SHOWN_DIFFERENCES} more" if len(told) > SHOWN_DIFFERENCES else ""
    return "; ".join(told[:SHOWN_DIFFERENCES]) + more


def lookalike(path: Path) -> str:
    """Of a path that does not exist: what stands there under a name that looks the same, as the rest of a sentence;
    empty where nothing does."""
    missing = path
    while not os.path.lexists(missing.parent):
        missing = missing.parent  # ends at the root, which is its own parent
    wanted = _plain(missing.name)[0]
    try:
        with os.scandir(missing.parent) as entries:
            names = [entry.name for entry, _ in zip(entries, range(MOST_NAMES), strict=False)]
    except OSError:
        names = []
    found = next((name for name in names if name != missing.name and _plain(name)[0] == wanted), None)
    if found is None:
        return ""
    return f"; did you mean {str(missing.parent / found)!r}? Its name is {found!a}, and not {missing.name!a}"


def _plain(text: str) -> tuple[str, list[int]]:
    """`text` with lookalikes as one, blanks at the ends of lines left out; and where each character came from."""
    plain, places = list[str](), list[int]()
    for place, character in enumerate(text):
        if character in " \t\r" or (character > "\x7f" and unicodedata.category(character) == "Zs"):
            if plain and plain[-1] not in " \n":
                plain.append(" ")
                places.append(place)
        elif character == "\n":
            if plain and plain[-1] == " ":
                plain.pop()
                places.pop()
            plain.append("\n")
            places.append(place)
        elif character <= "\x7f":
            plain.append(_AS.get(character, character))
            places.append(place)
        elif unicodedata.category(character) != "Cf":
            decomposed = _AS.get(character) or unicodedata.normalize("NFKD", character)
            plain += decomposed
            places += [place] * len(decomposed)
    if plain and plain[-1] == " ":
        plain.pop()
        places.pop()
    return "".join(plain), places


def _differences(lines: list[str], wanted: list[str], first: int) -> Iterator[str]:
    for number, (line, other) in enumerate(zip(lines, wanted, strict=False), first):
        line = line.removesuffix("\r")  # noqa: PLW2901  line endings are the file's own
        if line == other or max(len(line), len(other)) > COMPARED_LINE:
            continue
        matcher = difflib.SequenceMatcher(None, line, other, autojunk=False)
        for kind, start, end, other_start, other_end in matcher.get_opcodes():
            if kind != "equal":
                there, here = _describe(line[start:end]), _describe(other[other_start:other_end])
                yield f"line {number} has {there} where old_string has {here}"


def _describe(characters: str) -> str:
    if not characters:
        return "nothing"
    if len(set(characters)) == 1:
        times = f"{len(characters)} times " if len(characters) > 1 else ""
        return f"{times}{_named(characters[0])}"
    told = [_named(character) for character in characters[:SHOWN_CHARACTERS]]
    return ", ".join(told) + (" …" if len(characters) > SHOWN_CHARACTERS else "")


def _named(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'TAB' if character == chr(9) else '')}".rstrip()
