"""Keeps the files of a folder that is no git repository, as clones in the workers' data directory.

They lie in `clones/SESSION/SNAPSHOT` there, for whoever runs the worker alone: outside of what is kept, so that no tool
finds each file many times, and no snapshot holds those before.
"""

import os
import secrets
import shutil
from pathlib import Path

from longhaul.agent.values.spec.workspace import FILES_NOW
from longhaul.stores.worktrees.git import LOCK, only_one
from longhaul.stores.worktrees.plain_git_folder import GitProblem
from longhaul.stores.worktrees.reflinks import clone
from longhaul.stores.worktrees.snapshots import digest

KEPT = 50
"""Of a session: the newest. Each has a name on the disk for each file, and holds what was written over since."""
_SESSION, _CALL = 16, 12
"""Digits of a snapshot's name, which is as long as that of a commit; the rest is chance."""


def is_gits(root: Path) -> bool:
    """Whether the files are git's to keep: at the top lies what may be a repository."""
    return os.path.lexists(root / ".git")


def take(root: Path, data_dir: Path, session_key: str, call_id: str, *, again: bool = False) -> str:
    """The name of a snapshot of the files as they are, before a call, as `snapshots.take`. Blocking. Raises GitProblem,
    OSError."""
    kept = _kept_for(data_dir, session_key)
    with only_one(kept):
        _clear(kept)
        newest = _newest_first(kept)
        of_call = digest(session_key)[:_SESSION] + digest(call_id)[:_CALL]
        if again and (known := next((name for name in newest if name.startswith(of_call)), "")):
            return known
        name = of_call + secrets.token_hex(6)
        _clone(root, kept / name, data_dir)
        _make_newest(kept / name, [kept / other for other in newest[:1]])
        for old in newest[KEPT - 1 :]:
            _remove(kept / old)
        return name


def own_files(root: Path, data_dir: Path, session_key: str, at: str) -> Path | None:
    """The folder of a copy of a session, made where there is none yet, with the files as they were kept, or as they are
    at `root`; None where git is to make a working tree. `at`: as of `Workspace`. Blocking. Raises GitProblem, OSError.
    """
    if not at:
        return None
    own = data_dir.resolve() / "workspaces" / digest(session_key)
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


def _clear(kept: Path) -> None:
    """What a worker that was killed had half made or half removed; nobody else works here while we hold the lock."""
    for left in kept.glob(".*"):
        shutil.rmtree(left)


def _remove(snapshot: Path) -> None:
    # First its name: half of it must not be found as a whole one.
    gone = snapshot.rename(snapshot.with_name(f".{snapshot.name}"))
    shutil.rmtree(gone)
