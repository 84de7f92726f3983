"""The git part of the positive list. Configuration can make git run programs, so nothing that sets any is proven."""

import re
from dataclasses import dataclass

from activities.tools.shell_flags import Program, Proof, flags, prove, read_arguments
from agent.permission.suggestions import names

_DIFF = (
    "stat? name-only name-status patch no-patch unified= cached staged numstat shortstat summary raw quiet exit-code"
    " check"
    " word-diff? color? no-color color-words? diff-filter= find-renames? find-copies? relative? minimal patience"
    " histogram"
    " full-index abbrev? text ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines no-renames"
    " no-ext-diff no-textconv src-prefix= dst-prefix= no-prefix merge-base function-context compact-summary"
    " diff-algorithm="
    " ignore-submodules? dirstat? pickaxe-all pickaxe-regex"
)
_LOG = (
    _DIFF
    + " oneline graph all decorate? no-decorate pretty? format= abbrev-commit no-abbrev-commit since= until= after="
    " before= author= committer= grep= follow max-count= skip= reverse merges no-merges first-parent date= branches?"
    " tags?"
    " remotes? left-right cherry-pick cherry topo-order date-order author-date-order regexp-ignore-case invert-grep"
    " all-match"
    " fixed-strings extended-regexp perl-regexp notes? no-notes walk-reflogs parents children cc"
)
# -O is left out: of `git grep` it runs a pager.
_SHORT = "pusbwzaWRq U= S= G= M? C?"


def _git(short: str = "", long: str = "", most: int = 1000, *, digits: bool = False) -> Program:
    return Program(flags(short, long), "git", most, digits)


_SHOWN = _git(_SHORT + " n= cmgiEFP L=", _LOG, digits=True)

SUBCOMMANDS: dict[str, Program] = {
    "status": _git(
        "sbvz u?", "short branch porcelain? long verbose untracked-files? ignored? null show-stash ahead-behind column?"
    ),
    "log": _SHOWN,
    "show": _SHOWN,
    "whatchanged": _SHOWN,
    "reflog": _git(most=0),
    "shortlog": _git("nse", "numbered summary email all since= until= no-merges"),
    "diff": _git(_SHORT, _DIFF, digits=True),
    "diff-tree": _git(_SHORT + " rtvmc", _DIFF + " no-commit-id root pretty? format= oneline"),
    "rev-parse": _git(
        "q",
        "verify short? abbrev-ref? show-toplevel git-dir git-common-dir is-inside-work-tree is-bare-repository"
        " show-prefix"
        " show-cdup symbolic-full-name symbolic all quiet absolute-git-dir",
    ),
    "rev-list": _git(
        "n=", "all count max-count= since= until= no-merges merges first-parent left-right reverse", digits=True
    ),
    "ls-files": _git(
        "cdmoistuzkv x=",
        "cached deleted modified others ignored stage unmerged exclude= exclude-standard error-unmatch full-name",
    ),
    "ls-tree": _git("drtlz", "name-only name-status long full-name full-tree abbrev?"),
    "blame": _git("wslectnfp L= M? C?", "since= porcelain line-porcelain show-email date= show-name show-number root"),
    "grep": _git(
        "abcEFGhHiIlLnopPqvwz A= B= C= e= m=",
        "count ignore-case line-number files-with-matches name-only"
        " word-regexp extended-regexp"
        " fixed-strings perl-regexp cached untracked no-color color? all-match and or not heading break show-function",
    ),
    "branch": _git(
        "arv i q",
        "all remotes list verbose show-current sort= format= ignore-case no-color color? no-column",
        most=0,
    ),
    "tag": _git("l n?", "list sort= format=", most=0),
    "remote": _git("v", "verbose", most=0),
    "describe": _git("", "tags all long always dirty? abbrev= match= exact-match contains first-parent"),
    "cat-file": _git("tpse"),
    "show-ref": _git("dqs", "heads tags head verify quiet hash? branches"),
    "for-each-ref": _git("", "sort= format= count= merged? contains? no-merged? points-at="),
    "merge-base": _git("a", "all is-ancestor octopus fork-point"),
    "name-rev": _git("", "tags name-only always"),
    "check-ignore": _git("vqn", "verbose quiet non-matching no-index"),
    "count-objects": _git("vH", "verbose human-readable", most=0),
    "version": _git("", "build-options", most=0),
}
_LISTING = {("branch", "--list"), ("tag", "-l"), ("tag", "--list")}
_TWO_WORDS: dict[tuple[str, ...], Program] = {
    ("stash", "list"): _SHOWN,
    ("stash", "show"): _git(_SHORT, _DIFF),
    ("worktree", "list"): _git("v", "porcelain verbose", most=0),
    ("remote", "get-url"): _git("", "all push"),
    ("submodule", "status"): _git("", "recursive cached"),
    ("reflog", "show"): _SHOWN,
}


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
    if not rest or len(folders) > 1 or any(map(_VERIFIES.search, rest)):
        return None
    proof = _subcommand(rest)
    return None if proof is None else Proof(proof.reads + tuple(folders), here=True)


_VERIFIES = re.compile(r"%[-+ ]?G|%\(\*?signature")
"""In a format: git has gpg look at signatures then."""


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
    two_words = _TWO_WORDS.get(rest[:2])
    if two_words is not None:
        return prove(two_words, rest[2:])
    if rest[:2] in _LISTING and not any(word.startswith("-") for word in rest[2:]):
        return Proof()
    known = SUBCOMMANDS.get(rest[0])
    return None if known is None else prove(known, rest[1:])


_PATCH = names("p u U patch unified W function-context word-diff color-words cc c L a text")
_SUMMARY = names("stat name-only name-status numstat shortstat summary raw quiet s no-patch compact-summary dirstat")
_SHOW_WHEN_TOLD = frozenset({"log", "show", "diff", "whatchanged", "diff-tree", "reflog", "stash", "cat-file"})
_SHOW_UNLESS_SUMMED_UP = frozenset({"show", "diff", "whatchanged"})
_VERBOSE = names("v verbose")
"""Of `git status`: with a patch."""
_OF_WHAT_IS_THERE = frozenset({"grep", "blame", "diff"})
"""What prints the index and the files, unless a commit is named."""
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


def shown_paths(arguments: tuple[str, ...]) -> Shown | None:
    """None when the command, proven by `prove_git`, prints names and messages alone."""
    folder, rest = parted(arguments)
    size = 2 if rest[:2] in _TWO_WORDS else 1
    program = _TWO_WORDS.get(rest[:2]) or SUBCOMMANDS.get(rest[0])
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
    return Shown(folder, in_commits, named, all_limit, untracked, history=history)
