"""Finds out what a Bash command would do, as far as that can be proven without running it.

Two independent readings (the bash grammar and a strict splitter) must agree, and every program, subcommand and flag
must stand on a positive list, before a command counts as read-only. Anything else is listed for the rules and asks.
This decides whether a person is asked; the sandbox, not this, is the boundary.

Follows an understood command line in the order that bash runs it, and proves what it can of each command.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.shell import tree as shell_tree
from longhaul.activities.shell.dangerous_commands import piped_into_interpreter, program_name, unwrap
from longhaul.activities.shell.environment_variables import dangerous_variable, reads_as_utf8
from longhaul.activities.shell.findings import (
    MAX_PARSED_CHARACTERS,
    MAX_SCRIPT_DEPTH,
    Directories,
    Findings,
    Leans,
    PartEffect,
    leads_to_no_file,
)
from longhaul.activities.shell.proof import Prover, is_literal
from longhaul.activities.shell.searches import feeder
from longhaul.activities.shell.tree import Node, every_node, groups
from longhaul.activities.shell.words import (
    REDIRECT,
    Unreadable,
    Word,
    at_home,
    braced,
    hidden_character,
    loosely,
    read_word,
    split,
)
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.text import names

MAX_DIRECTORIES = 6

_EVALUATE = names(
    "eval trap alias unalias shopt enable let coproc fc bind complete compgen compopt mapfile readarray set exec"
    " pushd popd"
    " hash read getopts"
)
"""Builtins that change how later words are read, or evaluate their arguments."""


@dataclass
class Walk:
    """Follows an understood line in the order that bash runs it."""

    findings: Findings
    prover: Prover
    _concurrent: int = 0
    """Above 0 the parts that are walked run at the same time."""
    _find: tuple[str, ...] = ()
    """The words of the `find` whose output the part that is walked reads."""

    def statement(
        self, node: Node, at: Directories, *, piped: bool = False, redirects: Sequence[Node] = ()
    ) -> tuple[Directories, Directories]:
        """Examine `node` begun in `at`; gives where the shell may be after success, and after failure.

        `redirects` stand behind `node` and belong to its last command.
        """
        match node.type:
            case "program":
                self._concurrent += any(child.type == "&" for child, _ in every_node(node))
                self._sequence(node.children, at)
            case "list":
                return self._list(node, at, redirects)
            case "pipeline":
                self._pipeline(node, at, redirects)
            case "negated_command":
                succeeded, failed = self.statement(node.children[-1], at, piped=piped, redirects=redirects)
                return failed, succeeded
            case "redirected_statement":
                return self._redirected(node, at, redirects, piped=piped)
            case "command":
                return self._command(node, at, redirects, piped=piped)
            case "test_command" | "variable_assignment":
                self._without_program(node, at, redirects)
            case "comment":
                pass
            case unknown:
                self.findings.unknown_outcome(f"a {unknown.replace('_', ' ')}")
        return at, at

    def _without_program(self, node: Node, at: Directories, redirects: Sequence[Node]) -> None:
        self._redirect_all(redirects, at)
        if node.type == "test_command":
            # `[ -f x ]`, which is `test -f x`.
            raws = [raw for group in groups(node) for raw in group]
            read = [self._word(raw) for raw in raws[1:-1]]
            words = [word for word in read if word is not None]
            if raws[0] != "[" or raws[-1] != "]" or len(words) < len(read):
                self.findings.unknown_outcome("a test in brackets")
                return
            self._simple([Word("test"), *words], at)
        else:
            self._assignment(node.text, ())

    def _pipeline(self, node: Node, at: Directories, redirects: Sequence[Node]) -> None:
        commands = [child for child in node.children if child.is_named]
        self._next_step()
        self._concurrent += 1
        with_errors = any(child.type == "|&" for child in node.children)
        for index, child in enumerate(commands):
            self._find = feeder(commands[index - 1]) if index and not with_errors else ()
            self.statement(child, at, piped=index > 0, redirects=redirects if child is commands[-1] else ())
        self._find = ()
        self._concurrent -= 1

    def _sequence(self, children: Sequence[Node], at: Directories) -> None:
        for child, following in zip(children, [*children[1:], None], strict=True):
            if not child.is_named:
                continue
            after = _union(*self.statement(child, at))
            in_background = following is not None and following.type == "&"
            at = self._bounded(at if in_background else after)

    def _list(self, node: Node, at: Directories, redirects: Sequence[Node]) -> tuple[Directories, Directories]:
        if len(node.children) != 3:
            self.findings.unknown_outcome("a list that is not complete")
            return at, at
        left, operator, right = node.children
        succeeded, failed = self.statement(left, at)
        if operator.type == "&&":
            right_succeeded, right_failed = self.statement(right, succeeded, redirects=redirects)
            return right_succeeded, self._bounded(_union(failed, right_failed))
        right_succeeded, right_failed = self.statement(right, failed, redirects=redirects)
        return self._bounded(_union(succeeded, right_succeeded)), right_failed

    def _bounded(self, directories: Directories) -> Directories:
        if len(directories) > MAX_DIRECTORIES:
            self.findings.unknown_outcome("too many changes of directory")
        return directories[:MAX_DIRECTORIES]

    def _redirected(
        self, node: Node, at: Directories, redirects: Sequence[Node], *, piped: bool
    ) -> tuple[Directories, Directories]:
        own = [child for child in node.children if child.type == "file_redirect"]
        bodies = [child for child in node.children if child.type != "file_redirect"]
        if not bodies:
            self._redirect_all([*own, *redirects], at)
            return at, at
        if len(bodies) > 1:
            self.findings.unknown_outcome("a redirection of several commands")
        return self.statement(bodies[0], at, piped=piped, redirects=[*own, *redirects])

    def _redirect_all(self, redirects: Sequence[Node], at: Directories) -> None:
        self._next_step()
        for redirect in redirects:
            self._redirect(redirect, at)
        self._next_step()

    def _next_step(self) -> None:
        """Parts of a pipeline, and of a line with something in the background, run at the same time."""
        self.findings.step += not self._concurrent

    def _redirect(self, node: Node, at: Directories) -> None:
        operator = next((child.type for child in node.children if REDIRECT.fullmatch(child.type)), "")
        targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        if len(targets) != 1:
            self.findings.unknown_outcome("words behind a redirection")
        word = self._word(node.children[-1].text)
        if word is None:
            return
        if leads_to_no_file(operator, word.text):
            return
        if word.pattern or word.brackets or word.status or operator == "<&":
            self.findings.unknown_outcome("a redirection to a path that is not known beforehand")
        elif operator == "<":
            self.findings.reads_input(word.text)
            if not self.findings.touch(at_home(word), "read", at):
                self.findings.unknown_outcome("a redirection from a path that is not known beforehand")
        else:
            self.findings.redirected(at_home(word), at)

    def _word(self, raw: str) -> Word | None:
        try:
            return read_word(raw)
        except Unreadable as unreadable:
            self.findings.unknown_outcome(str(unreadable))
            return None

    def _words(self, node: Node) -> list[Word | None]:
        """Of one argument; lists in braces make several."""
        if node.type == "command_name":
            return [self._word(node.text)]
        try:
            return [self._word(raw) for raw in braced(node.text)]
        except Unreadable as unreadable:
            self.findings.unknown_outcome(str(unreadable))
            return [None]

    def _command(
        self, node: Node, at: Directories, redirects: Sequence[Node], *, piped: bool
    ) -> tuple[Directories, Directories]:
        own = [child for child in node.children if child.type == "file_redirect"]
        assigned = [child.text for child in node.children if child.type == "variable_assignment"]
        rest = [child for child in node.children if child.type not in ("variable_assignment", "file_redirect")]
        read = [word for child in rest for word in self._words(child)]
        words = [word for word in read if word is not None]
        self._redirect_all([*own, *redirects], at)
        if len(words) < len(read) or not words:
            self.findings.list_loosely(node)
            return at, at
        texts = tuple(word.text for word in words)
        for assignment in assigned:
            self._assignment(assignment, texts)
        if piped:
            self.findings.warn(piped_into_interpreter(texts))
        if not is_literal(words[0]):
            self.findings.unknown_outcome("a program that is not named literally")
        if texts[0] == "cd":
            return self._cd(words, at)
        self._simple(words, at)
        return at, at

    def _assignment(self, raw: str, texts: tuple[str, ...]) -> None:
        name, _, value = raw.partition("=")
        if value and self._word(value) is None:
            return
        self.findings.add((f"{name}={loosely(value)}", *texts))
        self.findings.warn(dangerous_variable(name))

    def _simple(self, words: Sequence[Word], at: Directories, depth: int = 0) -> None:
        texts = tuple(word.text for word in words)
        self.findings.at = at
        if program_name(texts[0]) in _EVALUATE or texts[0] == "cd":
            self.findings.unknown_outcome(f"the builtin `{program_name(texts[0])}`")
        if self.prover.proven(words, texts, at) or self.prover.proven_fed(self._find, words, at):
            return
        unwrapped = unwrap(texts)
        if unwrapped.clear and depth < MAX_SCRIPT_DEPTH and not self.findings.is_by_the_workspace(texts[0]):
            own = len(words) - len(unwrapped.inner[0])
            # Of a word that becomes several, the last may be the program.
            if all(map(is_literal, words[: own + 1])):
                self.findings.add(texts, PartEffect.NOTHING, read_only=True)
                self._simple(words[own:], at, depth + 1)
                return
        self.findings.list_wrapped(texts)

    def _cd(self, words: Sequence[Word], at: Directories) -> tuple[Directories, Directories]:
        target = words[1].text if len(words) == 2 else ""
        texts = tuple(word.text for word in words)
        if len(words) != 2 or not is_literal(words[1]) or target.startswith("-"):
            self.findings.add(texts)
            self.findings.unknown_outcome("a `cd` without a literal directory")
            return at, at
        # Bash takes `..` out of the text before it follows links, the kernel does not: both may be meant.
        joined = [str(Path(directory) / target) for directory in at]
        reached = _union(tuple(map(os.path.normpath, joined)), tuple(map(os.path.realpath, joined)))
        inside = all(Path(os.path.realpath(directory)).is_relative_to(self.findings.root) for directory in reached)
        self.findings.add(texts, PartEffect.NOTHING, Leans.PATHS, read_only=inside)
        return self._bounded(reached), at


def _union(*several: Directories) -> Directories:
    return tuple(dict.fromkeys(directory for directories in several for directory in directories))


MAX_CHARACTERS = 10_000
MAX_COMMANDS = 50
MAX_DEPTH = 100


def examine_command(
    command: str, cwd: Path, root: Path, ruled: tuple[str, ...] = (), closed: tuple[tuple[str, str], ...] = ()
) -> CallAnalysis:
    """Findings about `command` run by bash in `cwd`. Reads directories and links, changes nothing, never raises.

    `cwd` and `root` are absolute; `root` is resolved; `ruled` and `closed` as in `Place`. `read_only` is proven;
    `not_understood` names the first construct that prevents a proof of anything, and the sub-commands found inside of
    it are still listed for deny rules.
    """
    findings = Findings(root, str(cwd), ruled=ruled, closed=closed)
    findings.foreign = _limits(command)
    if len(command) <= MAX_PARSED_CHARACTERS:
        tree = shell_tree.parse(command)
        findings.foreign = findings.foreign or _foreign_in(tree) or _disagreement(command, tree)
        if findings.foreign:
            findings.list_loosely(tree)
        else:
            Walk(findings, Prover(findings)).statement(tree, (str(cwd),))
    return findings.analysis()


def _limits(command: str) -> str:
    if not command.strip():
        return "an empty command"
    if len(command) > MAX_CHARACTERS:
        return f"a command of more than {MAX_CHARACTERS:,} characters"
    if not command.isascii() and not reads_as_utf8():
        return "a letter beyond ASCII, which this locale may split"
    hidden = hidden_character(command)
    return f"an invisible or control character ({hidden})" if hidden else ""


def _foreign_in(tree: Node) -> str:
    commands, foreign = 0, ""
    for node, depth in shell_tree.every_node(tree):
        commands += node.type in ("command", "variable_assignment")
        foreign = foreign or shell_tree.foreign_construct(node)
        if depth > MAX_DEPTH:
            return foreign or "too deep nesting"
    return foreign or (f"more than {MAX_COMMANDS} sub-commands" if commands > MAX_COMMANDS else "")


def _disagreement(command: str, tree: Node) -> str:
    """Why the line can't be trusted although the grammar accepts it."""
    try:
        if split(command) != shell_tree.groups(tree):
            return "words that can be split in two ways"
    except Unreadable as unreadable:
        return str(unreadable)
    return ""
