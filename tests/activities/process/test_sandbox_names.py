"""What is covered in a workspace is what is there now, however short the time since the last call."""

import os
import shutil
import time
from pathlib import Path

import pytest

from longhaul.activities.process import sandbox_view
from longhaul.activities.process.sandbox_view import STILL_NS, covered_in
from tests.activities.corpora.stage import git

PLAIN = ("root/deep/er/app.py", "root/deep/other.py", "root/docs/guide.md")
WORLDS = {
    "came": PLAIN,
    "moved there": (*PLAIN, "beside/Makefile"),
    "gone": (*PLAIN, "root/Makefile", "root/.env"),
    "time": PLAIN,
    "another": (*PLAIN, "beside/.env"),
    "a link": (*PLAIN, "root/docs/.env"),
    "content": (*PLAIN, "root/deep/server.pem"),
    "tracked": (*PLAIN, "root/deep/server.pem"),
    "as it was": PLAIN,
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long since unchanged, and each root looked at once."""
    worlds = tmp_path_factory.mktemp("worlds").resolve()
    for world, names in WORLDS.items():
        for name in names:
            (worlds / world / name).parent.mkdir(parents=True, exist_ok=True)
            (worlds / world / name).touch()
    git(worlds / "tracked/root", "init", "-q")
    time.sleep(STILL_NS / 1e9 + 0.1)
    for world in WORLDS:
        covered_in(worlds / world / "root")
    return worlds


def names(root: Path) -> tuple[set[str], set[str]]:
    """Secrets, and what others run."""
    covered = covered_in(root)
    secrets = {os.path.relpath(path, root) for path in covered.secrets}
    return secrets, {os.path.relpath(path, root) for path in covered.run_by_others}


def test_a_name_that_came_since_the_last_look_is_covered_at_the_next(worlds: Path) -> None:
    root = worlds / "came/root"
    assert names(root) == (set(), set())

    (root / ".env").touch()
    (root / "deep/er/conftest.py").touch()
    assert names(root) == ({".env"}, {"deep/er/conftest.py"})

    (root / "deep/.env").touch()
    (root / "Makefile").touch()
    assert names(root) == ({".env", "deep/.env"}, {"deep/er/conftest.py", "Makefile"})


def test_and_so_is_one_in_a_folder_that_is_new_or_was_moved_there(worlds: Path) -> None:
    root = worlds / "moved there/root"

    (root.parent / "beside").rename(root / "docs/brought")
    (root / "new/er").mkdir(parents=True)
    (root / "new/er/.env").touch()

    assert names(root) == ({"new/er/.env"}, {"docs/brought/Makefile"})


def test_one_that_has_gone_is_left_out(worlds: Path) -> None:
    root = worlds / "gone/root"
    assert names(root) == ({".env"}, {"Makefile"})

    (root / "Makefile").unlink()
    (root / ".env").rename(root / "settings")

    assert names(root) == (set(), set())


def test_a_time_that_somebody_set_hides_nothing(worlds: Path) -> None:
    root = worlds / "time/root"
    before = (root / "docs").stat()

    (root / "docs/Makefile").touch()
    os.utime(root / "docs", ns=(before.st_atime_ns, before.st_mtime_ns))

    assert names(root) == (set(), {"docs/Makefile"})


def test_a_folder_in_whose_place_another_one_came_is_looked_through(worlds: Path) -> None:
    root = worlds / "another/root"

    shutil.rmtree(root / "docs")
    (root.parent / "beside").rename(root / "docs")

    assert names(root) == ({"docs/.env"}, set())


def test_nothing_is_covered_through_a_link_in_a_folders_place(worlds: Path) -> None:
    root = worlds / "a link/root"
    assert names(root) == ({"docs/.env"}, set())

    (root / "docs").rename(root.parent / "docs")
    (root / "docs").symlink_to(root.parent / "docs")

    assert names(root) == (set(), set())


def test_what_counts_by_its_content_is_read_each_time(worlds: Path) -> None:
    key = worlds / "content/root/deep/server.pem"
    assert names(worlds / "content/root")[0] == set()

    key.write_text("-----BEGIN PRIVATE KEY-----\n")

    assert names(worlds / "content/root")[0] == {"deep/server.pem"}


def test_a_secret_that_git_begins_or_ceases_to_track_is_known_at_once(worlds: Path) -> None:
    root = worlds / "tracked/root"
    (root / "deep/server.pem").write_text("-----BEGIN PRIVATE KEY-----\n")
    assert names(root) == ({"deep/server.pem"}, {".git"})

    git(root, "add", "deep/server.pem")
    assert names(root) == (set(), {".git", "deep/server.pem"})

    git(root, "rm", "-q", "--cached", "deep/server.pem")
    assert names(root) == ({"deep/server.pem"}, {".git"})


def test_a_folder_is_read_again_when_it_has_changed_and_only_then(worlds: Path) -> None:
    """What was not read again is the same object."""
    root = worlds / "as it was/root"
    before = dict(sandbox_view._remembered[root])  # noqa: SLF001

    covered_in(root)
    assert all(sandbox_view._remembered[root][path] is read for path, read in before.items())  # noqa: SLF001

    (root / "deep/Makefile").touch()
    covered_in(root)
    again = {path for path, read in before.items() if sandbox_view._remembered[root][path] is not read}  # noqa: SLF001
    assert again == {str(root / "deep")}
