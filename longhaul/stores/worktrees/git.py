"""The configuration of a repository as it may be where git is to run: it names neither a program nor a file.

A folder of a repository in which git may write: all that lies there is its own, and its configuration is plain.

A model, or whoever made the archive, may have put anything there: links to another's branches and objects, hooks in the
configuration (which run whatever `core.hooksPath` says), pipes on which git would wait for ever.

Finds the git repository of a folder, where both say so of each other.

Runs git on repositories that nobody trusts, so that no program runs that a repository names.

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
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from longhaul.agent.permission.call_analysis import secret_globs
from longhaul.agent.plain.errors import BadInput
from longhaul.agent.plain.text import names
from longhaul.stores.names import NotRegular, read_regular

CONFIG_CAP_BYTES = 100_000
_ANY = frozenset({"*"})
_KEYS = {
    "core": names(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol"
        " safecrlf quotepath abbrev compression bigfilethreshold untrackedcache trustctime checkstat longpaths"
        " protectntfs protecthfs commitgraph preloadindex hookspath fsmonitor"
    ),
    "remote": names("url fetch pushurl push tagopt prune prunetags mirror skipdefaultupdate skipfetchall"),
    "branch": names("remote merge rebase pushremote description vscode-merge-base gh-merge-base autosetupmerge"),
    "user": names("name email signingkey useconfigonly"),
    "commit": names("gpgsign verbose"),
    "tag": names("gpgsign"),
    "pull": names("rebase ff"),
    "push": names("default autosetupremote followtags gpgsign"),
    "fetch": names("prune prunetags parallel"),
    "merge": names("conflictstyle ff"),
    "rebase": names("autostash autosquash updaterefs"),
    "rerere": names("enabled autoupdate"),
    "diff": names("algorithm renames renamelimit colormoved mnemonicprefix noprefix context"),
    "init": names("defaultbranch"),
    "status": names("short branch showuntrackedfiles"),
    "lfs": names("repositoryformatversion"),
    "advice": _ANY,
    "color": _ANY,
    "gc": _ANY,
    "pack": _ANY,
}
"""Keys of a repository's own configuration by section that name neither a program nor a file, or (`core.hooksPath`,
`core.fsmonitor`) are set otherwise for each line that leans on a proof."""
_WITH_NAMES = ("remote", "branch", "color")
"""Sections that may have a name behind them, as in `[remote "origin"]`; of others that would be another key."""
_LINE = re.compile(
    r'\[(?P<section>[A-Za-z]+)(?: "(?P<name>[^"\\]*)")?\]|(?P<key>[A-Za-z][A-Za-z0-9-]*)(?:[ \t]*=(?P<value>[^\\]*))?'
)


def is_plain_config(text: str) -> bool:
    """Whether each line of a repository's configuration is known to name neither a program nor a file."""
    known: frozenset[str] = frozenset()
    for raw in text.split("\n"):
        line = raw.strip(" \t")
        if not line or line[0] in "#;":
            continue
        read = _LINE.fullmatch(line)
        if read is None:
            return False
        if read["section"]:
            section = read["section"].lower()
            known = _KEYS.get(section, frozenset()) if read["name"] is None or section in _WITH_NAMES else frozenset()
        elif not _is_known(read["key"].lower(), (read["value"] or "").strip(), known):
            return False
    return True


def _is_known(key: str, value: str, known: frozenset[str]) -> bool:
    if key == "bare" and value != "false":
        return False
    return key in known or known is _ANY


FOREIGN = ("commondir", "gitdir", "remotes", "config.worktree", "modules", "objects/info/alternates",
           "objects/info/http-alternates", "info/grafts", "info/sparse-checkout")  # fmt: skip
"""None of these is in a plain repository: they lead elsewhere, or change what is read."""
MOST_NAMES = 200_000
"""Of a repository, looked at before git writes there."""
_SHARED = frozenset({"objects", "lfs"})
"""A local clone shares the files there with its origin by hard links; git replaces them and writes into none."""


class GitProblem(BadInput):
    """What was to be done with a repository can't be; the sentence says why, and nothing was changed."""


