"""What a repository may hold of links, pipes and settings: git is not run there, and nothing of others is touched."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from longhaul.agent.values.spec.workspace import branch_of
from longhaul.stores.worktrees.git import GitProblem, repository_at
from longhaul.stores.worktrees.snapshots import SNAPSHOTS, digest, take_snapshot
from longhaul.stores.worktrees.worktrees import discard, list_worktrees, make
from tests.stores.worktrees.repositories import git, repository, set_traps


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Another's repository, with a secret branch and a folder of notes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    root = repository(folder)
    (root / "notes").mkdir()
    (root / "notes" / "note.txt").write_text("mine")
    return root


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def state(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(root.rglob("*"))
    }


def link_worktrees(root: Path, victim: Path) -> None:
    (root / ".git" / "worktrees").symlink_to(victim)


def link_a_branch(root: Path, victim: Path) -> None:
    (root / ".git" / "refs" / "heads" / "main").unlink()
    (root / ".git" / "refs" / "heads" / "main").symlink_to(victim / ".git" / "refs" / "heads" / "main")


def name_other_objects(root: Path, victim: Path) -> None:
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{victim}/.git/objects\n")


def log_of_snapshots(root: Path) -> Path:
    log = root / ".git" / "logs" / SNAPSHOTS / digest("ana")
    log.parent.mkdir(parents=True)
    return log


def link_a_log(root: Path, victim: Path) -> None:
    log_of_snapshots(root).symlink_to(victim / "notes" / "note.txt")


def link_a_log_by_another_name(root: Path, victim: Path) -> None:
    log_of_snapshots(root).hardlink_to(victim / "notes" / "note.txt")


def link_objects(root: Path, victim: Path) -> None:
    (root / ".git" / "objects" / "aa").symlink_to(victim / "notes")


def put_a_pipe(root: Path, victim: Path) -> None:
    (root / ".git" / "packed-refs").unlink(missing_ok=True)
    os.mkfifo(root / ".git" / "packed-refs")


def set_a_hook(root: Path, victim: Path) -> None:
    with (root / ".git" / "config").open("a") as config:
        config.write(f'[hook "x"]\n\tevent = reference-transaction\n\tcommand = touch {victim}/caught\n')


@pytest.mark.parametrize(
    "spoil",
    [
        link_worktrees,
        link_a_branch,
        name_other_objects,
        link_a_log,
        link_a_log_by_another_name,
        link_objects,
        put_a_pipe,
        set_a_hook,
    ],
)
def test_in_a_repository_that_leads_elsewhere_git_does_nothing(
    root: Path, victim: Path, data: Path, spoil: Callable[[Path, Path], None]
) -> None:
    spoil(root, victim)
    before = state(victim), git(victim, "for-each-ref")

    with pytest.raises(GitProblem, match="left alone"):
        take_snapshot(root, data, "ana", "call-1")
    with pytest.raises(GitProblem, match="left alone"):
        make(root, data, "ana", "")

    assert (state(victim), git(victim, "for-each-ref")) == before


def test_a_repository_whose_settings_name_programs_is_left_alone(root: Path, data: Path, tmp_path: Path) -> None:
    caught = set_traps(root, tmp_path, configured=True)

    with pytest.raises(GitProblem, match=r"config' has settings that may name a program or a file"):
        take_snapshot(root, data, "ana", "call-1")

    assert list(caught.iterdir()) == []


@pytest.mark.parametrize("commondir", ["{victim}/.git", "../.."])
def test_a_file_that_claims_a_made_up_repository_reaches_no_other_one(
    tmp_path: Path, victim: Path, data: Path, commondir: str
) -> None:
    root = tmp_path / "claims"
    common = root / "sub" / ".git"
    own = common / "worktrees" / "x"
    own.mkdir(parents=True)
    (root / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{root}/.git\n")
    (own / "commondir").write_text(f"{commondir.format(victim=victim)}\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (common / "HEAD").write_text("ref: refs/heads/main\n")
    (common / "objects").symlink_to(victim / ".git" / "objects")
    (common / "refs").symlink_to(victim / ".git" / "refs")
    before = state(victim)

    for do in (lambda: take_snapshot(root, data, "ana", "call-1"), lambda: make(root, data, "ana", "")):
        with pytest.raises(GitProblem, match=r"left alone|not the top"):
            do()

    assert state(victim) == before


def test_a_tree_of_a_persons_own_has_snapshots_and_stays_where_it_is(root: Path, data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(root, "worktree", "add", "-q", str(other))
    git(root, "worktree", "add", "-q", str(tmp_path / "gone"))
    (tmp_path / "gone" / ".git").unlink()

    assert git(root, "rev-parse", f"{take_snapshot(other, data, 'ana', 'call-1')}^1") == git(root, "rev-parse", "main")
    make(root, data, "ana", "")
    (root / ".git" / "worktrees" / "other" / "longhaul").write_text("bo")
    with pytest.raises(GitProblem, match="was not made for a session"):
        discard(root, data, branch_of("bo"))
    discard(root, data, branch_of("ana"))

    assert sorted(path.name for path in (root / ".git" / "worktrees").iterdir()) == ["gone", "other"]
    assert (other / "poem.txt").exists()


def test_a_pipe_among_the_working_trees_holds_nobody_up(root: Path) -> None:
    own = root / ".git" / "worktrees" / "x"
    own.mkdir(parents=True)
    os.mkfifo(own / "gitdir")

    assert list_worktrees(repository_at(root)) == []
