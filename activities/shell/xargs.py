"""`find … | xargs PROGRAM`: what the program reads are the names below the folders that `find` looks through.

Proven only while every name there is one word for xargs, and it is `find` itself, alone, that writes them.
"""

import fnmatch
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.repository.secret_trees import TooLarge, tree_of
from longhaul.activities.shell.flags import Proof
from longhaul.activities.shell.patterns import MARK
from longhaul.activities.shell.readonly import prove_read_only
from longhaul.activities.shell.scripts import find_operands
from longhaul.activities.shell.tree import Node
from longhaul.activities.shell.words import Unreadable, Word, read_word
from longhaul.agent.plain.text import names

_PROGRAMS = names("cat cut du egrep fgrep file grep head ls md5sum nl sed sha1sum sha256sum sort stat tac tail wc")
"""Whose operands are files to read, any number of them, wherever they stand."""
_PRINTS_OTHER = names("-printf -ls")
_JOINS = names("-o -or ! -not , ( )")
_TO_NOWHERE = re.compile(r"2>[ \t]*/dev/null")
_ONE_WORD = re.compile(r"[\w./@%+=:,-]+", re.ASCII)
_SIMPLE = re.compile(r"[\w.*?-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fed:
    """A command behind `find` and xargs."""

    inner: tuple[str, ...]
    proof: Proof
    """What it reads beside the names that it is fed."""
    found: tuple[str, ...]
    """Those of them that hold secrets, have a second name or are links, as absolute paths."""


def feeder(node: Node) -> tuple[str, ...]:
    """The words of a part of a pipeline that is a `find` with literal words; empty for all others."""
    parts = node.children if node.type == "redirected_statement" else [node]
    if parts[0].type != "command" or not all(_TO_NOWHERE.fullmatch(part.text) for part in parts[1:]):
        return ()
    if any(child.type == "variable_assignment" or child.type.endswith("redirect") for child in parts[0].children):
        return ()
    try:
        read = [read_word(child.text) for child in parts[0].children]
    except Unreadable:
        return ()
    literal = not any(word.pattern or word.brackets or word.tilde or word.status for word in read)
    return tuple(word.text for word in read) if literal and read[0].text == "find" else ()


def fed_by(find: tuple[str, ...], words: Sequence[Word], folder: str) -> Fed | None:
    """What `xargs …` would run behind `find`, both in `folder`. Raises TooLarge, OSError where that can't be told."""
    if any(word.pattern or word.brackets or word.tilde or word.status for word in words):
        return None
    by_nul, inner = _inner(tuple(word.text for word in words))
    starts = find_operands(find[1:])
    if not inner or inner[0] not in _PROGRAMS or starts is None or by_nul is not ("-print0" in find):
        return None
    # Without names xargs runs it once all the same.
    with_names, without = prove_read_only((*inner, f"{MARK}fed")), prove_read_only(inner)
    if with_names is None or without is None or not _PRINTS_OTHER.isdisjoint(find):
        return None
    if not all(map(_ONE_WORD.fullmatch, starts)):
        return None
    beside = tuple(path for path in with_names.reads if not path.startswith(MARK))
    proof = Proof((*beside, *without.reads), here=without.here)
    return Fed(inner, proof, tuple(path for start in starts for path in _found(find, str(Path(folder, start)))))


def _inner(texts: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Whether names end with NUL, and the command; none behind options that change what becomes of the names."""
    at, by_nul = 1, False
    while at < len(texts) and texts[at].startswith("-"):
        by_nul = by_nul or texts[at] in ("-0", "-0r", "-r0", "--null")
        if texts[at] == "-n" and texts[at + 1 : at + 2] and texts[at + 1].isdecimal():
            at += 1
        elif texts[at] not in ("-0", "-r", "-0r", "-r0", "--null", "--no-run-if-empty"):
            return by_nul, ()
        at += 1
    return by_nul, texts[at:]


def _found(find: tuple[str, ...], start: str) -> list[str]:
    tree = tree_of(os.path.realpath(start), with_links=True)
    if tree.odd or any(map(os.path.isdir, tree.links)):
        raise TooLarge
    if not _JOINS.isdisjoint(find):
        return [*tree.secrets, *tree.second_names, *tree.links]
    files_alone = "-type" in find and find[find.index("-type") + 1] == "f"
    found = [*tree.secrets, *tree.second_names, *(() if files_alone else tree.links)]
    wanted = find[find.index("-name") + 1] if find.count("-name") == 1 else ""
    if not _SIMPLE.fullmatch(wanted):
        return found
    return [path for path in found if fnmatch.fnmatchcase(Path(path).name, wanted)]
