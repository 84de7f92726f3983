"""The names that bash puts in the place of a file pattern, or that nobody can tell.

Patterns are marked before a command's words are read, and names are put in only where any number of paths may stand in
any order: so nothing hangs on the order in which bash sorts them, and none becomes an option, a script or a program.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from longhaul.activities.shell.words import Unreadable, Word

MAX_MATCHES = 200
MAX_ENTRIES = 20_000
MARK = "\0"
"""How a word begins that stands for a pattern: no word of a line can."""
_NO_NAMES = ("-", "(", ")", "!", ",", "+", "=", ":")
"""What a program may take for something else than a name."""


def is_mark(word: str) -> bool:
    return word.startswith(MARK)


@dataclass(frozen=True, slots=True)
class Marked:
    """Words of a command, each pattern replaced by a mark."""

    words: tuple[str, ...]
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What stands in the place of each mark."""
    folders: tuple[str, ...] = ()
    """In which bash looks for the names: it may print what lies there."""

    def named(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The paths with names in the places of marks."""
        return tuple(name for path in paths for name in self.names.get(path, (path,)))


def marked(words: Sequence[Word], texts: Sequence[str], folder: str) -> Marked:
    """`texts`: the words with homes written out. Raises Unreadable where it can't be told what bash makes of them."""
    if not any(word.pattern for word in words):
        return Marked(tuple(texts))
    seen: list[str] = []
    names: dict[str, tuple[str, ...]] = {}
    folders: list[str] = []
    for place, (word, text) in enumerate(zip(words, texts, strict=True)):
        if not word.pattern:
            seen.append(text)
            continue
        found = matching(text, folder)
        if text.startswith(_NO_NAMES) or any(name.startswith(_NO_NAMES) for name in found):
            if found or not text.startswith("-"):
                raise Unreadable("a pattern that may stand for an option")
            seen.append(text)
            continue
        seen.append(f"{MARK}{place}")
        names[seen[-1]] = found or (text,)
        # The folder before the first wildcard.
        start = re.split(r"[*?]", text, maxsplit=1)[0]
        plain_folder = start.rpartition("/")[0] or ("/" if start.startswith("/") else ".")
        folders += [plain_folder, *(os.path.dirname(name) or "." for name in found)]  # noqa: PTH120
    return Marked(tuple(seen), names, tuple(dict.fromkeys(folders)))


def matching(pattern: str, folder: str) -> tuple[str, ...]:
    """Sorted by their bytes; empty when there are none, and bash leaves the pattern as it stands.

    Raises Unreadable for what bash may see otherwise: names that are no UTF-8, `?` where a name has letters of
    several bytes, hidden names.
    """
    found = ["/"] if pattern.startswith("/") else [""]
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        found = [longer for start in found for longer in _longer(start, part, folder, last=last)]
        if len(found) > MAX_MATCHES:
            raise Unreadable("a pattern that stands for too many names")
    return tuple(sorted(found, key=os.fsencode))


def _longer(start: str, part: str, folder: str, *, last: bool) -> list[str]:
    """The paths that `start` becomes by one more part of the pattern."""
    here = Path(folder, start)
    if part == "":
        return [start] if (last and here.is_dir()) or not last else []
    end = "" if last else "/"
    return [f"{start}{name}{end}" for name in _names_in(here, part) if last or (here / name).is_dir()]


def _names_in(folder: Path, part: str) -> list[str]:
    if "*" not in part and "?" not in part:
        return [part] if os.path.lexists(folder / part) else []
    if part.startswith("."):
        raise Unreadable("a pattern of hidden names")
    try:
        names = os.listdir(folder)  # noqa: PTH208  a Path for each would take longer
    except OSError:
        return []
    if len(names) > MAX_ENTRIES:
        raise Unreadable("a pattern in a folder of too many names")
    for name in names:
        if not name.isascii() and ("?" in part or not _is_utf8(name)):
            raise Unreadable("a pattern where names have letters that can be counted in two ways")
    expression = _expression(part)
    return [name for name in names if not name.startswith(".") and expression.match(name)]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=256)
def _expression(part: str) -> re.Pattern[str]:
    return re.compile(translate(part.replace("[", "[[]")))
