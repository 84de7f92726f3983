"""Snapshots and working trees: files come back as they were, and nothing that a repository names is run."""

import fcntl
import os
from pathlib import Path

import pytest

from longhaul.agent.values.spec.workspace import FILES_NOW, branch_of
from longhaul.stores.worktrees import git as own_git
from longhaul.stores.worktrees.git import GitProblem, repository_at, require_plain
from longhaul.stores.worktrees.snapshots import take_snapshot
from longhaul.stores.worktrees.worktrees import discard, list_worktrees, make, merge
from tests.stores.worktrees.repositories import FIRST, git, repository, set_traps, texts


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def seen(root: Path) -> tuple[str, str, str, bytes]:
    """What a person sees of a repository: nothing of it may change."""
    index = (root / ".git" / "index").read_bytes()
    return git(root, "status", "--porcelain"), git(root, "branch", "-a"), git(root, "log", "--oneline"), index


def test_whoever_was_stopped_with_a_repositorys_lock_holds_nobody_up_for_ever(
    root: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_git, "LOCK_SECONDS", 0.2)
    take_snapshot(root, data, "wall", "call-1")
    (lock,) = data.rglob("lock")

    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(GitProblem, match="is locked by another process"):
            take_snapshot(root, data, "wall", "call-2")

    assert take_snapshot(root, data, "wall", "call-2")


def test_a_snapshot_keeps_the_files_and_changes_nothing_that_a_person_sees(root: Path, data: Path) -> None:
    (root / "poem.txt").write_text("Tulip\n")
    (root / "new.txt").write_text("new\n")
    (root / "build.log").write_text("noise")
    (root / ".env").write_text("KEY=1")
    (root / "src" / "main.py").unlink()
    before = seen(root)

    commit = take_snapshot(root, data, "ana", "call-1")

    assert seen(root) == before
    kept = git(root, "ls-tree", "-r", "--name-only", commit).split("\n")
    assert kept == [".gitignore", "new.txt", "poem.txt", "win.txt"]
    assert git(root, "show", f"{commit}:poem.txt") == "Tulip"


def test_a_call_that_is_started_again_has_the_snapshot_of_its_first_beginning(root: Path, data: Path) -> None:
    first = take_snapshot(root, data, "ana", "call-1")
    (root / "poem.txt").write_text("half\n")
    other = take_snapshot(root, data, "ana", "call-2")

    assert take_snapshot(root, data, "ana", "call-1", again=True) == first != other
    assert git(root, "rev-list", "--count", other) == "3"


def test_a_tree_at_a_snapshot_has_the_files_of_that_moment_and_shows_them_as_changed(root: Path, data: Path) -> None:
    (root / "poem.txt").write_text("Tulip\n")
    (root / "new.txt").write_text("new\n")
    commit = take_snapshot(root, data, "ana", "call-1")
    (root / "poem.txt").write_text("Thorn\n")

    tree = make(root, data, "copy", commit)

    assert texts(tree) == {**FIRST, "poem.txt": "Tulip\n", "new.txt": "new\n"}
    assert git(tree, "status", "--porcelain") == " M poem.txt\n?? new.txt"
    assert git(tree, "rev-parse", "HEAD") == git(root, "rev-parse", "main")
    assert (root / "poem.txt").read_text() == "Thorn\n"


def test_a_tree_of_the_files_as_they_are_has_what_is_not_committed(root: Path, data: Path) -> None:
    (root / "poem.txt").write_text("Tulip\n")

    assert texts(make(root, data, "now", FILES_NOW))["poem.txt"] == "Tulip\n"
    assert texts(make(root, data, "head", ""))["poem.txt"] == "Rose\n"


def test_one_of_two_trees_is_merged_and_the_other_one_thrown_away(root: Path, data: Path) -> None:
    good, bad = make(root, data, "good", ""), make(root, data, "bad", "")
    (good / "poem.txt").write_text("Rose\nby good\n")
    (good / "added.txt").write_text("added\n")
    (good / "src" / "main.py").unlink()
    (bad / "poem.txt").write_text("spoilt\n")
    (root / "mine.txt").write_text("not committed\n")

    merged = merge(root, data, branch_of("good"))
    again = merge(root, data, branch_of("good"))
    discard(root, data, branch_of("good"))
    discard(root, data, branch_of("bad"))

    expected = {**FIRST, "poem.txt": "Rose\nby good\n", "added.txt": "added\n", "mine.txt": "not committed\n"}
    assert texts(root) == {name: text for name, text in expected.items() if name != "src/main.py"}
    assert (git(root, "rev-parse", "HEAD"), again) == (merged, "")
    assert git(root, "status", "--porcelain") == "?? mine.txt"
    assert (git(root, "branch", "--list"), list_worktrees(repository_at(root))) == ("* main", [])
    assert not good.exists()
    assert not bad.exists()


def test_a_merge_that_would_lose_something_is_refused_and_changes_nothing(root: Path, data: Path) -> None:
    tree = make(root, data, "one", "")
    (tree / "poem.txt").write_text("theirs\n")
    (root / "poem.txt").write_text("mine, not committed\n")
    with pytest.raises(GitProblem, match=r"poem\.txt"):
        merge(root, data, branch_of("one"))
    git(root, "commit", "-qam", "mine")
    before = seen(root)
    with pytest.raises(GitProblem, match=r"both sides changed the same lines of poem\.txt; nothing was merged"):
        merge(root, data, branch_of("one"))

    assert seen(root) == before
    assert (root / "poem.txt").read_text() == "mine, not committed\n"


