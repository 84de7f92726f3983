"""Paths that words of an unproven command may mean: good for deny and ask rules, which hold whatever the program is.

A program may take any word for a path, and a part of a word too: `if=FILE`, `f=@FILE`, `HOST:FILE`, `open('FILE')`.
Of a folder that is moved or copied, what lies below is found under another name afterwards: all of it is looked at.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from longhaul.activities.repository.secret_trees import MAX_ENTRIES, TooLarge
from longhaul.activities.shell.files import home_written_out
from longhaul.activities.shell.path_names import Followed, spelt_below
from longhaul.activities.shell.patterns import matching
from longhaul.activities.shell.programs import CARRIERS, REPOSITORY_CARRIERS
from longhaul.activities.shell.words import Unreadable
from longhaul.activities.shell.wrappers import program_name
from longhaul.agent.permission.rule_matching import any_matches, may_match_below

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


def carried(words: Sequence[str], at: Sequence[str]) -> Iterator[str]:
    """The folders that an unproven command names, if it is one that moves or copies what lies in them."""
    program, rest = program_name(words[0]), words[1:]
    if program == "git":
        program = f"git {_subcommand(rest)}"
    if program not in CARRIERS:
        return
    for piece in list(dict.fromkeys(piece for word in rest for piece in _pieces(word)))[:MAX_PIECES]:
        yield from (path for folder in at for path in _meant(piece, folder) if os.path.isdir(path))  # noqa: PTH112


def carries_repository(words: Sequence[str]) -> bool:
    """Whether the command may write files of the repository, or a patch of them, elsewhere without naming them."""
    program = program_name(words[0])
    return (f"git {_subcommand(words[1:])}" if program == "git" else program) in REPOSITORY_CARRIERS


def _subcommand(words: Sequence[str]) -> str:
    """Of git: the first word that is neither an option nor the value of one."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
    return words[at] if at < len(words) else ""


def ruled_below(
    folder: str, root: Path, closed: Sequence[tuple[str, str]], ruled: Followed
) -> Iterator[tuple[str, ...]]:
    """The names of each path below `folder`, which is absolute, that one of the patterns in `closed` speaks of. Links
    are not followed. Raises TooLarge, OSError, ValueError."""
    patterns = tuple(dict.fromkeys(pattern for _, pattern in closed))
    starts, real = _names(folder), os.path.realpath(folder)
    seen, waiting = 0, [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(f"{real}/{below}") as entries:
            for entry in entries:
                seen += 1
                if seen > MAX_ENTRIES:
                    raise TooLarge
                name, path = f"{below}{entry.name}", f"{real}/{below}{entry.name}"
                names = (*(f"{start}/{name}" for start in starts), *spelt_below(ruled, path))
                if any(any_matches(pattern, names, str(root)) for pattern in patterns):
                    yield names
                if not entry.is_dir(follow_symlinks=False):
                    continue
                leads_below = any(target.startswith(f"{path}/") for _, target in ruled)
                if leads_below or any(may_match_below(pattern, names, str(root)) for pattern in patterns):
                    waiting.append(f"{name}/")


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
