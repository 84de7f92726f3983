"""git reads a repository unasked only as far as no part of it leads elsewhere or names what is run."""

import re
import subprocess
from pathlib import Path

import pytest

from longhaul.activities.shell.walk import examine_command
from longhaul.stores.worktrees.git import is_plain_config
from tests.activities.corpora.stage import git

MEETS = re.compile(
    r"command|cmd|program|process|external|textconv|editor|pager|path|file|worktree|include|helper|askpass|signature"
    r"|clean|smudge|driver|template|mailmap|promisor|uploadpack|receivepack|alternate|proxy|hook|fsmonitor|blob|format",
    re.IGNORECASE,
)
HARMLESS = {"core.fileMode", "core.hooksPath", "core.fsmonitor", "core.bigFileThreshold", "core.quotePath",
            "core.longpaths", "core.repositoryFormatVersion", "core.protectNTFS", "core.protectHFS",
            "status.showUntrackedFiles"}  # fmt: skip
NEVER = ("advice.", "color.", "gc.", "pack.")
"""Sections of words, colours and housekeeping: nothing that only reads asks them for a name."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = (tmp_path / "root").resolve()
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("main\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def _proven(line: str, root: Path) -> bool:
    return examine_command(line, root, root).read_only


def test_what_git_init_and_clone_write_is_plain(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(root), "copy")
    git(root, "config", "user.name", "ana")
    git(root, "remote", "add", "origin", "https://git.example.org/tea.git")

    assert all(_proven("git status && git diff && git log -p", folder) for folder in (root, tmp_path / "copy"))


def test_of_all_that_git_can_be_told_nothing_that_names_a_program_or_a_file_is_plain() -> None:
    known = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout.split()
    keys = {re.sub(r"<[^>]*>|\*", "x", key) for key in known if "." in key}
    suspicious = {key for key in keys if MEETS.search(key)} - HARMLESS - {k for k in keys if k.startswith(NEVER)}

    assert len(suspicious) > 120
    assert [key for key in sorted(suspicious) if is_plain_config(_written(key))] == []
    assert all(is_plain_config(_written(key)) for key in HARMLESS)


def _written(key: str) -> str:
    section, *name, last = key.split(".")
    head = f'[{section} "{".".join(name)}"]' if name else f"[{section}]"
    return f"{head}\n\t{last} = false\n"


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tbare = true\n", "[core] fsmonitor = x\n", "[core]\n\tbare = fal\\\nse\n",
        "[core.x]\n\tbare = false\n",
        '[core "x"]\n\tbare = false\n', "[include]\n\tpath = x\n", '[includeIf "gitdir:/"]\n\tpath = x\n',
        "bare = false\n",
        '[filter "x"]\n\tclean = ./evil\n', '[diff "x"]\n\ttextconv = ./evil\n', '[merge "x"]\n\tdriver = ./evil\n',
        "[core]\n\tbare = false\x0b[core]pager = x\n", "\ufeff[core]\n\tbare = false\n", "[unknown]\n\tx = y\n",
        "[format]\n\tpretty = %G?\n", "[alias]\n\tstatus = !evil\n", "[log]\n\tshowSignature = true\n", "]\n", "=\n",
    ],
)  # fmt: skip
def test_configuration_in_another_form_or_of_another_kind_is_not_plain(text: str) -> None:
    assert not is_plain_config(text)


@pytest.mark.parametrize(
    "name",
    ["HEAD", "config", "index", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags", "logs",
     "packed-refs", "info", "info/exclude", "info/attributes", "hooks", "logs/HEAD", "."],
)  # fmt: skip
def test_git_asks_where_a_part_of_the_repository_is_a_link(name: str, root: Path, tmp_path: Path) -> None:
    part = root / ".git" / name
    part.parent.mkdir(parents=True, exist_ok=True)
    if part.exists():
        part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")

    assert not _proven("git status", root)


@pytest.mark.parametrize(
    "name", ["commondir", "config.worktree", "modules/tea/config", "objects/info/alternates", "info/grafts", "gitdir"]
)
@pytest.mark.parametrize(
    "line", ["git status", "git diff --stat", "git log -1", "git -C src show", "cd src && git grep x"]
)
def test_git_asks_where_the_repository_leads_elsewhere(line: str, name: str, root: Path) -> None:
    before = _proven(line, root)
    part = root / ".git" / name
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text("../..\n")

    assert before
    assert not _proven(line, root)


@pytest.mark.parametrize("line", ["git status", "git diff", "git diff --stat", "git describe --always", "git log -1"])
def test_git_asks_where_there_is_a_submodule(line: str, root: Path) -> None:
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},tea")

    assert not _proven(line, root)


def test_git_asks_where_the_repository_is_kept_elsewhere(root: Path, tmp_path: Path) -> None:
    (root / ".git").rename(root / "kept")
    (root / ".git").write_text("gitdir: kept\n")

    assert not _proven("git status", root)


@pytest.mark.parametrize("up", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "line", ["git -C {} diff ../outside x", "git -C {} diff -- ../outside", "git -C {} grep x -- ../../outside",
             "git -C {} log -p ../outside", "git -C {} blame ../outside"],
)  # fmt: skip
def test_paths_of_git_begin_where_it_was_sent(line: str, up: int, root: Path) -> None:
    """As spelt they lie within the workspace when they are taken to begin where the shell is."""
    deep = root / "a" / "b" / "c" / "d" / "e"
    deep.mkdir(parents=True)
    folder = "/".join([".."] * up)
    start = "/".join(["a", "b", "c", "d", "e"][:up])

    analysis = examine_command(f"cd {start} && {line.format(folder)}", root, root)

    assert not analysis.read_only or any(not fact.inside for fact in analysis.paths)


@pytest.mark.parametrize("line", ["git show", "git diff", "git log -p", "git grep x", "git diff HEAD", "git show HEAD"])
def test_git_asks_before_it_shows_what_of_the_repository_lies_above_the_workspace(line: str, root: Path) -> None:
    analysis = examine_command(line, root / "src", root / "src")

    assert any(not fact.inside for fact in analysis.paths)
    assert all(fact.inside for fact in examine_command("git status -s", root / "src", root / "src").paths)


@pytest.mark.parametrize(
    "line", ["git show HEAD:a/../../x", "git cat-file -p HEAD:src/app.py", "git show HEAD:./app.py"]
)
def test_a_file_named_in_a_commit_is_a_read_of_its_path(line: str, root: Path) -> None:
    name = line.rpartition(":")[2]

    analysis = examine_command(f"cd src; {line}", root, root)

    wanted = {str((base / name).resolve()) for base in (root, root / "src")}
    assert wanted <= {fact.path for fact in analysis.paths}
