"""Follows an understood command line in the order that bash runs it, and proves what it can of each command."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from activities.tools.git_index import UnreadableIndex
from activities.tools.secret_trees import TooLarge
from activities.tools.shell_danger import dangerous_variable, piped_into_interpreter
from activities.tools.shell_files import (
    as_the_program_sees_them,
    at_home,
    looks_like_foreign_repository,
)
from activities.tools.shell_findings import MAX_SCRIPT_DEPTH, Directories, Findings, leads_to_no_file
from activities.tools.shell_flags import Proof
from activities.tools.shell_readonly import prove_edit, prove_read_only
from activities.tools.shell_searches import reached
from activities.tools.shell_tree import Node
from activities.tools.shell_words import REDIRECT, Unreadable, Word, loosely, read_word
from activities.tools.shell_wrappers import program_name, unwrap
from agent.permission.suggestions import names

MAX_DIRECTORIES = 6
MAX_SECRETS = 20
"""So many files with secrets that a search comes by are listed: one alone is asked about."""

_EVALUATE = names(
    "eval trap alias unalias shopt enable let coproc fc bind complete compgen compopt mapfile readarray set exec"
    " pushd popd"
    " hash read getopts"
)
"""Builtins that change how later words are read, or evaluate their arguments."""
_TAKE_TEXT = frozenset({"echo", "printf", "test", "exit"})


@dataclass
class Walk:
    """Follows an understood line in the order that bash runs it."""

    findings: Findings
    _foreign: dict[tuple[tuple[str, ...], Directories], bool] = field(default_factory=dict)
    """Whether git may run a program for what these folders say; a line of git commands asks for the same ones."""

    def statement(
        self, node: Node, at: Directories, *, piped: bool = False, redirects: Sequence[Node] = ()
    ) -> tuple[Directories, Directories]:
        """Examine `node` begun in `at`; gives where the shell may be after success, and after failure.

        `redirects` stand behind `node` and belong to its last command.
        """
        match node.type:
            case "program":
                self._sequence(node.children, at)
            case "list":
                return self._list(node, at, redirects)
            case "pipeline":
                commands = [child for child in node.children if child.is_named]
                for index, child in enumerate(commands):
                    self.statement(child, at, piped=index > 0, redirects=redirects if child is commands[-1] else ())
            case "negated_command":
                succeeded, failed = self.statement(node.children[-1], at, piped=piped, redirects=redirects)
                return failed, succeeded
            case "redirected_statement":
                return self._redirected(node, at, redirects, piped=piped)
            case "command":
                return self._command(node, at, redirects, piped=piped)
            case "variable_assignment":
                self._redirect_all(redirects, at)
                self._assignment(node.text, ())
            case "comment":
                pass
            case unknown:
                self.findings.doubt(f"a {unknown.replace('_', ' ')}")
        return at, at

    def _sequence(self, children: Sequence[Node], at: Directories) -> None:
        for child, following in zip(children, [*children[1:], None], strict=True):
            if not child.is_named:
                continue
            after = _union(*self.statement(child, at))
            in_background = following is not None and following.type == "&"
            at = self._bounded(at if in_background else after)

    def _list(self, node: Node, at: Directories, redirects: Sequence[Node]) -> tuple[Directories, Directories]:
        if len(node.children) != 3:
            self.findings.doubt("a list that is not complete")
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
            self.findings.doubt("too many changes of directory")
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
            self.findings.doubt("a redirection of several commands")
        return self.statement(bodies[0], at, piped=piped, redirects=[*own, *redirects])

    def _redirect_all(self, redirects: Sequence[Node], at: Directories) -> None:
        for redirect in redirects:
            self._redirect(redirect, at)

    def _redirect(self, node: Node, at: Directories) -> None:
        operator = next((child.type for child in node.children if REDIRECT.fullmatch(child.type)), "")
        targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        if len(targets) != 1:
            self.findings.doubt("words behind a redirection")
        word = self._word(node.children[-1].text)
        if word is None:
            return
        if leads_to_no_file(operator, word.text):
            return
        if word.pattern or word.brackets or word.status or operator == "<&":
            self.findings.doubt("a redirection to a path that can't be told")
        elif operator == "<":
            if not self.findings.touch(at_home(word), "read", at):
                self.findings.doubt("a redirection from a path that can't be told")
        else:
            self.findings.redirected(at_home(word), at)

    def _word(self, raw: str) -> Word | None:
        try:
            return read_word(raw)
        except Unreadable as unreadable:
            self.findings.doubt(str(unreadable))
            return None

    def _command(
        self, node: Node, at: Directories, redirects: Sequence[Node], *, piped: bool
    ) -> tuple[Directories, Directories]:
        own = [child for child in node.children if child.type == "file_redirect"]
        assigned = [child.text for child in node.children if child.type == "variable_assignment"]
        rest = [child for child in node.children if child.type not in ("variable_assignment", "file_redirect")]
        read = [self._word(child.text) for child in rest]
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
        if not _is_literal(words[0]):
            self.findings.doubt("a program that is not named literally")
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
        if program_name(texts[0]) in _EVALUATE or texts[0] == "cd":
            self.findings.doubt(f"the builtin `{program_name(texts[0])}`")
        if self._proven(words, texts, at):
            return
        unwrapped = unwrap(texts)
        if unwrapped.clear and depth < MAX_SCRIPT_DEPTH and not self.findings.is_of_the_workspace(texts[0]):
            self.findings.add(texts, read_only=True)
            self._simple(words[len(words) - len(unwrapped.inner[0]) :], at, depth + 1)
            return
        self.findings.list_wrapped(texts)

    def _proven(self, words: Sequence[Word], texts: tuple[str, ...], at: Directories) -> bool:
        if any(word.brackets for word in words) or (any(word.status for word in words) and texts[0] not in _TAKE_TEXT):
            return False
        seen = as_the_program_sees_them(words, at)
        if seen is None:
            return False
        proof = prove_read_only(seen)
        if self.findings.is_of_the_workspace(texts[0]):
            return False
        if proof is not None and not (texts[0] == "git" and self._in_foreign_repository(proof, at)):
            touched = self._touch(proof, at) and self._touch_reached(seen, proof, at)
            self.findings.add(texts, read_only=touched)
            return touched
        edit = prove_edit(seen)
        if edit is None or not edit.writes or not self._touch(edit, at):
            return False
        self.findings.add(texts, edits_only=True)
        return True

    def _in_foreign_repository(self, proof: Proof, at: Directories) -> bool:
        key = (proof.reads, at)
        if key not in self._foreign:
            self._foreign[key] = looks_like_foreign_repository(*key)
        return self._foreign[key]

    def _touch(self, proof: Proof, at: Directories) -> bool:
        reads = (*proof.reads, *((".",) if proof.here else ()))
        named = [self.findings.touch(path, "read", at) for path in reads]
        named += [self.findings.touch(path, "write", at) for path in proof.writes]
        return all(named)

    def _touch_reached(self, words: tuple[str, ...], proof: Proof, at: Directories) -> bool:
        """Record the files with secrets that the command reads without naming them."""
        try:
            paths = reached(words, proof, at)
        except (TooLarge, UnreadableIndex, OSError, ValueError):
            return False
        touched = [self.findings.touch(path, "read", ("/",)) for path in paths[:MAX_SECRETS]]
        return all(touched)

    def _cd(self, words: Sequence[Word], at: Directories) -> tuple[Directories, Directories]:
        target = words[1].text if len(words) == 2 else ""
        texts = tuple(word.text for word in words)
        if len(words) != 2 or not _is_literal(words[1]) or target.startswith("-"):
            self.findings.add(texts)
            self.findings.doubt("a `cd` without a literal directory")
            return at, at
        # Bash takes `..` out of the text before it follows links, the kernel does not: both may be meant.
        joined = [str(Path(directory) / target) for directory in at]
        reached = _union(tuple(map(os.path.normpath, joined)), tuple(map(os.path.realpath, joined)))
        inside = all(Path(os.path.realpath(directory)).is_relative_to(self.findings.root) for directory in reached)
        self.findings.add(texts, read_only=inside)
        return self._bounded(reached), at


def _is_literal(word: Word) -> bool:
    return bool(word.text) and not (word.pattern or word.brackets or word.tilde or word.status)


def _union(*several: Directories) -> Directories:
    return tuple(dict.fromkeys(directory for directories in several for directory in directories))
