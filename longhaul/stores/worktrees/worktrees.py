"""Working trees of one repository, each on a branch of its own: made, listed, merged, thrown away."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from longhaul.agent.values.spec.workspace import BRANCHES, FILES_NOW, branch_of
from longhaul.stores.worktrees.git import Git, GitProblem, Repository, git_for, line_of, own_folder, repository_at
from longhaul.stores.worktrees.snapshots import digest, head_of, kept_for, tree_of_files

OF = "longhaul"
"""Within what git keeps of a working tree: the session that it was made for. It is the last thing that is made."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """One that was made for a session."""

    branch: str
    root: Path
    session_key: str
    """Id of the session's workflow."""


def path_of(data_dir: Path, session_key: str) -> Path:
    """Where the session's own working tree lies, if it has one."""
    return _path_of_branch(data_dir, branch_of(session_key))


def _path_of_branch(data_dir: Path, branch: str) -> Path:
    return data_dir.resolve() / "worktrees" / branch.removeprefix(BRANCHES)


def make(root: Path, data_dir: Path, session_key: str, at: str) -> Path:
    """The session's own working tree of the repository at `root`, made where there is none yet. `at`: as of
    `Workspace`. Blocking. Raises GitProblem."""
    repository, branch = repository_at(root), branch_of(session_key)
    path = path_of(data_dir, session_key)
    if (own := own_folder(path)) is not None and own.parent.parent == repository.common and (own / OF).is_file():
        return path
    with git_for(repository, kept_for(repository, data_dir)) as git:
        _clear(git, path)
        head = head_of(git)
        files = _files(git, head, at)
        base = git.ask("rev-parse", "--verify", "-q", f"{files}^1", missing_is_empty=True) if files != head else head
        known = git.ask("rev-parse", "--verify", "-q", f"refs/heads/{branch}", missing_is_empty=True)
        where = [str(path), branch] if known else ["-b", branch, str(path), base]
        git.tell_repository("worktree", "add", "-q", "--no-checkout", *where)
        own = own_folder(path)
        if own is None:
            raise GitProblem(f"git made no working tree at {str(path)!r}")
        _fill(git, path, own / "index", known or base, files if files != head else known or head)
        # Never through a link: what git keeps of a working tree may have been changed since it was made.
        with os.fdopen(os.open(own / OF, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as opened:
            opened.write(session_key.encode("utf-8", "surrogatepass"))
    return path


def _files(git: Git, head: str, at: str) -> str:
    """The commit whose files it begins with."""
    if at == FILES_NOW:
        root = git.repository.root
        tree = tree_of_files(git, git.folder / f"index-{digest(str(root))}", head, root)
        return git.files("commit-tree", tree, "-p", head, "-m", "as they are", index=git.folder / "none")
    if not at:
        return head
    found = git.ask("rev-parse", "--verify", "-q", f"{at}^{{commit}}", missing_is_empty=True)
    if not found:
        raise GitProblem(f"the repository at {str(git.repository.root)!r} has no commit {at!r} (any more)")
    return found


def _fill(git: Git, path: Path, index: Path, base: str, files: str) -> None:
    """Write the files, and have the index say that `base` was checked out: what differs shows as changed."""
    other = git.folder / "index-of-files"
    other.unlink(missing_ok=True)
    git.files("read-tree", files, index=other, root=path)
    git.files("checkout-index", "-a", "-f", "-u", "-q", index=other, root=path)
    shutil.copyfile(other, index)
    if base != files:
        git.files("read-tree", "-m", base, index=index, root=path)


def _clear(git: Git, path: Path) -> None:
    """Remove a working tree, and what git keeps of it. Not `git worktree prune`: it removes the folders of others, and
    wherever a link leads."""
    if path.exists():
        shutil.rmtree(path)
    try:
        folders = os.open(git.repository.common / "worktrees", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        for own in _kept(git.repository):
            if line_of(own / "gitdir") == str(path / ".git"):
                shutil.rmtree(own.name, dir_fd=folders)
    finally:
        os.close(folders)


def _kept(repository: Repository) -> list[Path]:
    """What git keeps of each linked working tree."""
    folders = repository.common / "worktrees"
    if folders.is_symlink() or not folders.is_dir():
        return []
    return [own for own in sorted(folders.iterdir()) if own.is_dir() and not own.is_symlink()]


def list_worktrees(repository: Repository) -> list[Worktree]:
    """Those of sessions, by branch."""
    found = list[Worktree]()
    for own in _kept(repository):
        root = Path(line_of(own / "gitdir")).parent
        key = line_of(own / OF)
        if key and own_folder(root) == own:
            found.append(Worktree(branch_of(key), root, key))
    return found


def _of_branch(repository: Repository, branch: str) -> Worktree:
    """Raises GitProblem. `branch` may lack what all of them begin with."""
    name = branch if branch.startswith(BRANCHES) else f"{BRANCHES}{branch}"
    for one in list_worktrees(repository):
        if one.branch == name:
            return one
    names = ", ".join(one.branch for one in list_worktrees(repository)) or "none"
    raise GitProblem(f"no session has a working tree on branch {name!r} here; there are: {names}")


def merge(root: Path, data_dir: Path, branch: str) -> str:
    """Commit what lies in a session's working tree on its branch, and merge that into what is checked out at `root`.
    The commit that came of it; empty where there was nothing to merge. Raises GitProblem, and nothing is merged."""
    repository = repository_at(root)
    theirs = _of_branch(repository, branch)
    with git_for(repository, kept_for(repository, data_dir)) as git:
        tip = _committed(git, theirs)
        head = head_of(git)
        if git.ask("merge-base", head, tip, missing_is_empty=True) == tip:
            return ""
        index = git.folder / "none"
        done = git.run_on_files("merge-tree", "--write-tree", "--name-only", "--no-messages", head, tip, index=index)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        if done.returncode == 1:
            raise GitProblem(f"both sides changed the same lines of {', '.join(lines[1:21])}; nothing was merged")
        if done.returncode or not lines:
            raise GitProblem(f"git merge-tree: {done.stderr.decode('utf-8', 'replace')[:500]}")
        tree = lines[0]
        title = f"Merge branch '{theirs.branch}'"
        commit = git.files("commit-tree", tree, "-p", head, "-p", tip, "-m", title, index=git.folder / "none")
        # Refuses where a file of the working tree would be lost, and leaves all as it is.
        git.files("read-tree", "-m", "-u", head, commit, index=repository.own / "index")
        git.tell_repository("update-ref", "-m", title, "HEAD", commit, head)
        return commit


def _committed(git: Git, theirs: Worktree) -> str:
    """The tip of the branch, with all that lies in the working tree."""
    reference = f"refs/heads/{theirs.branch}"
    tip = git.ask("rev-parse", "--verify", reference)
    index = git.folder / "index-of-files"
    index.unlink(missing_ok=True)
    tree = tree_of_files(git, index, tip, theirs.root)
    if tree == git.ask("rev-parse", f"{tip}^{{tree}}"):
        return tip
    commit = git.files("commit-tree", tree, "-p", tip, "-m", f"Work of {theirs.session_key}"[:200], index=index)
    git.ask("update-ref", "-m", "longhaul", reference, commit, tip)
    return commit


def discard(root: Path, data_dir: Path, branch: str) -> Worktree:
    """Throw away a session's working tree and its branch, with all that lies in them. Raises GitProblem."""
    repository = repository_at(root)
    theirs = _of_branch(repository, branch)
    if theirs.root != _path_of_branch(data_dir, theirs.branch):
        raise GitProblem(f"{str(theirs.root)!r} was not made for a session; remove it with `git worktree remove`")
    with git_for(repository, kept_for(repository, data_dir)) as git:
        _clear(git, theirs.root)
        git.tell_repository("update-ref", "-d", f"refs/heads/{theirs.branch}")
    return theirs
