"""Keeps the files of a working tree as they are at one moment, without touching its index, its branches or its HEAD.

Clones a folder of files on a file system with reflinks: the copy shares its blocks until one of both is written to.

Nobody trusts what lies there. Each name is opened from the folder that it was seen in, and no link is followed, so that
one which is put there meanwhile leads nowhere. Each file is as it was at one moment; the folder as a whole is not.

Keeps the files of a folder that is no git repository, as clones in the workers' data directory.

They lie in `clones/SESSION/SNAPSHOT` there, for whoever runs the worker alone: outside of what is kept, so that no tool
finds each file many times, and no snapshot holds those before.
"""

import errno
import fcntl
import fnmatch
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from longhaul.agent.permission.call_analysis import KEYRINGS, is_secret
from longhaul.agent.values.spec.workspace import FILES_NOW
from longhaul.stores.worktrees.git import LEFT_OUT, LOCK, Git, GitProblem, Repository, git_for, only_one, repository_at

SNAPSHOTS = "refs/longhaul/"
FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
MOST_SECRETS = 1_000
"""Untracked files that may hold secrets, and that the repository does not let git ignore: each is held against all."""
NEWEST = 200
"""Snapshots of a session among which that of a call is looked for, which is started again."""


def take_snapshot(root: Path, data_dir: Path, session_key: str, call_id: str, *, again: bool = False) -> str:
    """The commit of the files as they are, before a call. `again`: the call was started before, so that the snapshot
    from then counts, if there is one. Blocking. Raises GitProblem."""
    repository = repository_at(root)
    reference, title = f"{SNAPSHOTS}{digest(session_key)}", f"before {digest(call_id)}"
    with git_for(repository, kept_for(repository, data_dir)) as git:
        newest = git.ask("rev-parse", "--verify", "-q", reference, missing_is_empty=True)
        if again and newest and (known := _titled(git, newest, title)):
            return known
        head = head_of(git)
        tree = tree_of_files(git, git.folder / f"index-{digest(str(root))}", head, repository.root)
        parents = [word for parent in (head, newest) if parent for word in ("-p", parent)]
        commit = git.files("commit-tree", tree, *parents, "-m", title, index=git.folder / "none")
        git.ask("update-ref", "-m", "longhaul", reference, commit, newest or "0" * 40)
        return commit


def head_of(git: Git) -> str:
    head = git.ask("rev-parse", "--verify", "-q", "HEAD^{commit}", missing_is_empty=True)
    if not head:
        raise GitProblem(f"{str(git.repository.root)!r} has no commit yet; make one first")
    return head


def tree_of_files(git: Git, index: Path, head: str, root: Path) -> str:
    """The tree of the files below `root` that git tracks, or would; `index`: remembers what was seen, or is new. Of
    repositories in the repository counts what HEAD says of them: git would ask them, by their own settings."""
    if not index.exists():
        git.files("read-tree", head, index=index)
    _forget(git, index, _inner(_staged(git, index)))
    # All but what may hold secrets and is not tracked: a `.gitignore` with `!.env` has the last word with git.
    others = git.files("ls-files", "-o", "-z", "--exclude-standard", index=index, root=root)
    secrets = _secrets(others.split("\0"))
    if len(secrets) > MOST_SECRETS:
        raise GitProblem(
            f"{str(root)!r} has more than {MOST_SECRETS} files that may hold secrets; have git ignore them"
        )
    named = "\0".join([".", *(f":(exclude,literal){path}" for path in secrets)])
    git.files("add", "-A", *FROM_STDIN, index=index, root=root, stdin=named.encode("utf-8", "surrogateescape"))
    staged = _staged(git, index)
    tracked = git.files("ls-tree", "-r", "-z", "--full-tree", head, index=index)
    # What came while git looked, or stands in the index from a time when it was tracked.
    _forget(git, index, [*_inner(staged), *_secrets(_paths(staged) - _paths(tracked))])
    _write(git, index, [f"160000 {commit} 0\t{path}" for path, commit in _inner(tracked).items()])
    return git.files("write-tree", index=index)


def _secrets(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if path and is_secret(tuple(path.lower().split("/")))]


def _staged(git: Git, index: Path) -> str:
    return git.files("ls-files", "-s", "-z", "--full-name", index=index)


def _paths(listed: str) -> set[str]:
    return {line.partition("\t")[2] for line in listed.split("\0")}


def _forget(git: Git, index: Path, paths: Iterable[str]) -> None:
    _write(git, index, [f"0 {'0' * 40}\t{path}" for path in paths])


def _inner(listed: str) -> dict[str, str]:
    """Commit by path of each repository within, of what `ls-files -s` or `ls-tree` lists."""
    found = dict[str, str]()
    for line in listed.split("\0"):
        if line.startswith("160000 "):
            about, _, path = line.partition("\t")
            words = about.split()
            found[path] = words[2] if words[1] == "commit" else words[1]
    return found


