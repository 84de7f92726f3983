"""Collects what is found out about one command line: its commands, its paths, and what speaks against it.

A proof about files holds only while no other part of the line changes them first.

Paths that words of an unproven command may mean: good for deny and ask rules, which hold whatever the program is.

A program may take any word for a path, and a part of a word too: `if=FILE`, `f=@FILE`, `HOST:FILE`, `open('FILE')`.
Of a folder that is moved or copied, what lies below is found under another name afterwards: all of it is looked at.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Literal

from longhaul.activities.repository import MAX_ENTRIES, TooLarge
from longhaul.activities.shell import tree as shell_tree
from longhaul.activities.shell.dangerous_commands import danger_of, program_name, unwrap
from longhaul.activities.shell.git_repositories import repository_above
from longhaul.activities.shell.paths import (
    Followed,
    danger_of_name,
    followed,
    further_names,
    path_use,
    resolve,
    spelt_below,
)
from longhaul.activities.shell.patterns import matching
from longhaul.activities.shell.programs import CARRIERS, REPOSITORY_CARRIERS
from longhaul.activities.shell.tree import Node
from longhaul.activities.shell.words import (
    Unreadable,
    chooses_by_folder,
    folders_with,
    home_written_out,
    lies_in,
    loosely,
)
from longhaul.activities.tool import Place, ToolError
from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.rule_matching import any_matches, may_match_below


class PartEffect(IntEnum):
    """What a part does to the world, as far as another part may notice."""

    NOTHING = 0
    MAKES = 1
    """New plain files and folders, and what plain files hold: no path leads elsewhere for it."""
    MOVES = 2
    """It may put something else in the place of a name, a link among it."""
    RUNS = 3
    """Anything."""


class Leans(IntEnum):
    """What a part's proof stands on."""

    WORDS = 0
    """On nothing but its words: it works on text."""
    PATHS = 1
    """On where its paths lead."""
    NAMES = 2
    """On which names there are: a pattern stands for them."""
    SETTINGS = 3
    """On files and variables that steer the program, which are held off only from a line that is proven as a whole."""


@dataclass(frozen=True, slots=True)
class LinePart:
    """One command or redirection of a line."""

    words: tuple[str, ...]
    effect: PartEffect
    leans: Leans
    step: int
    """Parts of one step may run at the same time; those of a lower one are done before."""

    def is_undone_by(self, other: "LinePart") -> bool:
        """Whether this part's proof says nothing any more, for what the other part may do."""
        if self.leans is Leans.SETTINGS and other.effect is PartEffect.RUNS:
            return True
        if other.step > self.step or self.leans is Leans.WORDS:
            return False
        return other.effect >= PartEffect.MOVES or (other.effect is PartEffect.MAKES and self.leans >= Leans.NAMES)


def undone(parts: Sequence[LinePart]) -> set[tuple[str, ...]]:
    """The words of those parts whose proof does not hold beside the others."""
    changing = [(place, part) for place, part in enumerate(parts) if part.effect]
    return {
        part.words
        for place, part in enumerate(parts)
        if any(place != other_place and part.is_undone_by(other) for other_place, other in changing)
    }


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


MAX_PARSED_CHARACTERS = 20_000
"""Some lines take the parser time by the square of their length: here-documents without an end, a second at this."""
MAX_LISTED = 300
MAX_SCRIPT_DEPTH = 3

Directories = tuple[str, ...]
"""Where the shell may be at this point: several when a `cd` may have failed, or a link makes `..` ambiguous."""


