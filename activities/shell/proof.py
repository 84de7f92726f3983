"""Proves what it can of one command, in each folder that the shell may be in: by the positive list and the file
system.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from longhaul.activities.repository import TooLarge, UnreadableIndex, moved_along
from longhaul.activities.shell.findings import Directories, Findings, Leans, PartEffect
from longhaul.activities.shell.flags import Proof, find_operands
from longhaul.activities.shell.git_repositories import is_plain_repository
from longhaul.activities.shell.patterns import marked
from longhaul.activities.shell.programs import asks_version, is_steered, prove_edit, prove_read_only
from longhaul.activities.shell.searches import fed_by, reached
from longhaul.activities.shell.words import Unreadable, Word, at_home, is_of_the_system

MAX_SECRETS = 20
"""So many files with secrets that a search comes by are listed: one alone is asked about."""
_TAKE_TEXT = frozenset({"echo", "printf", "test", "exit"})


@dataclass
class Prover:
    """Proves commands of one line, and records in the findings what they touch."""

    findings: Findings
    _foreign: dict[str, bool] = field(default_factory=dict)
    """Whether git may run a program for what these folders say; a line of git commands asks for the same ones."""

    def proven(self, words: Sequence[Word], texts: tuple[str, ...], at: Directories) -> bool:
        """Proven for each folder that the shell may be in, alone: names of one say nothing about another."""
        if any(word.brackets for word in words) or (any(word.status for word in words) and texts[0] not in _TAKE_TEXT):
            return False
        if not is_literal(words[0]) or self.findings.is_by_the_workspace(texts[0]):
            return False
        found = [self._proven_in(folder, words) for folder in at]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return False
        effect, leans = (max(column) for column in zip(*known, strict=True))
        self.findings.add(texts, effect, leans, read_only=effect is PartEffect.NOTHING)
        return True

    def proven_fed(self, find: tuple[str, ...], words: Sequence[Word], at: Directories) -> bool:
        """The same for `xargs …` behind this `find`, which is proven by itself; empty where there is none."""
        texts = tuple(word.text for word in words)
        if not find or texts[0] != "xargs" or self.findings.is_by_the_workspace(texts[0]):
            return False
        inner: tuple[str, ...] = ()
        for folder in at:
            try:
                fed = fed_by(find, words, folder)
            except (TooLarge, OSError, ValueError):
                return False
            if fed is None or self.findings.is_by_the_workspace(fed.inner[0]):
                return False
            inner = fed.inner
            starts = find_operands(find[1:]) or ()
            found = [self.findings.touch(start, "read", (folder,), searched=True) for start in starts]
            found += [self._touch_found(fed.found)]
            if not all(found) or not self._reads(inner, fed.proof, folder):
                return False
        for command in (texts, inner):
            self.findings.add(command, PartEffect.NOTHING, Leans.NAMES, read_only=True)
        return True

    def _proven_in(self, folder: str, words: Sequence[Word]) -> tuple[PartEffect, Leans] | None:
        try:
            seen = marked(words, [at_home(word) for word in words], folder)
        except (Unreadable, OSError, ValueError):
            return None
        if asks_version(seen.words) and not is_of_the_system(seen.words[0]):
            return None
        proof, effect = prove_read_only(seen.words), PartEffect.NOTHING
        if proof is None:
            proof = prove_edit(seen.words)
            if proof is None or not proof.writes:
                return None
            effect = PartEffect.MOVES if proof.moves else PartEffect.MAKES
        proof = replace(proof, reads=(*seen.named(proof.reads), *seen.folders), writes=seen.named(proof.writes))
        if not self._reads(seen.words, proof, folder):
            return None
        if is_steered(seen.words):
            leans = Leans.SETTINGS
        elif seen.folders:
            leans = Leans.NAMES
        elif proof.reads or proof.writes or proof.here:
            leans = Leans.PATHS
        else:
            leans = Leans.WORDS
        return effect, leans

    def _reads(self, words: tuple[str, ...], proof: Proof, folder: str) -> bool:
        """Record all that the proven command reads; False when that can't be told, or git may run a program for it."""
        start = str(Path(folder, proof.folder))
        if words[0] == "git" and self._in_foreign_repository(start):
            return False
        if proof.no_folders and any(Path(start, path).is_dir() for path in proof.reads):
            return False
        if proof.moves and not self._touch_moved(proof, folder):
            return False
        at = (start,)
        reads = (*proof.reads, *((".",) if proof.here else ()))
        named = [self.findings.touch(path, "read", at) for path in reads]
        named += [self.findings.touch(path, "write", at) for path in proof.writes]
        return all(named) and self._touch_reached(words, proof, (folder,))

    def _in_foreign_repository(self, folder: str) -> bool:
        start = os.path.realpath(folder)
        if start not in self._foreign:
            self._foreign[start] = not is_plain_repository(start)
        return self._foreign[start]

    def _touch_moved(self, proof: Proof, folder: str) -> bool:
        """Record what a moved folder would bring along to, or away from, a place where others run it."""
        for path in proof.reads:
            self.findings.takes_along(str(Path(folder, path)))
        try:
            along = moved_along([str(Path(folder, path)) for path in proof.writes], self.findings.root)
        except (TooLarge, OSError, ValueError):
            return False
        return not along or self.findings.touch(along, "write", ("/",))

    def _touch_reached(self, words: tuple[str, ...], proof: Proof, at: Directories) -> bool:
        """Record what the command looks through, and the files with secrets that it reads without naming them."""
        try:
            paths = reached(words, proof, at)
        except (TooLarge, UnreadableIndex, OSError, ValueError):
            return False
        looked_through = [path for path, searched in paths if searched]
        secrets = [path for path, searched in paths if not searched]
        touched = [self.findings.touch(path, "read", ("/",), searched=True) for path in looked_through]
        return all(touched) and self._touch_found(secrets)

    def _touch_found(self, paths: Sequence[str]) -> bool:
        """Record files with secrets and links. Of links that are not listed nobody could say where they lead."""
        touched = [self.findings.touch(path, "read", ("/",)) for path in paths[:MAX_SECRETS]]
        return all(touched) and not any(map(os.path.islink, paths[MAX_SECRETS:]))


def is_literal(word: Word) -> bool:
    return bool(word.text) and not (word.pattern or word.brackets or word.tilde or word.status)
