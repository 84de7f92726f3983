"""Paths that words of an unproven command may mean: good for deny and ask rules, which hold whatever the program is.

A program may take any word for a path, and a part of a word too: `if=FILE`, `f=@FILE`, `HOST:FILE`, `open('FILE')`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from longhaul.activities.shell.files import home_written_out
from longhaul.activities.shell.patterns import matching
from longhaul.activities.shell.words import Unreadable
from longhaul.agent.permission.globs import any_matches

MAX_PIECES = 2_000
_ENDS = re.compile(r"[=@:,]")
_WITHIN_A_SCRIPT = re.compile(r"[^\s'\"`()<>|;&{}\[\]=@:,$\\]+")


def mentioned(
    words: Sequence[str], at: Sequence[str], root: Path, closed: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, ...]]:
    """The names of each path that a word may mean and that one of the patterns in `closed` speaks of."""
    patterns = tuple(dict.fromkeys(pattern for _, pattern in closed))
    for piece in list(dict.fromkeys(piece for word in words[1:] for piece in _pieces(word)))[:MAX_PIECES]:
        for folder in at:
            for path in _meant(piece, folder):
                names = _names(path)
                if any(any_matches(pattern, names, str(root)) for pattern in patterns):
                    yield names


def _pieces(word: str) -> Iterator[str]:
    """The word, what stands behind each sign that a value begins with, and the words of a script in it."""
    yield word
    yield from (word[found.end() :] for found in _ENDS.finditer(word))
    yield from _WITHIN_A_SCRIPT.findall(word)
    if re.match(r"-[A-Za-z].", word):
        yield word[2:]


def _meant(piece: str, folder: str) -> Iterator[str]:
    text = home_written_out(piece)
    if not text or "\0" in text:
        return
    yield os.path.join(folder, text)  # noqa: PTH118  Path would take out what links change
    loose = re.sub(r"\[[^\]/]*\]", "?", text)
    if "*" in loose or "?" in loose:
        try:
            yield from (os.path.join(folder, name) for name in matching(loose, folder))  # noqa: PTH118
        except (Unreadable, OSError, ValueError):
            return


def _names(path: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys((os.path.normpath(path), os.path.realpath(path))))
    except (OSError, ValueError):
        return (os.path.normpath(path),)
