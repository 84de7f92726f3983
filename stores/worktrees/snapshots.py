"""Keeps the files of a working tree as they are at one moment, without touching its index, its branches or its HEAD."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from longhaul.agent.permission.call_facts import is_secret
from longhaul.stores.worktrees.git import Git, git_for
from longhaul.stores.worktrees.plain_git_folder import GitProblem
from longhaul.stores.worktrees.repositories import Repository, repository_at

SNAPSHOTS = "refs/longhaul/"
FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
MOST_SECRETS = 1_000
"""Untracked files that may hold secrets, and that the repository does not let git ignore: each is held against all."""
NEWEST = 200
"""Snapshots of a session among which that of a call is looked for, which is begun again."""


def take(root: Path, data_dir: Path, session_key: str, call_id: str, *, again: bool = False) -> str:
    """The commit of the files as they are, before a call. `again`: the call was begun before, so that the snapshot from
    then counts, if there is one. Blocking. Raises GitProblem."""
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
    _add(git, index, root)
    staged = _staged(git, index)
    tracked = git.files("ls-tree", "-r", "-z", "--full-tree", head, index=index)
    # What came while git looked, or stands in the index from a time when it was tracked.
    _forget(git, index, [*_inner(staged), *_secrets(_paths(staged) - _paths(tracked))])
    _write(git, index, [f"160000 {commit} 0\t{path}" for path, commit in _inner(tracked).items()])
    return git.files("write-tree", index=index)


def _add(git: Git, index: Path, root: Path) -> None:
    """All but what may hold secrets and is not tracked: a `.gitignore` with `!.env` has the last word with git."""
    others = git.files("ls-files", "-o", "-z", "--exclude-standard", index=index, root=root)
    secrets = _secrets(others.split("\0"))
    if len(secrets) > MOST_SECRETS:
        raise GitProblem(
            f"{str(root)!r} has more than {MOST_SECRETS} files that may hold secrets; have git ignore them"
        )
    named = "\0".join([".", *(f":(exclude,literal){path}" for path in secrets)])
    git.files("add", "-A", *FROM_STDIN, index=index, root=root, stdin=named.encode("utf-8", "surrogateescape"))


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
