"""The git part of the positive list. Configuration can make git run programs, so nothing that sets any is proven."""

import re
from dataclasses import dataclass

from longhaul.activities.shell.flags import Program, Proof, prove, read_arguments
from longhaul.activities.shell.patterns import MARK
from longhaul.activities.shell.programs import GIT
from longhaul.agent.plain.text import names

_LISTING = {("branch", "--list"), ("tag", "-l"), ("tag", "--list")}


def _listed(rest: tuple[str, ...]) -> tuple[Program | None, int]:
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
    known, size = _listed(rest)
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
    program, size = _listed(rest)
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