def test_nothing_that_a_hostile_repository_names_is_run(root: Path, data: Path, tmp_path: Path) -> None:
    caught = set_traps(root, tmp_path, configured=False)
    os.mkfifo(root / "pipe")

    commit = take_snapshot(root, data, "ana", "call-1")
    take_snapshot(root, data, "ana", "call-2")
    tree = make(root, data, "copy", commit)
    (tree / "poem.txt").write_text("theirs\n")
    (root / "src" / "main.py").write_text("print(2)\n")
    merge(root, data, branch_of("copy"))
    discard(root, data, branch_of("copy"))

    assert list(caught.iterdir()) == []
    assert (root / "poem.txt").read_text() == "theirs\n"
    git(root, "update-ref", "refs/heads/x", "HEAD")
    assert list(caught.iterdir()), "the traps do not even work"


def test_what_is_no_repository_of_its_own_is_left_alone(root: Path, data: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".git").write_text(f"gitdir: {root}/.git\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")

    with pytest.raises(GitProblem, match="not the top of a git repository"):
        take_snapshot(elsewhere, data, "ana", "call-1")
    with pytest.raises(GitProblem, match="not the top of a git repository"):
        take_snapshot(root / "src", data, "ana", "call-1")
    with pytest.raises(GitProblem, match="has no commit yet"):
        take_snapshot(empty, data, "ana", "call-1")
    (root / ".git" / "commondir").write_text(str(empty / ".git"))
    with pytest.raises(GitProblem, match="leads elsewhere"):
        take_snapshot(root, data, "ana", "call-1")
    with pytest.raises(GitProblem, match="no session has a working tree on branch 'longhaul/x' here; there are: none"):
        merge(empty, data, "x")


def test_a_tree_that_was_half_made_is_made_again(root: Path, data: Path) -> None:
    tree = make(root, data, "one", "")
    (root / ".git" / "worktrees" / tree.name / "longhaul").unlink()
    (tree / "poem.txt").unlink()

    assert make(root, data, "one", "") == tree
    assert texts(tree) == FIRST


def test_what_a_killed_git_left_locked_does_not_end_the_snapshots(root: Path, data: Path) -> None:
    take_snapshot(root, data, "ana", "call-1")
    (index,) = (data / "git").glob("*/index-*")
    index.with_name(f"{index.name}.lock").touch()
    (root / "poem.txt").write_text("Tulip\n")

    assert git(root, "show", f"{take_snapshot(root, data, 'ana', 'call-2')}:poem.txt") == "Tulip"


def test_secrets_and_what_the_repository_excludes_are_not_kept(root: Path, data: Path) -> None:
    secrets = ".npmrc .vault-token prod.env .ENV Server.PEM main.tfstate credentials.json id_rsa_work .aws/credentials"
    for name in (*secrets.split(), ".ssh/config2", "private/note.txt", "kept.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("secret")
    (root / ".git" / "info" / "exclude").write_text("private/\n!.npmrc")

    kept = git(root, "ls-tree", "-r", "--name-only", take_snapshot(root, data, "ana", "call-1")).split("\n")

    assert sorted(kept) == sorted([*FIRST, "kept.txt"])


@pytest.mark.proves("X10")
def test_no_gitignore_brings_secrets_back_but_those_that_are_tracked(root: Path, data: Path) -> None:
    (root / "deep").mkdir()
    (root / ".gitignore").write_text("!.env\n!*.pem\n!.env.example\n")
    (root / "deep" / ".gitignore").write_text("!*\n")
    (root / "tracked.pem").write_text("public")
    git(root, "add", "-f", "tracked.pem")
    git(root, "commit", "-q", "-m", "keys")
    (root / "tracked.pem").write_text("changed")
    for name in (".env", "Server.PEM", "deep/.npmrc", "*", ":(exclude)*", ".env.example", "deep/kept.txt"):
        (root / name).write_text(f"secret of {name}")

    commit = take_snapshot(root, data, "ana", "call-1")

    kept = git(root, "-c", "core.quotePath=off", "ls-tree", "-r", "--name-only", commit).split("\n")
    more = ["tracked.pem", "deep/.gitignore", "*", ":(exclude)*", ".env.example", "deep/kept.txt"]
    assert sorted(kept) == sorted([*FIRST, *more])
    assert git(root, "show", f"{commit}:tracked.pem") == "changed"
    objects = git(root, "cat-file", "--batch-all-objects", "--batch-check")
    assert git(root, "hash-object", ".env.example") in objects
    assert not [name for name in (".env", "Server.PEM", "deep/.npmrc") if git(root, "hash-object", name) in objects]


def test_what_a_repository_says_of_itself_in_mid_snapshot_is_not_read(
    root: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that changes the configuration when it was looked through."""

    def spoilt(common: Path) -> None:
        require_plain(common)
        (common / "config").write_text("[hook]\n[[ no git reads this\n")

    monkeypatch.setattr(own_git, "require_plain", spoilt)
    commit = take_snapshot(root, data, "ana", "call-1")

    (root / ".git" / "config").write_text("")
    assert git(root, "for-each-ref", "refs/longhaul", "--format=%(objectname)") == commit


def test_a_repository_with_objects_by_another_digest_is_left_alone(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "other"
    root.mkdir()
    git(root, "init", "-q", "--object-format=sha256")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")

    with pytest.raises(GitProblem, match="settings that may name a program or a file, or that are not known here"):
        take_snapshot(root, data, "ana", "call-1")
