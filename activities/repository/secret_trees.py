"""Finds the files that a search through a folder would come by and that people are asked about: those with secrets, by
their names, and those with a second name (a hard link) that may lie outside of the folder."""

import os
import re
import stat
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from longhaul.activities.repository.dangerous_files import PACKAGES
from longhaul.agent.permission.call_facts import KEYRINGS, is_secret
from longhaul.stores.names import read_regular

MAX_ENTRIES = 100_000
MAX_FOUND = 200
REMEMBERED_SECONDS = 1.0
REMEMBERED_TREES = 32
_PUBLISHED = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__"})
"""Packages from elsewhere: their keys are for tests, and their certificates are everybody's."""
IGNORES = (".gitignore", ".ignore", ".rgignore")
_PEEKED_BYTES = 100_000
_TELLS = {
    ".pem": re.compile(rb"PRIVATE KEY|OPENSSH|\A\x30"),
    ".key": re.compile(rb"PRIVATE KEY|OPENSSH|\A\x30"),
    ".npmrc": re.compile(rb"_auth|_password|token|secret", re.IGNORECASE),
    ".git/config": re.compile(
        rb"https?://[^/\s]*@|://[^/\s@:]*+:[^/\s@]*@|header|password|token|secret", re.IGNORECASE
    ),
}
"""In these a search may go on unasked unless their content says otherwise: half of all projects have one."""


_PLAIN = re.compile(r"[\w.,:;@%+=~#^()\[\]{}$&!*?<>|-]+")


class TooLarge(Exception):
    """The folder holds more than can be looked through."""


@dataclass(slots=True)
class Tree:
    secrets: list[str] = field(default_factory=list)
    """Absolute paths, links not resolved."""
    links: list[str] = field(default_factory=list)
    second_names: list[str] = field(default_factory=list)
    """Files, not of packages, that have a further name which is not in the folder."""
    ignores: list[str] = field(default_factory=list)
    """Files that say what ripgrep leaves out."""
    odd: bool = False
    """Whether a name has a character that splits words somewhere: a blank, a quote, a line's end."""


def tree_of(folder: str, *, with_links: bool, most: int = MAX_ENTRIES) -> Tree:
    """What lies in and below `folder`; `with_links` looks for links too, and into published packages.

    Raises TooLarge above `most` names. What was found is remembered for a second: the lines of one reply search the
    same tree.
    """
    try:
        key = (folder, with_links, Path(folder).stat().st_mtime_ns)
    except (OSError, ValueError):
        return Tree()
    now = time.monotonic()
    at, known = _remembered.get(key, (0.0, None))
    if known is None or now - at > REMEMBERED_SECONDS:
        known = _walked(folder, most, with_links=with_links)
        _remembered[key] = (now, known)
        while len(_remembered) > REMEMBERED_TREES:
            _remembered.popitem(last=False)
    return known


_remembered: OrderedDict[tuple[str, bool, int], tuple[float, Tree | None]] = OrderedDict()


def _walked(start: str, most: int, *, with_links: bool) -> Tree:
    tree, seen = Tree(), 0
    several = SeveralNames()
    waiting = [(start, Path(start).name.lower(), False)]
    while waiting:
        folder, folder_name, in_keyring = waiting.pop()
        for entry in _entries(folder):
            seen += 1
            if seen > most:
                raise TooLarge
            name = entry.name.lower()
            tree.odd = tree.odd or not _PLAIN.fullmatch(name)
            tree.ignores.extend([entry.path] if name in IGNORES else ())
            if entry.is_symlink():
                tree.links.extend([entry.path] if with_links else ())
            elif entry.is_dir(follow_symlinks=False):
                if not _is_passed_by(folder_name, name, with_links=with_links):
                    waiting.append((entry.path, name, in_keyring or name in KEYRINGS))
            else:
                several.look_at(entry)
                if (in_keyring or is_secret((folder_name, name))) and not is_harmless(entry.path):
                    tree.secrets.append(entry.path)
        if len(tree.secrets) > MAX_FOUND or len(tree.links) > MAX_FOUND:
            raise TooLarge
    tree.second_names.extend(several.with_one_elsewhere())
    if len(tree.second_names) > MAX_FOUND:
        raise TooLarge
    return tree


class SeveralNames:
    """Files with several names, and which of their names were come by."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[int, list[str]]] = {}

    def look_at(self, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return
        self._add(status, entry.path)

    def look_at_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                continue
            self._add(status, path)

    def _add(self, status: os.stat_result, path: str) -> None:
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            self._found.setdefault((status.st_dev, status.st_ino), (status.st_nlink, []))[1].append(path)

    def with_one_elsewhere(self) -> Iterator[str]:
        """Those that have more names than were come by, and are none of packages, which share their files."""
        elsewhere = (path for count, paths in self._found.values() if len(paths) < count for path in paths)
        return (path for path in elsewhere if PACKAGES.isdisjoint(Path(path).parts))


def _is_passed_by(folder: str, name: str, *, with_links: bool) -> bool:
    return (name in _PUBLISHED and not with_links) or (folder, name) == (".git", "objects")


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def is_harmless(path: str) -> bool:
    """Whether the file has a name that is often harmless, and holds nothing that tells otherwise."""
    tell = next((tell for ending, tell in _TELLS.items() if path.lower().endswith(ending)), None)
    if tell is None:
        return False
    try:
        return tell.search(read_regular(path, _PEEKED_BYTES)) is None
    except OSError:
        return False