def _write(git: Git, index: Path, lines: list[str]) -> None:
    if lines:
        text = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
        git.files("update-index", "-z", "--index-info", index=index, stdin=text)


def _titled(git: Git, newest: str, title: str) -> str:
    log = git.files("log", f"-{NEWEST}", "--format=%H %s", newest, index=git.folder / "none")
    return next((line.split(" ")[0] for line in log.splitlines() if line.endswith(f" {title}")), "")


def kept_for(repository: Repository, data_dir: Path) -> Path:
    """Our own folder for a repository."""
    return data_dir.resolve() / "git" / digest(str(repository.common))


def digest(text: str) -> str:
    """As it stands in names of git."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


FICLONE = 0x40049409
"""Of Linux: the file written to shares all blocks of the other one."""
MOST_NAMES = 200_000
MOST_BYTES = 100 * 10**9
"""On the disk. None is read, but all are held as long as the copy is."""
MOST_DEEP = 100
"""Folders in folders: two files are open for each of them."""
SECONDS = 60.0

_OURS = ".longhaul"
_FOLDERS_OUT = KEYRINGS | {".ssh"}
_NAMES_OUT = re.compile("|".join(fnmatch.translate(glob) for glob in LEFT_OUT if "/" not in glob))
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""What is said of a name that was something else a moment ago."""
_HERE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def clone(source: Path, target: Path, *apart: Path) -> None:
    """Make `target`, all of it or nothing, its owner's alone. `apart`: folders that are left out wherever they lie.
    Pipes, sockets and devices are left out, owners and extended attributes not kept; files that lie there under two
    names become two. Raises GitProblem, OSError."""
    draft = target.with_name(f".{target.name}")
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700, parents=True)
    work = _Cloning(source, {(found.st_dev, found.st_ino) for found in map(os.stat, apart)})
    try:
        with _opened(os.open(source, _HERE | os.O_DIRECTORY)) as old, _opened(os.open(draft, _HERE)) as new:
            work.folder(old, new, ())
        draft.rename(target)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV}:
            why = "that takes one file system for both, with reflinks (xfs, btrfs)"
        else:
            why = error.strerror or str(error)
        raise GitProblem(f"{str(work.at)!r} can't be cloned into {str(target.parent)!r}: {why}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@dataclass(slots=True)
class _Cloning:
    root: Path
    apart: set[tuple[int, int]]
    at: Path = field(init=False)
    """What it works on."""
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    names: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.at = self.root

    def folder(self, old: int, new: int, parts: tuple[str, ...]) -> None:
        with os.scandir(old) as entries:
            for entry in entries:
                inside = (*parts, entry.name)
                self._look_at(inside)
                try:
                    seen = os.stat(entry.name, dir_fd=old, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if not _left_out(inside, is_folder=stat.S_ISDIR(seen.st_mode)):
                    self._entry(old, new, inside, seen)

    def _look_at(self, parts: tuple[str, ...]) -> None:
        self.at, self.names = self.root.joinpath(*parts), self.names + 1
        if self.names > MOST_NAMES or self.size > MOST_BYTES:
            raise GitProblem(f"{str(self.root)!r} holds more than {MOST_NAMES} files, or {MOST_BYTES} bytes")
        if len(parts) > MOST_DEEP:
            raise GitProblem(f"{str(self.root)!r} has folders in folders, more than {MOST_DEEP}")
        if time.monotonic() > self.until:
            raise GitProblem(f"cloning {str(self.root)!r} took longer than {SECONDS:g} s")

    def _entry(self, old: int, new: int, parts: tuple[str, ...], seen: os.stat_result) -> None:
        name = parts[-1]
        if stat.S_ISLNK(seen.st_mode):
            if (leads := _link(name, old)) is not None:
                os.symlink(leads, name, dir_fd=new)
        elif _is_kept(seen) and (found := _open(name, old)) is not None:
            with _opened(found):
                self._copy(found, new, parts)

    def _copy(self, found: int, new: int, parts: tuple[str, ...]) -> None:
        """Of what was opened, whatever stood there when it was looked at."""
        seen, name = os.fstat(found), parts[-1]
        if stat.S_ISDIR(seen.st_mode):
            if (seen.st_dev, seen.st_ino) in self.apart:
                return
            os.mkdir(name, 0o700, dir_fd=new)
            with _opened(os.open(name, _HERE, dir_fd=new)) as made:
                self.folder(found, made, parts)
                _as_before(made, seen, 0o700)  # or it could not be removed again
        elif stat.S_ISREG(seen.st_mode):
            self.size += seen.st_blocks * 512
            with _opened(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=new)) as made:
                fcntl.ioctl(made, FICLONE, found)
                _as_before(made, seen, 0)


def _is_kept(seen: os.stat_result) -> bool:
    # A device might do something when it is opened.
    return stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode)


