"""Clones of folders that are no git repository: files come back as they were, on a file system that can do it."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from longhaul.agent.permission.call_analysis import is_secret
from longhaul.agent.values.spec.workspace import FILES_NOW
from longhaul.stores.worktrees import snapshots
from longhaul.stores.worktrees.git import GitProblem
from longhaul.stores.worktrees.snapshots import forget, own_files, take_clone
from tests.stores.worktrees.reflinked import reflinked
from tests.stores.worktrees.repositories import git, texts

FIRST = {"poem.txt": "Rose\n", "src/main.py": "print(1)\n"}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with reflinked(tmp_path_factory.mktemp("disk")) as mounted:
        if mounted is None:
            pytest.skip("no XFS can be made and mounted")
        yield mounted


@pytest.fixture
def root(disk: Path) -> Iterator[Path]:
    folder = disk / "project"
    written(folder, FIRST)
    (folder / ".longhaul").mkdir()
    (folder / ".longhaul" / "workspace").write_text("nonce")
    yield folder
    shutil.rmtree(disk / "data", ignore_errors=True)
    shutil.rmtree(folder)


@pytest.fixture
def data(disk: Path) -> Path:
    return disk / "data"


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def kept(data: Path) -> list[Path]:
    return sorted(path for path in (data / "clones").glob("*/*") if path.name != "lock")


def test_a_copy_has_the_files_of_that_moment_and_only_their_blocks_are_shared(root: Path, data: Path) -> None:
    (root / "large.bin").write_bytes(os.urandom(2**20) * 40)
    os.sync()
    free = os.statvfs(root).f_bavail * os.statvfs(root).f_bsize
    (root / "empty").mkdir()
    (root / "src" / "main.py").chmod(0o750)
    os.utime(root / "poem.txt", ns=(10**18, 10**18))
    snapshot = take_clone(root, data, "ana", "call-1")
    (root / "poem.txt").write_text("Thorn\n")
    shutil.rmtree(root / "src")

    copy = own_files(root, data, "copy", snapshot)

    assert copy is not None
    assert copy == own_files(root, data, "copy", snapshot)
    (copy / "large.bin").write_bytes(b"short")
    assert texts(copy) == {**FIRST, "large.bin": "short"}
    assert (root / "poem.txt").read_text() == "Thorn\n"
    assert (root / "large.bin").stat().st_size == 40 * 2**20
    assert (copy / "empty").is_dir()
    assert stat.S_IMODE((copy / "src" / "main.py").stat().st_mode) == 0o750
    assert (copy / "poem.txt").stat().st_mtime_ns == 10**18
    assert not (copy / ".longhaul").exists()
    os.sync()
    assert free - os.statvfs(root).f_bavail * os.statvfs(root).f_bsize < 10 * 2**20


def test_a_copy_of_now_has_the_files_as_they_are(root: Path, data: Path) -> None:
    (root / "poem.txt").write_text("Tulip\n")

    copy = own_files(root, data, "copy", FILES_NOW)

    assert copy is not None
    assert texts(copy) == {**FIRST, "poem.txt": "Tulip\n"}


def test_a_call_that_is_started_again_has_the_clone_of_its_first_beginning(root: Path, data: Path) -> None:
    first = take_clone(root, data, "ana", "call-1")
    (root / "poem.txt").write_text("half\n")
    other = take_clone(root, data, "ana", "call-2")

    assert take_clone(root, data, "ana", "call-1", again=True) == first != other
    assert len(kept(data)) == 2
    assert len(first) == 40


def test_a_clock_that_was_set_back_makes_no_new_clone_the_oldest(
    root: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "KEPT", 2)
    take_clone(root, data, "ana", "call-1")
    (first,) = kept(data)
    tomorrow = time.time() + 86_400
    os.utime(first, (tomorrow, tomorrow))

    later = [take_clone(root, data, "ana", f"call-{number}") for number in (2, 3)]

    assert sorted(later) == [path.name for path in kept(data)]


def test_nobody_but_the_workers_user_reads_what_was_kept(root: Path, data: Path) -> None:
    take_clone(root, data, "ana", "call-1")
    (snapshot,) = kept(data)

    assert [stat.S_IMODE(one.stat().st_mode) for one in (snapshot, snapshot.parent)] == [0o700, 0o700]


def test_secrets_and_what_is_no_file_are_not_kept(root: Path, data: Path, tmp_path: Path) -> None:
    secrets = ".npmrc .vault-token prod.env .ENV Server.PEM main.tfstate credentials.json id_rsa_work .aws/credentials"
    written(root, dict.fromkeys((*secrets.split(), ".ssh/known_hosts", "a/.gnupg/x", "inner/.git/config"), "secret"))
    written(root, {"inner/.git/HEAD": "ref: refs/heads/main\n", "deep/.longhaul/x": "theirs"})
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("poem.txt")
    (root / "away").symlink_to(tmp_path)
    (root / "nowhere.pem").symlink_to("/etc/shadow")

    copy = own_files(root, data, "copy", take_clone(root, data, "ana", "call-1"))

    assert copy is not None
    names = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_symlink() or not path.is_dir()}
    assert names == {*FIRST, "inner/.git/HEAD", "deep/.longhaul/x", "link", "away"}
    assert [(copy / name).readlink() for name in ("link", "away")] == [Path("poem.txt"), tmp_path]


def test_a_data_directory_in_the_workspace_is_not_kept_with_it(root: Path) -> None:
    inside = root / ".data"
    take_clone(root, inside, "ana", "call-1")

    second = take_clone(root, inside, "ana", "call-2")

    (found,) = (inside / "clones").glob(f"*/{second}")
    assert texts(found) == FIRST


def test_of_a_session_the_newest_are_kept_and_an_older_step_says_that_it_is_gone(
    root: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "KEPT", 2)
    first, second, third = [take_clone(root, data, "ana", f"call-{number}") for number in range(3)]
    other = take_clone(root, data, "bea", "call-1")

    assert {path.name for path in kept(data)} == {second, third, other}
    with pytest.raises(GitProblem, match=r"are not kept here \(any more\): of a session the newest 2 are"):
        own_files(root, data, "copy", first)


def test_what_was_kept_of_a_session_goes_with_it_and_another_ones_stays(root: Path, data: Path) -> None:
    for number in range(3):
        take_clone(root, data, "ana", f"call-{number}")
    other = take_clone(root, data, "bea", "call-1")

    assert (forget(data, "ana"), forget(data, "ana")) == (3, 0)
    assert [path.name for path in kept(data)] == [other]


@pytest.mark.parametrize(
    ("bound", "value", "said"),
    [
        ("MOST_NAMES", 3, "holds more than 3 files"),
        ("MOST_BYTES", 4_096, "or 4096 bytes"),
        ("MOST_DEEP", 1, "has folders in folders, more than 1"),
        ("SECONDS", -1.0, "took longer than"),
    ],
)
def test_what_is_too_much_is_not_kept_and_nothing_is_left_of_it(
    root: Path, data: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float, said: str
) -> None:
    written(root, {"z/y": "deep", "z/x": "deeper"})
    monkeypatch.setattr(snapshots, bound, value)

    with pytest.raises(GitProblem, match=said):
        take_clone(root, data, "ana", "call-1")

    assert kept(data) == []


def test_what_a_killed_worker_left_half_made_is_no_snapshot_and_goes(root: Path, data: Path) -> None:
    whole = take_clone(root, data, "ana", "call-1")
    (half,) = kept(data)
    draft = half.rename(half.with_name(f".{whole}"))
    with pytest.raises(GitProblem, match="not kept here"):
        own_files(root, data, "copy", whole)

    again = take_clone(root, data, "ana", "call-1", again=True)

    assert again != whole
    assert not draft.exists()
    assert [path.name for path in kept(data)] == [again]


def test_what_becomes_a_link_or_goes_while_it_is_looked_at_leads_nowhere(
    root: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(root, {"notes.txt": "a", "rest.txt": "stays\n"})

    def spoilt(parts: tuple[str, ...]) -> bool:
        if parts == ("poem.txt",):
            (root / "poem.txt").unlink()
            (root / "poem.txt").symlink_to(root / "rest.txt")
        if parts == ("notes.txt",):
            (root / "notes.txt").unlink()
        return is_secret(parts)

    monkeypatch.setattr(snapshots, "is_secret", spoilt)
    copy = own_files(root, data, "copy", take_clone(root, data, "ana", "call-1"))

    assert copy is not None
    assert texts(copy) == {"src/main.py": "print(1)\n", "rest.txt": "stays\n"}


def test_what_was_kept_comes_back_where_the_folder_has_become_a_repository(root: Path, data: Path) -> None:
    snapshot = take_clone(root, data, "ana", "call-1")
    git(root, "init", "-q")

    copy = own_files(root, data, "copy", snapshot)

    assert copy is not None
    assert texts(copy) == FIRST
    assert own_files(root, data, "new", FILES_NOW) is None
    assert own_files(root, data, "new", "a" * 40) is None
    assert own_files(root, data, "new", "") is None


def test_without_reflinks_nothing_is_kept_and_the_sentence_says_why(root: Path, tmp_path: Path) -> None:
    """Between two file systems there are none."""
    with pytest.raises(GitProblem, match=r"is not the top of a git repository, and .* takes one file system for both"):
        take_clone(root, tmp_path, "ana", "call-1")
    with pytest.raises(GitProblem, match="takes one file system for both"):
        own_files(root, tmp_path, "copy", FILES_NOW)

    assert kept(tmp_path) == []
    assert not list((tmp_path / "workspaces").glob("*"))


def test_a_file_system_that_has_none_says_so(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("/dev/shm is Linux's")
    folder = memory / f"longhaul-{tmp_path.name}-{os.getpid()}"
    written(folder / "project", FIRST)
    try:
        with pytest.raises(GitProblem, match=r"with reflinks \(xfs, btrfs\)"):
            take_clone(folder / "project", folder / "data", "ana", "call-1")
        assert kept(folder / "data") == []
    finally:
        shutil.rmtree(folder)
