"""Runs git on repositories that nobody trusts, so that no program runs that a repository names.

What touches files (adding, checking out, merging) goes by settings of our own, in a folder of ours that stands in for
the repository's: without its configuration there are no filters, no merge drivers and no hooks, whatever attributes
say. The repository's names (its references) are reached from there too, so that its configuration is not read even
where a process changes it after it was looked through. Only where a working tree is made, and where a person merges,
git runs in the repository itself, with hooks and monitors switched off.
"""

import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from longhaul.agent.permission.call_facts import secret_globs
from longhaul.stores.worktrees.plain_git_folder import GitProblem, require_plain, text_of
from longhaul.stores.worktrees.repositories import Repository

SECONDS = 60.0
"""For one run of git; a repository may be of any size, and a file in it a pipe."""
LOCK_SECONDS = 120.0
"""For those before: each runs git a few times, and whoever was stopped with the lock keeps it."""
PAUSE_SECONDS = 0.02
LOCK = "lock"

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.logAllRefUpdates": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.addEmbeddedRepo": "false",
}
"""Above what the repository says; a hook of `update-ref` would run with every snapshot."""

_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Longhaul"), ("EMAIL", "longhaul@localhost"))
    },
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_SETTINGS.values())},
}

_ATTRIBUTES = "* -text !eol -ident -filter -working-tree-encoding\n"
"""Above those of the files themselves: each byte stays as it is."""
LEFT_OUT = (*secret_globs(), "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*")
"""Of files that git does not track: those that may hold secrets."""
EXCLUDE_CAP_BYTES = 100_000
HEAD_CAP_BYTES = 4_096
_HEAD = re.compile(r"(?:ref: refs/[^\n]+|[0-9a-f]{40})\n?")


@dataclass(frozen=True, slots=True)
class Git:
    """git for one repository."""

    repository: Repository
    folder: Path
    """Our own, that stands in for the repository's where files are touched."""

    def ask(self, *arguments: str, missing_is_empty: bool = False) -> str:
        """Ask for the repository's names, or tell of new ones, by our own settings alone. Raises GitProblem."""
        done = self.run_on_files(*arguments, index=self.folder / "none")
        if missing_is_empty and done.returncode == 1:
            return ""
        return _said(done, arguments)

    def tell_repository(self, *arguments: str) -> None:
        """In the repository itself, by its settings below ours. Raises GitProblem."""
        _said(self._run({"GIT_DIR": str(self.repository.own)}, arguments), arguments)

    def files(self, *arguments: str, index: Path, root: Path | None = None, stdin: bytes | None = None) -> str:
        """Touch files, or objects, by our own settings alone. Raises GitProblem."""
        return _said(self.run_on_files(*arguments, index=index, root=root, stdin=stdin), arguments)

    def run_on_files(
        self, *arguments: str, index: Path, root: Path | None = None, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """The same, whatever it came to."""
        of_ours = {
            "GIT_DIR": str(self.folder),
            "GIT_OBJECT_DIRECTORY": str(self.repository.common / "objects"),
            "GIT_INDEX_FILE": str(index),
        }
        return self._run(of_ours, arguments, root, stdin)

    def _run(
        self,
        variables: Mapping[str, str],
        arguments: tuple[str, ...],
        root: Path | None = None,
        stdin: bytes | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        root = root or self.repository.root
        environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, "GIT_WORK_TREE": str(root)}
        command = ["git", *arguments]
        try:
            return subprocess.run(
                command,
                cwd=root,
                env={**environment, **variables},
                capture_output=True,
                check=False,
                input=stdin or b"",
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise GitProblem(f"git {arguments[0]} took longer than {SECONDS:g} s in {str(root)!r}") from None
        except (OSError, ValueError) as error:
            raise GitProblem(f"git could not be run: {error}") from None


@contextmanager
def git_for(repository: Repository, kept: Path) -> Iterator[Git]:
    """`kept`: a folder of ours for this repository, made where there is none; one at a time works with it."""
    git = Git(repository, kept)
    with only_one(kept):
        require_plain(repository.common)
        _make(kept, repository)
        yield git


@contextmanager
def only_one(kept: Path) -> Iterator[None]:
    """Of all that work in this folder of ours, which is made where there is none. Raises GitProblem, OSError."""
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (kept / LOCK).open("w") as lock:
        _take(lock.fileno(), kept)
        yield


def _take(lock: int, kept: Path) -> None:
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise GitProblem(f"{str(kept)!r} is locked by another process; is one of them stopped?") from None
            time.sleep(PAUSE_SECONDS)


def _make(kept: Path, repository: Repository) -> None:
    # A git that was killed leaves its locks; nobody else works here while we hold ours.
    for left in kept.glob("*.lock"):
        left.unlink()
    for name in ("objects", "info"):
        (kept / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("refs", "packed-refs"):
        _lead(kept / name, repository.common / name)
    (kept / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    (kept / "info" / "attributes").write_text(_ATTRIBUTES)
    theirs = text_of(repository.common / "info" / "exclude", EXCLUDE_CAP_BYTES)
    # The last line that fits counts: no `!.env` of theirs brings back what is left out here.
    ours = "\n".join(("", "/.longhaul/", *map(_in_any_case, LEFT_OUT), ""))
    (kept / "info" / "exclude").write_text(theirs + ours, encoding="utf-8", errors="surrogateescape")
    head = text_of(repository.own / "HEAD", HEAD_CAP_BYTES)
    if _HEAD.fullmatch(head) is None:
        raise GitProblem(f"{str(repository.own / 'HEAD')!r} names neither a branch nor a commit")
    (kept / "HEAD").write_text(head, encoding="utf-8", errors="surrogateescape")


def _lead(link: Path, to: Path) -> None:
    if link.is_symlink() and link.readlink() == to:
        return
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(to)


def _in_any_case(pattern: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else letter for letter in pattern)


def _said(done: subprocess.CompletedProcess[bytes], arguments: tuple[str, ...]) -> str:
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip() or done.stdout.decode("utf-8", "replace").strip()
        raise GitProblem(f"git {arguments[0]}: {words[:1_000] or f'it ended with {done.returncode}'}")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