@dataclass
class Findings:
    root: Path
    cwd: str
    foreign: str = ""
    safety: str = ""
    ruled: tuple[str, ...] = ()
    commands: dict[tuple[str, ...], SubCommand] = field(default_factory=dict)
    paths: dict[tuple[str, str], PathUse] = field(default_factory=dict)
    closed: tuple[tuple[str, str], ...] = ()
    """As in `Place`."""
    at: tuple[str, ...] = ()
    """Where the shell may be at the part that is looked at now."""
    mentioned: dict[tuple[str, ...], None] = field(default_factory=dict)
    step: int = 0
    """Of the part that is looked at now: see `shell_order`."""
    _parts: list[LinePart] = field(default_factory=list)
    _inside: dict[str, bool] = field(default_factory=dict)
    """Folders of PATH, and whether they lie in the workspace."""
    _choosing: dict[str, bool] = field(default_factory=dict)
    """Programs, and whether what PATH leads to chooses another one by files of the workspace."""

    def unknown_outcome(self, construct: str) -> None:
        """Name what is not understood; the first one stays."""
        self.foreign = self.foreign or construct

    def warn(self, danger: str) -> None:
        """Name what is dangerous, if anything; the first one stays."""
        self.safety = self.safety or danger

    def analysis(self) -> CallAnalysis:
        lost = undone(self._parts)
        if any(words[0] == "<" for words in lost):
            lost = set(self.commands)
        self.commands.update({words: SubCommand(words=words) for words in lost})
        read_only = not self.foreign and not self.safety and all(fact.access == "read" for fact in self.paths.values())
        return CallAnalysis(
            cwd=self.cwd,
            read_only=read_only
            and bool(self.commands)
            and all(command.read_only for command in self.commands.values()),
            commands=tuple(self.commands.values()),
            paths=tuple(self.paths.values()),
            mentioned=tuple(self.mentioned),
            not_understood=self.foreign,
            safety=self.safety,
        )

    def add(
        self,
        words: tuple[str, ...],
        effect: PartEffect = PartEffect.RUNS,
        leans: Leans = Leans.WORDS,
        *,
        read_only: bool = False,
    ) -> None:
        """List a sub-command; of two findings on the same words the worse one stays."""
        edits_only = effect in (PartEffect.MAKES, PartEffect.MOVES)
        self._parts.append(LinePart(words, effect, leans, self.step))
        before = self.commands.get(words)
        if before is None and len(self.commands) >= MAX_LISTED:
            self.unknown_outcome(f"more than {MAX_LISTED} commands")
            return
        if before is not None:
            read_only, edits_only = read_only and before.read_only, edits_only and before.edits_only
        self.commands[words] = SubCommand(words=words, read_only=read_only, edits_only=edits_only)
        self.warn(danger_of(words))

    def reads_input(self, target: str) -> None:
        """A redirection that reads is no sub-command, but where it leads may be changed by one."""
        self._parts.append(LinePart(("<", target), PartEffect.NOTHING, Leans.PATHS, self.step))

    def is_by_the_workspace(self, program: str) -> bool:
        """Whether PATH leads to a program of that name in the workspace, or to one that the workspace may choose: only
        the system's are proven."""
        for folder in folders_with(program):
            if folder not in self._inside:
                self._inside[folder] = lies_in(folder, self.root)
            if self._inside[folder]:
                return True
        if program not in self._choosing:
            self._choosing[program] = chooses_by_folder(program)
        return self._choosing[program]

    def touch(
        self, raw: str, access: Literal["read", "write"], directories: Directories, *, searched: bool = False
    ) -> bool:
        """Record where `raw` leads from each directory; False when that can't be told."""
        for directory in directories:
            try:
                place = Place(self.root, Path(directory), ruled=self.ruled)
                resolved = resolve(raw, place)
                named = further_names(raw, resolved, place, self._followed)
            except (ToolError, OSError, ValueError):
                return False
            before = self.paths.get((str(resolved), access))
            named = tuple(dict.fromkeys((*(before.named if before else ()), *named)))
            searched = searched or bool(before and before.searched)
            fact = path_use(resolved, access, self.root, named)
            self.paths[str(resolved), access] = fact.model_copy(update={"searched": True}) if searched else fact
            if access == "write" and (link := _link_itself(raw, directory)) not in ("", str(resolved)):
                # `mv` and `rm` change the link, whatever it leads to.
                self.paths[link, access] = path_use(Path(link), access, self.root, named)
        return True

    @cached_property
    def _followed(self) -> Followed:
        return followed(self.ruled)

    def list_loosely(self, tree: Node, depth: int = 0) -> None:
        """The commands of a line that is not understood, wherever they stand: never proven, good for deny rules."""
        for node, _ in shell_tree.every_node(tree):
            if node.type == "command":
                parts = [child for child in node.children if not child.type.endswith("redirect")]
                words = tuple(loosely(part.text) for part in parts if part.type != "variable_assignment")
                if words:
                    self.list_wrapped(words, depth)
            elif node.type == "file_redirect" and node.children:
                target = loosely(node.children[-1].text)
                operators = [child.type for child in node.children if ">" in child.type]
                if operators and not leads_to_no_file(operators[0], target):
                    self.redirected(target, (self.cwd,))

    def list_wrapped(self, words: tuple[str, ...], depth: int = 0) -> None:
        """List a command that is not proven, and all that it runs."""
        self.add(words)
        # Any word of an unproven command that leads to a dangerous file: what the command does with it is unknown.
        if len(words) > MAX_LISTED:
            self.warn(f"more than {MAX_LISTED} words are too many to look at")
        for word in words[1:MAX_LISTED]:
            raw = word.rpartition("=")[2] if word.startswith("-") or "=" in word else word
            for candidate in {raw, raw.removeprefix("@")}:
                self.warn(self._danger_at(candidate))
        if self.closed:
            self._hold_against_rules(words, self.at or (self.cwd,))
        unwrapped = unwrap(words)
        if depth >= MAX_SCRIPT_DEPTH and (unwrapped.inner or unwrapped.script):
            self.unknown_outcome("too deep nesting")
            return
        for inner in unwrapped.inner:
            if inner not in self.commands:
                self.list_wrapped(inner, depth + 1)
        if unwrapped.script:
            self.list_loosely(shell_tree.parse(unwrapped.script[:MAX_PARSED_CHARACTERS]), depth + 1)

    def _hold_against_rules(self, words: tuple[str, ...], at: Directories) -> None:
        """Note what an unproven command may take for a path, or take along with one, as far as rules speak of it."""
        self.mentioned.update(dict.fromkeys(mentioned(words, at, self.root, self.closed)))
        for folder in dict.fromkeys(carried(words, at)):
            self.takes_along(folder)
        if carries_repository(words):
            for folder in at:
                repository = repository_above(os.path.realpath(folder))
                self.touch(str(Path(repository).parent) if repository else folder, "read", ("/",), searched=True)

    def takes_along(self, folder: str) -> None:
        """Note what lies below a folder that gets another name, as far as rules speak of it: what they say of the old
        names would say nothing of the new ones."""
        if not self.closed or not os.path.isdir(folder):  # noqa: PTH112  it may be no path at all
            return
        try:
            self.mentioned.update(dict.fromkeys(ruled_below(folder, self.root, self.closed, self._followed)))
        except (TooLarge, OSError, ValueError):
            self.touch(folder, "read", ("/",), searched=True)

    def _danger_at(self, raw: str) -> str:
        try:
            resolved = resolve(home_written_out(raw), Place(self.root, Path(self.cwd)))
        except (ToolError, OSError, ValueError):
            return ""
        return danger_of_name(resolved, "write", self.root)

    def redirected(self, target: str, directories: Directories) -> None:
        """A redirection is a sub-command of its own, `> FILE`: a rule for `echo` says nothing about files."""
        for directory in directories:
            if not self.touch(target, "write", (directory,)):
                self.unknown_outcome("a redirection to a path that is not known beforehand")
                return
            resolved = os.path.realpath(Path(directory) / target)
            self.add((">", resolved), PartEffect.MAKES, Leans.PATHS)
            if resolved.startswith("/dev/"):
                self.warn(f"writing to {resolved} reaches a device")


def leads_to_no_file(operator: str, target: str) -> bool:
    """Whether a redirection throws away what it is given, or leads to where another one leads (`2>&1`)."""
    # Only bash's own digits name a descriptor, others a file; above 2 lies what the worker reads.
    return target == "/dev/null" or (operator in (">&", "<&") and target in ("0", "1", "2"))


def _link_itself(raw: str, directory: str) -> str:
    """Where the name stands that `raw` ends with, if it is a link; empty otherwise. Raises OSError, ValueError."""
    named = Path(directory, raw)
    return str(Path(os.path.realpath(named.parent), named.name)) if named.is_symlink() else ""
