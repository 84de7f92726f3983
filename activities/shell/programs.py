"""The positive list of programs: what those of `programs.toml` read and write, and the part of git that is proven.

That file also says how to read and extend it. Configuration can make git run programs, so nothing that sets any is
proven.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longhaul.activities.shell.flags import (
    MANY,
    Operands,
    Program,
    Proof,
    awk_program_is_plain,
    find_operands,
    flags,
    prove,
    read_arguments,
    sed_script_is_plain,
)
from longhaul.activities.shell.patterns import MARK, is_mark
from longhaul.agent.plain.text import names

LIST = Path(__file__).with_name("programs.toml")
_KEYS = frozenset({"why", "short", "long", "operands", "most", "digits", "plain", "here", "no_folders"})


def _programs(table: dict[str, dict[str, Any]], operands: Operands) -> dict[str, Program]:
    return {name: _program(name, entry, operands) for name, entry in table.items()}


def _program(name: str, entry: dict[str, Any], operands: Operands) -> Program:
    if not entry.get("why") or not entry.keys() <= _KEYS:
        raise ValueError(f"{LIST.name}: {name} needs `why`, and has of {sorted(_KEYS)} nothing but these")
    return Program(
        flags(entry.get("short", ""), entry.get("long", "")),
        entry.get("operands", operands),
        entry.get("most", MANY),
        digits=entry.get("digits", False),
        plain=entry.get("plain", False),
        here=entry.get("here", False),
        no_folders=entry.get("no_folders", False),
    )


def _of_git(subcommands: str) -> tuple[str, ...]:
    return tuple(f"git {subcommand}" for subcommand in subcommands.split())


_LISTED: dict[str, dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))
PROGRAMS = _programs(_LISTED["programs"], "paths")
EDITORS = _programs(_LISTED["editors"], "paths")
"""Programs whose only effect is on the paths that they name: what `accept_edits` may do unasked in the workspace."""
GIT = _programs(_LISTED["git"], "git")
"""By one word, or by two with a blank between them."""
CARRIERS = frozenset((*_LISTED["carriers"]["programs"].split(), *_of_git(_LISTED["carriers"]["git"])))
"""Programs, and subcommands as `git mv`, that are not proven and give what lies below a folder another name."""
REPOSITORY_CARRIERS = frozenset((*_LISTED["carriers"]["patching"].split(), *_of_git(_LISTED["carriers"]["repository"])))
"""The same for files of the repository that no word names."""
VERSIONS = {program: frozenset(words.split()) for program, words in _LISTED["versions"].items()}
"""Not here: programs that run what a file of the workspace names, also for their version (cargo and rustc by
rust-toolchain.toml, go by go.mod, yarn by .yarnrc.yml, pnpm by package.json, pytest by conftest.py, pip by a
project that is installed as it stands in the workspace)."""


_LISTING = {("branch", "--list"), ("tag", "-l"), ("tag", "--list")}


def _look_up(rest: tuple[str, ...]) -> tuple[Program | None, int]:
    """What the list says of a subcommand, and of how many words that is."""
    two_words = GIT.get(" ".join(rest[:2]))
    return (GIT.get(rest[0]), 1) if two_words is None else (two_words, 2)


def prove_git(arguments: tuple[str, ...]) -> Proof | None:
    """What the git command reads, when it is proven to change nothing and to run nothing."""
    at, folders = 0, []
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "-C" and at + 1 < len(arguments):
            folders.append(arguments[at + 1])
            at += 1
        elif arguments[at] not in ("--no-pager", "-P", "--no-optional-locks"):
            return None
        at += 1
    rest = arguments[at:]
    if not rest or len(folders) > 1 or any(_VERIFIES.search(word) or word.startswith(MARK) for word in arguments):
        return None
    proof = _subcommand(rest)
    return None if proof is None else Proof(proof.reads, here=True, folder="".join(folders))


_VERIFIES = re.compile(r"%[-+ ]?G|%\(\*?signature|^--sort=.*signature")
"""In a format or an order: git has gpg look at signatures then."""


def parted(arguments: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Of a proven command: where git starts, relative to the shell's directory, and the words behind its options."""
    at, folder = 0, "."
    while at < len(arguments) and arguments[at].startswith("-"):
        folder = arguments[at + 1] if arguments[at] == "-C" else folder
        at += 2 if arguments[at] == "-C" else 1
    return folder, arguments[at:] or ("version",)


def tells_addresses(arguments: tuple[str, ...]) -> bool:
    """Whether a proven command prints where other repositories are, which may have a password in it."""
    _, rest = parted(arguments)
    return rest[0] == "remote" and len(rest) > 1