def _left_out(parts: tuple[str, ...], *, is_folder: bool) -> bool:
    """By the rule for files that git does not track: what may hold secrets by its name, and what is our own."""
    lower = tuple(part.lower() for part in parts)
    if parts == (_OURS,) or _NAMES_OUT.fullmatch(lower[-1]):
        return True
    return lower[-1] in _FOLDERS_OUT if is_folder else is_secret(lower)


def _as_before(made: int, seen: os.stat_result, at_least: int) -> None:
    os.fchmod(made, seen.st_mode & 0o777 | at_least)
    os.utime(made, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _open(name: str, folder: int) -> int | None:
    try:
        return os.open(name, _HERE, dir_fd=folder)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def _link(name: str, folder: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.EINVAL}:
            return None
        raise


@contextmanager
def _opened(file: int) -> Iterator[int]:
    try:
        yield file
    finally:
        os.close(file)


KEPT = 50
"""Of a session: the newest. Each has a name on the disk for each file, and holds what was written over since."""
_SESSION, _CALL = 16, 12
"""Digits of a snapshot's name, which is as long as that of a commit; the rest is chance."""


def is_gits(root: Path) -> bool:
    """Whether the files are git's to keep: at the top lies what may be a repository."""
    return os.path.lexists(root / ".git")


def take_clone(root: Path, data_dir: Path, session_key: str, call_id: str, *, again: bool = False) -> str:
    """The name of a snapshot of the files as they are, before a call, as `snapshots.take`. Blocking. Raises GitProblem,
    OSError."""
    kept = _kept_for(data_dir, session_key)
    with only_one(kept):
        # What a worker that was killed had half made or half removed; nobody else works here while we hold the lock.
        for left in kept.glob(".*"):
            shutil.rmtree(left)
        newest = _newest_first(kept)
        of_call = digest(session_key)[:_SESSION] + digest(call_id)[:_CALL]
        if again and (known := next((name for name in newest if name.startswith(of_call)), "")):
            return known
        name = of_call + secrets.token_hex(6)
        _clone(root, kept / name, data_dir)
        _make_newest(kept / name, [kept / other for other in newest[:1]])
        for old in newest[KEPT - 1 :]:
            snapshot = kept / old
            # First its name: half of it must not be found as a whole one.
            gone = snapshot.rename(snapshot.with_name(f".{snapshot.name}"))
            shutil.rmtree(gone)
        return name


def own_folder_of(data_dir: Path, session_key: str) -> Path:
    """Where a session works that has a folder for itself alone, no working tree of git."""
    return data_dir.resolve() / "workspaces" / digest(session_key)


def own_files(root: Path, data_dir: Path, session_key: str, at: str) -> Path | None:
    """The folder of a copy of a session, made where there is none yet, with the files as they were kept, or as they are
    at `root`; None where git is to make a working tree. `at`: as of `Workspace`. Blocking. Raises GitProblem, OSError.
    """
    if not at:
        return None
    own = own_folder_of(data_dir, session_key)
    if own.is_dir():
        return own
    files = root if at == FILES_NOW else data_dir.resolve() / "clones" / at[:_SESSION] / at
    if is_gits(root) and (at == FILES_NOW or not files.is_dir()):
        return None
    if not files.is_dir():
        raise GitProblem(
            f"the files of {str(root)!r} at that step are not kept here (any more): of a session the newest {KEPT} are"
        )
    with only_one(_kept_for(data_dir, session_key)):
        if not own.is_dir():
            _clone(files, own, data_dir)
    return own


def forget(data_dir: Path, session_key: str) -> int:
    """Delete what was kept of a session, and return how many snapshots that were. Blocking. Raises GitProblem,
    OSError."""
    kept = _kept_for(data_dir, session_key)
    if not kept.is_dir() or kept.is_symlink():
        return 0
    with only_one(kept):
        count = len(_newest_first(kept))
        shutil.rmtree(kept)
    return count


def _kept_for(data_dir: Path, session_key: str) -> Path:
    return data_dir.resolve() / "clones" / digest(session_key)[:_SESSION]


def _clone(source: Path, target: Path, data_dir: Path) -> None:
    try:
        clone(source, target, data_dir)
    except GitProblem as problem:
        raise GitProblem(f"{str(source)!r} is not the top of a git repository, and {problem}") from None


def _newest_first(kept: Path) -> list[str]:
    with os.scandir(kept) as entries:
        found = [(entry.stat().st_mtime_ns, entry.name) for entry in entries if entry.name != LOCK]
    return [name for _, name in sorted(found, reverse=True) if not name.startswith(".")]


def _make_newest(made: Path, others: list[Path]) -> None:
    """Newer than those, also by a clock that was set back since: it would be the first to be removed."""
    latest = max((other.stat().st_mtime_ns for other in others), default=0)
    if made.stat().st_mtime_ns <= latest:
        os.utime(made, ns=(latest + 1, latest + 1))
