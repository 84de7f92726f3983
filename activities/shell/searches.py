"""Commands that read files which they do not name: searches through folders, and what git shows of its own store.

Each gives the files with secrets, and those with a second name, that it would come by; a person is asked about them as
if they had been named.

`find … | xargs PROGRAM`: what the program reads are the names below the folders that `find` looks through.

Proven only while every name there is one word for xargs, and it is `find` itself, alone, that writes them.
"""

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longhaul.activities.repository import IGNORES, SeveralNames, TooLarge, is_harmless, tracked_in, tree_of
from longhaul.activities.shell.flags import Arguments, Proof, find_operands, read_arguments
from longhaul.activities.shell.git_repositories import repository_above, secrets_in_commits
from longhaul.activities.shell.patterns import MARK
from longhaul.activities.shell.programs import PROGRAMS, parted, prove_read_only, shown_paths, tells_addresses
from longhaul.activities.shell.tree import Node
from longhaul.activities.shell.words import Unreadable, Word, read_word
from longhaul.agent.plain.text import names
from longhaul.stores.names import read_regular

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
    return Fed(inner, proof, tuple(path for start in starts for path in _piped_files(find, str(Path(folder, start)))))


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


def _piped_files(find: tuple[str, ...], start: str) -> list[str]:
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


_NAMES_ONLY = frozenset({"files", "type-list", "version", "help"})
_PLAIN_TYPES = names("c cpp css go html java js kotlin md markdown php py python rb ruby rust sql swift ts")
"""ripgrep's types none of whose names is a secret's."""


@dataclass(frozen=True, slots=True)
class _Search:
    links: bool = False
    hidden: bool = True
    """Goes into files and folders whose names begin with a dot."""
    wanted: tuple[str, ...] = ()
    """Patterns of names that are read; empty: all are."""
    without_files: tuple[str, ...] = ()
    without_folders: tuple[str, ...] = ()
    """Patterns of names that are left out."""

    def comes_by(self, path: str, start: str) -> bool:
        parts = Path(path).relative_to(start).parts
        if not self.hidden and any(part.startswith(".") for part in parts):
            return False
        if any(_matches(part, self.without_folders) for part in parts[:-1]):
            return False
        return not _matches(parts[-1], self.without_files) and (not self.wanted or _matches(parts[-1], self.wanted))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def reached(words: tuple[str, ...], proof: Proof, at: Sequence[str]) -> list[tuple[str, bool]]:
    """Absolute paths of what the proven command looks through (True), and of files with secrets or a second name and of
    links that would be followed, which it may read without naming them (False). Raises TooLarge, UnreadableIndex and
    OSError when that can't be told."""
    if words[0] == "git" and tells_addresses(words[1:]):
        return [(path, False) for directory in at for path in _config_of(words[1:], directory)]
    if words[0] == "git" and any(_leaves_the_repository(words[1:], directory) for directory in at):
        raise TooLarge
    if words[0] == "git":
        return [path for directory in at for path in _shown_by_git(words[1:], directory)]
    search = _search_of(words)
    if search is None:
        return []
    named = (*proof.reads, *((".",) if proof.here else ()))
    starts = dict.fromkeys(os.path.realpath(Path(directory) / name) for directory in at for name in named)
    found = [(path, False) for start in starts for path in _found(search, start)]
    return [*((start, True) for start in starts), *found]


def _found(search: _Search, start: str) -> Iterator[str]:
    tree = tree_of(start, with_links=search.links)
    if tree.secrets and not search.hidden and _brings_back((*tree.ignores, *_ignores_above(start))):
        search = replace(search, hidden=True)
    yield from (path for path in (*tree.secrets, *tree.second_names) if search.comes_by(path, start))
    if search.links:
        if any(os.path.isdir(link) for link in tree.links):  # noqa: PTH112  a Path for each would take longer
            raise TooLarge
        yield from tree.links


def _ignores_above(start: str) -> Iterator[str]:
    for folder in (Path(start), *Path(start).parents):
        yield from (str(folder / name) for name in (*IGNORES, ".git/info/exclude"))


IGNORES_BYTES = 1_000_000
"""Of a file that says what a search leaves out; where a longer one stands, people are asked."""