def _subcommand(rest: tuple[str, ...]) -> Proof | None:
    if rest[:2] in _LISTING and not any(word.startswith("-") for word in rest[2:]):
        return Proof()
    known, size = _look_up(rest)
    return None if known is None else prove(known, rest[size:])


_PATCH = names("check m p u U patch unified W function-context word-diff color-words cc c L a text S G pickaxe-all")
_SUMMARY = names("stat name-only name-status numstat shortstat summary raw quiet s no-patch compact-summary dirstat")
_SHOW_WHEN_TOLD = frozenset({"log", "show", "diff", "whatchanged", "diff-tree", "reflog", "stash", "cat-file"})
_SHOW_UNLESS_SUMMED_UP = frozenset({"show", "diff", "whatchanged"})
_VERBOSE = names("v verbose")
"""Of `git status`: with a patch."""
_OF_WHAT_IS_THERE = frozenset({"grep", "blame", "diff"})
"""What prints the index and the files, unless a commit is named."""
_OF_FILES = _OF_WHAT_IS_THERE | {"status"}
_SHOW_ALWAYS = frozenset({"grep", "blame"})
"""What prints the content of files, and when."""
_FILE_IN_COMMIT = re.compile(r"[^:/{]*:(?!/)[^:]+")
"""`HEAD:PATH`, and nothing that finds a commit by its message."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What of a repository's content a proven git command may print."""

    folder: str
    """Where git starts, relative to the shell's directory."""
    in_commits: tuple[str, ...]
    """Paths out of `COMMIT:PATH`."""
    limits: tuple[str, ...]
    """Words that limit it to these files and folders, those that name one."""
    all_limit: bool
    """No word may stand for more files than it names."""
    untracked: bool
    only_limits: bool = False
    """It prints what the limits name, also when none of them is there now."""
    history: bool = True
    """It prints commits, and what they hold may be gone from the index and the files."""
    files: bool = False
    """It prints what the files of the working tree hold."""


def shown_paths(arguments: tuple[str, ...]) -> Shown | None:
    """None when the command, proven by `prove_git`, prints names and messages alone."""
    folder, rest = parted(arguments)
    program, size = _look_up(rest)
    read = read_arguments(program, rest[size:]) if program is not None else None
    if read is None:
        return None
    in_commits = tuple(word.rpartition(":")[2] for word in read.operands if ":" in word)
    shows = rest[0] in _SHOW_ALWAYS or (rest[0] in _SHOW_WHEN_TOLD and bool(read.given & _PATCH))
    shows = shows or (rest[0] in _SHOW_UNLESS_SUMMED_UP and not read.given & _SUMMARY)
    # A repository can set `stash.showPatch`, which counts where no other format is told.
    shows = shows or (rest[:2] == ("stash", "show") and not read.given & _SUMMARY)
    shows = shows or (rest[0] == "status" and bool(read.given & _VERBOSE))
    if not shows and not in_commits:
        return None
    if rest[0] in ("show", "cat-file") and all(map(_FILE_IN_COMMIT.fullmatch, read.operands)) and read.operands:
        return Shown(folder, in_commits, in_commits, all_limit=True, untracked=False, only_limits=True)
    named = read.operands
    if rest[0] == "grep" and "e" not in read.given:
        named = named[1:]
    if "--" in rest:
        named = rest[rest.index("--") + 1 :]
    all_limit = not any(char in word for word in named for char in "*?[:\\^")
    commits = read.operands[: len(read.operands) - len(named)]
    if rest[0] == "grep" and "e" not in read.given:
        commits = commits[1:]
    history = rest[0] not in _OF_WHAT_IS_THERE or bool(commits) or bool(read.given & {"cached", "staged"})
    untracked = rest[0] == "grep" and "untracked" in read.given
    files = rest[0] in _OF_FILES and not read.given & {"cached", "staged"}
    return Shown(folder, in_commits, named, all_limit, untracked, history=history, files=files)


def prove_read_only(words: tuple[str, ...]) -> Proof | None:
    """What the command reads, when it is proven to change nothing; None when it is not. Words are after quoting."""
    program, arguments = words[0], words[1:]
    if asks_version(words):
        return Proof()
    if program == "echo":
        return Proof()
    special: Callable[[tuple[str, ...]], Proof | None] | None = _SPECIAL.get(program)
    if special is not None:
        return special(arguments)
    known = PROGRAMS.get(program)
    return None if known is None else prove(known, arguments)


def asks_version(words: tuple[str, ...]) -> bool:
    """Whether it only prints a version, as far as the program is what its name says."""
    return len(words) == 2 and words[1] in VERSIONS.get(words[0], ())


def is_steered(words: tuple[str, ...]) -> bool:
    """Whether files or variables could make the proven command do something else: it needs the hardened environment."""
    return words[0] in ("git", "rg") or (words[0] in VERSIONS and words[0] not in PROGRAMS)