def require_plain(common: Path) -> None:
    """Of what git keeps for a repository. Raises GitProblem, OSError."""
    if not stat.S_ISDIR(os.lstat(common).st_mode):
        raise GitProblem(f"{str(common)!r} is no folder of its own; such a repository is left alone")
    for name in FOREIGN:
        if os.path.lexists(common / name):
            raise GitProblem(f"{str(common / name)!r} leads elsewhere; such a repository is left alone")
    _require_own(common)
    if not is_plain_config(text_of(common / "config", CONFIG_CAP_BYTES)):
        raise GitProblem(
            f"{str(common / 'config')!r} has settings that may name a program or a file, or that are not known here;"
            " such a repository is left alone. Move them to your own ~/.gitconfig"
        )


def _require_own(common: Path) -> None:
    """Nothing but folders and files, and no file that may lie elsewhere, too."""
    seen, waiting = 0, [str(common)]
    shared = tuple(str(common / name) for name in _SHARED)
    while waiting:
        folder = waiting.pop()
        with suppress(FileNotFoundError), os.scandir(folder) as entries:  # a `git gc` tidies up
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) or _has_another_name(entry, folder, shared):
                    raise GitProblem(f"{entry.path!r} is a link or a pipe; such a repository is left alone")
        if seen > MOST_NAMES:
            raise GitProblem(f"{str(common)!r} holds more than {MOST_NAMES} files; run `git gc` there")


def _has_another_name(entry: os.DirEntry[str], folder: str, shared: tuple[str, ...]) -> bool:
    try:
        return not folder.startswith(shared) and entry.stat(follow_symlinks=False).st_nlink > 1
    except FileNotFoundError:
        return False


def text_of(file: Path, cap_bytes: int) -> str:
    """The text of a file that is one, no link and no pipe; empty when there is none. Raises GitProblem."""
    try:
        return read_regular(file, cap_bytes).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except NotRegular as error:
        raise GitProblem(str(error)) from None
    except (OSError, ValueError) as error:
        raise GitProblem(f"{str(file)!r} can't be read: {error}") from None


CAP_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree, and where git keeps what belongs to it."""

    root: Path
    """Of the working tree, links resolved."""
    own: Path
    """What git keeps of this tree alone: its HEAD and its index."""
    common: Path
    """What all trees of the repository share: objects and branches."""


def repository_at(root: Path) -> Repository:
    """Of the folder at whose top `.git` lies. Raises GitProblem. A file in the workspace may claim any folder to be its
    repository: only one that names this tree as its own counts. Before git writes there, `git_for` looks through it."""
    inside = root / ".git"
    if inside.is_dir() and not inside.is_symlink():
        return Repository(root, inside, inside)
    if (own := own_folder(root)) is not None:
        return Repository(root, own, own.parent.parent)
    raise GitProblem(
        f"{str(root)!r} is not the top of a git repository; run `git init` and commit there, or name the top"
    )


def own_folder(root: Path) -> Path | None:
    """Of a linked working tree: the folder that its repository keeps for it; None for any other one."""
    link = root / ".git"
    said = line_of(link)
    if not said.startswith("gitdir: "):
        return None
    try:
        folder = (root / said.removeprefix("gitdir: ")).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    # Otherwise git takes for the repository what lies anywhere.
    claims = line_of(folder / "commondir") == "../.." and line_of(folder / "gitdir") == str(link)
    beside = folder.parent.name == "worktrees" and folder.parent.parent.name == ".git"
    return folder if claims and beside and line_of(folder.parent.parent / "HEAD") else None


def line_of(file: Path) -> str:
    """What a file of one line says; empty where there is none."""
    try:
        return text_of(file, CAP_BYTES).removesuffix("\n")
    except GitProblem:
        return ""


def repository_of(root: Path) -> Path | None:
    """The folder of the repository that `root` is a working tree of, when it lies elsewhere; None otherwise."""
    own = own_folder(root)
    return None if own is None else own.parent.parent


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
        return _output_of(done, arguments)

    def tell_repository(self, *arguments: str) -> None:
        """In the repository itself, by its settings below ours. Raises GitProblem."""
        _output_of(self._run({"GIT_DIR": str(self.repository.own)}, arguments), arguments)

    def files(self, *arguments: str, index: Path, root: Path | None = None, stdin: bytes | None = None) -> str:
        """Touch files, or objects, by our own settings alone. Raises GitProblem."""
        return _output_of(self.run_on_files(*arguments, index=index, root=root, stdin=stdin), arguments)

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


def _output_of(done: subprocess.CompletedProcess[bytes], arguments: tuple[str, ...]) -> str:
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip() or done.stdout.decode("utf-8", "replace").strip()
        raise GitProblem(f"git {arguments[0]}: {words[:1_000] or f'it ended with {done.returncode}'}")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")