def _brings_back(ignores: Sequence[str]) -> bool:
    """Whether one of the files that say what ripgrep leaves out may bring back what is hidden (`!.env`)."""
    for ignore in ignores:
        try:
            if re.search(rb"^[^\S\n]*+!", read_regular(ignore, IGNORES_BYTES), re.MULTILINE):
                return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _search_of(words: tuple[str, ...]) -> _Search | None:
    program = PROGRAMS.get(words[0])
    read = read_arguments(program, words[1:]) if program is not None else None
    if read is None:
        return None
    match words[0]:
        case "grep" | "egrep" | "fgrep":
            into_folders = any(name == "d" and value not in ("skip", "read") for name, value in read.values)
            if not into_folders and not read.given & {"r", "R", "recursive"}:
                return None
            links = "R" in read.given
            include, exclude, folders = (_values(read, name) for name in ("include", "exclude", "exclude-dir"))
            if links or (include and exclude) or not all(map(_is_simple, (*include, *exclude, *folders))):
                return _Search(links=links)  # of mixed ones the order decides
            return _Search(wanted=include, without_files=exclude, without_folders=folders)
        case "rg" if not read.given & _NAMES_ONLY:
            globs = _values(read, "g", "glob", "iglob")
            unwanted = tuple(glob[1:] for glob in globs if glob.startswith("!"))
            wanted = tuple(glob for glob in globs if not glob.startswith("!"))
            hidden = bool(wanted or read.given & {"u", "unrestricted", "hidden", ".", "no-ignore"})
            if read.given & {"iglob"} or (wanted and unwanted) or not all(map(_is_simple, (*wanted, *unwanted))):
                return _Search()  # a glob that is wanted also brings back what is hidden
            types = _values(read, "t", "type")
            if types and not wanted and all(kind in _PLAIN_TYPES for kind in types):
                return _Search(wanted=("*.py",))
            return _Search(hidden=hidden, wanted=wanted, without_files=unwanted, without_folders=unwanted)
        case _:
            return None


def _values(read: Arguments, *names: str) -> tuple[str, ...]:
    return tuple(value for name, value in read.values if name in names)


def _is_simple(pattern: str) -> bool:
    """Whether every program agrees about what the pattern matches."""
    return re.fullmatch(r"[\w.*?-]+", pattern, re.ASCII) is not None and "**" not in pattern


def _shown_by_git(arguments: tuple[str, ...], directory: str) -> Iterator[tuple[str, bool]]:
    shown = shown_paths(arguments)
    if shown is None:
        return
    start = os.path.realpath(Path(directory) / shown.folder)
    repository = repository_above(start)
    if not repository:
        return
    top = Path(repository).parent
    for name in shown.in_commits:
        yield from ((str(base / name), False) for base in (top, Path(start)))
    if shown.only_limits:
        return
    limits = [Path(start, path) for path in shown.limits if os.path.lexists(Path(start, path))]
    within = [Path(os.path.normpath(path)) for path in limits] if shown.all_limit and limits else [top]
    yield from ((str(path), True) for path in within)
    folder = Path(repository)
    commits = shown.history or not all(os.path.lexists(Path(start, word)) for word in shown.limits)
    held = secrets_in_commits(top, folder) if commits else ()
    for name in dict.fromkeys((*tracked_in(folder / "index").secrets, *held)):
        path = top / name
        if any(path.is_relative_to(limit) for limit in within) and not is_harmless(str(path)):
            yield str(path), False
    if shown.files:
        several = SeveralNames()
        several.look_at_all(f"{top}/{name}" for name in tracked_in(folder / "index").names)
        elsewhere = several.with_one_elsewhere()
        yield from ((path, False) for path in elsewhere if any(Path(path).is_relative_to(limit) for limit in within))
    if shown.untracked:
        tree = tree_of(start, with_links=False)
        yield from ((path, False) for path in (*tree.secrets, *tree.second_names))


def _leaves_the_repository(arguments: tuple[str, ...], directory: str) -> bool:
    """Whether `git diff` would compare folders that no repository looks after, or `git grep` read through a link."""
    folder, rest = parted(arguments)
    if rest[0] not in ("diff", "grep"):
        return False
    start = os.path.realpath(Path(directory) / folder)
    repository = repository_above(start)
    top = Path(repository).parent
    if rest[0] == "grep":
        folders = tracked_in(Path(repository, "index")).folders if repository else ()
        return any(os.path.islink(f"{top}/{one}") for one in folders)  # noqa: PTH114  a Path for each would take longer
    named = [os.path.realpath(Path(start, word)) for word in rest[1:] if os.path.lexists(Path(start, word))]
    return not repository or not all(Path(path).is_relative_to(top) for path in named)


def _config_of(arguments: tuple[str, ...], directory: str) -> Iterator[str]:
    """The repository's own configuration, where an address in it has a password."""
    repository = repository_above(os.path.realpath(Path(directory) / parted(arguments)[0]))
    config = f"{repository}/config" if repository else ""
    if config and os.path.lexists(config) and not is_harmless(config):
        yield config