def prove_edit(words: tuple[str, ...]) -> Proof | None:
    """What the command reads and writes, when it is proven to change nothing else; None when it is not."""
    known = EDITORS.get(words[0])
    if known is None:
        return None
    read = read_arguments(known, words[1:])
    if read is None:
        return None
    proof: Proof | None = Proof((), read.operands + read.paths)
    if words[0] == "sed":
        proof = _sed(words[1:], known)
    elif words[0] in ("cp", "mv"):
        # Of several names the last one is where the others go.
        proof = _moved(words[0], read.operands, read.paths) if not any(map(is_mark, words)) else None
    makes = words[0] in ("mkdir", "touch", "cp") and not read.given & {"d", "P"}
    return None if proof is None else replace(proof, moves=not makes)


def _moved(program: str, operands: tuple[str, ...], into: tuple[str, ...]) -> Proof | None:
    """`cp` without -r and `mv`. The target may be a folder: what lies in it under the source's name is written too."""
    if len(operands) + len(into) < 2:
        return None
    target, sources = (into[-1], operands) if into else (operands[-1], operands[:-1])
    landing = tuple(f"{target}/{source.rstrip('/').rsplit('/', 1)[-1]}" for source in sources)
    written = (target, *landing)
    # What is moved is read as well: a rule about the old name says nothing of the new one.
    return Proof(sources, written if program == "cp" else sources + written)


def _find(arguments: tuple[str, ...]) -> Proof | None:
    reads = find_operands(arguments)
    return None if reads is None else Proof(reads, here=not reads)


def _sed(arguments: tuple[str, ...], program: Program = PROGRAMS["sed"]) -> Proof | None:
    read = read_arguments(program, arguments)
    if read is None:
        return None
    scripts = [value for name, value in read.values if name in ("e", "expression")]
    files = read.operands if scripts else read.operands[1:]
    scripts = scripts or list(read.operands[:1])
    if not scripts or not all(sed_script_is_plain(script) for script in scripts):
        return None
    if not read.given & {"i", "in-place"}:
        return Proof(files)
    endings = [value for name, value in read.values if name in ("i", "in-place")]
    if any("/" in ending or "*" in ending for ending in endings) or (endings and any(map(is_mark, files))):
        return None
    # With an ending the file's old content is written beside it, and in the place of a link comes a copy of its file.
    copies = tuple(f"{file}{ending}" for file in files for ending in endings)
    return Proof(files, files + copies)


def _awk(arguments: tuple[str, ...]) -> Proof | None:
    """`awk -F: PROGRAM FILE…`: behind the program nothing is an option, and `name=value` is no file."""
    at = 0
    while arguments[at : at + 1] and arguments[at].startswith("-F"):
        at += 1 if arguments[at] != "-F" else 2
    program, files = "".join(arguments[at : at + 1]), arguments[at + 1 :]
    # Of a separator that becomes several names, the second would be the program.
    if any(map(is_mark, arguments[:at])):
        return None
    if not awk_program_is_plain(program) or any(file.startswith("-") or "=" in file for file in files):
        return None
    return Proof(files)


def _printf(arguments: tuple[str, ...]) -> Proof | None:
    """Without `-v` and `%n`, which set a variable: PATH or HOME, for the rest of the line."""
    words = arguments[1:] if arguments[:1] == ("--",) else arguments
    if not words:
        return Proof()
    option = words is arguments and words[0].startswith("-")
    return None if option or is_mark(words[0]) or "%" in _CONVERSION.sub("", words[0]) else Proof()


_CONVERSION = re.compile(r"%(?:%|[-+ #0]*+[0-9]*+(?:\.[0-9]*+)?[diouxXeEfgGcsbq]|\([^()]*\)T)", re.ASCII)


def _test(arguments: tuple[str, ...]) -> Proof | None:
    """`test`: only forms that evaluate nothing; `-v` and arithmetic would run what stands in a subscript."""
    if any(map(is_mark, arguments)):
        return None
    left = arguments[1:] if arguments[:1] == ("!",) else arguments
    if len(left) == 2 and left[0] in ("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h"):
        return Proof((left[1],))
    plain = (len(left) == 2 and left[0] in ("-n", "-z")) or (len(left) == 3 and left[1] in ("=", "!="))
    return Proof() if plain else None


def _command(arguments: tuple[str, ...]) -> Proof | None:
    return Proof() if arguments[:1] in (("-v",), ("-V",)) else None


_SPECIAL: dict[str, Callable[[tuple[str, ...]], Proof | None]] = {
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "printf": _printf,
    "test": _test,
    "command": _command,
    "git": prove_git,
}
