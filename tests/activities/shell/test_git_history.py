"""Secrets that stand in commits alone: what would print them asks, and plain looks at the same repository do not."""

import json
from pathlib import Path

import pytest

from longhaul.activities.shell import git_repositories
from longhaul.activities.shell.git_repositories import secrets_in_commits
from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext
from tests.activities.corpora.harness import run
from tests.activities.corpora.stage import SECRET, Stage, git

BASH = ToolDescriptor(name="Bash")
PRINTING = """\
git show once
git show once~0
git show --pretty=%B once
git show once -- dropped
git show once:dropped/.env
git log -p once
git log -p -- dropped
git log -p --all
git log -p --reverse --follow dropped/.env
git log --branches -u
git log -L1,1:dropped/.env once
git diff once
git diff once HEAD
git diff HEAD once -- dropped
git diff HEAD..once
git diff HEAD..once --
git diff once -- .
git diff -R --cached once
git diff --cached
git diff --staged
git diff -R --cached
git status -v
git status -vv
git status --verbose
git -C src status -v
git grep marmalade once
git grep marmalade once -- dropped
git grep -e marmalade once
git diff-tree -p once
git cat-file -p once:dropped/.env
git whatchanged -p once
git stash show
git stash show -p
git stash list -p
git reflog show -p
git -C src show once
cd src && git show once
""".splitlines()
PLAIN = """\
git status
git log --oneline
git log --all --stat
git diff
git diff README.md
git diff -- src
git show -s once
git show --stat once
git show HEAD:README.md
git show once -- src
git log -p -- src
git grep title
git grep -n title -- README.md
git blame README.md
git stash list
git stash show --stat
git branch -a
""".splitlines()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A repository that has nothing secret among its files: one file is on a branch, one was staged and is deleted, one
    was stashed."""
    folder = tmp_path_factory.mktemp("history").resolve()
    root = folder / "workspace"
    for name in ("workspace/src", "home", "outside"):
        (folder / name).mkdir(parents=True)
    (root / "README.md").write_text("# title\n")
    (root / "src" / "app.py").write_text("main = 0\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "switch", "-qc", "once")
    _put(root, "dropped/.env")
    git(root, "commit", "-qm", "second")
    git(root, "switch", "-q", "main")
    _put(root, "stashed/.env")
    git(root, "stash")
    _put(root, "staged/id_rsa")
    git(root, "commit", "-qm", "third")
    git(root, "rm", "-q", "--cached", "staged/id_rsa")
    (root / "staged" / "id_rsa").unlink()
    (root / "README.md").write_text("# title, changed\n")
    return Stage(root, folder / "home", folder / "outside")


def _put(root: Path, name: str) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(f"TOKEN={SECRET}\n")
    git(root, "add", "--", name)


def _decided(line: str, root: Path) -> Behavior:
    analysis = examine_command(line, root, root)
    return decide_call(BASH, json.dumps({"command": line}), analysis, PermissionContext(), str(root)).behavior


@pytest.mark.parametrize("line", PRINTING)
def test_what_prints_old_secrets_asks(line: str, stage: Stage) -> None:
    assert _decided(line, stage.root) is Behavior.ASK


async def test_these_lines_do_print_them(stage: Stage) -> None:
    """Of lines that print nothing the test above would say nothing."""
    root = stage.root
    printing = [line for line in PRINTING if SECRET in await run(line, stage, examine_command(line, root, root))]

    assert len(printing) >= 25, set(PRINTING) - set(printing)
    assert {"git show once", "git status -v", "git diff --cached", "git stash show -p"} <= set(printing)


@pytest.mark.parametrize("line", PLAIN)
async def test_plain_looks_pass_and_print_none(line: str, stage: Stage) -> None:
    assert _decided(line, stage.root) is Behavior.ALLOW
    assert SECRET not in await run(line, stage, examine_command(line, stage.root, stage.root))


def test_a_new_commit_is_seen_at_once(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").touch()
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "first")
    before = secrets_in_commits(tmp_path, tmp_path / ".git")
    _put(tmp_path, "deep/.env")
    git(tmp_path, "commit", "-qm", "second")
    git(tmp_path, "rm", "-q", "deep/.env")
    git(tmp_path, "commit", "-qm", "third")
    git(tmp_path, "pack-refs", "--all")

    assert (before, secrets_in_commits(tmp_path, tmp_path / ".git")) == ((), ("deep/.env",))


def test_what_an_amended_commit_held_is_seen(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    _put(tmp_path, ".env")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "rm", "-q", "--cached", ".env")
    git(tmp_path, "commit", "-q", "--amend", "--allow-empty", "-m", "first again")

    assert secrets_in_commits(tmp_path, tmp_path / ".git") == (".env",)


def test_a_history_that_takes_too_long_asks(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_repositories, "SECONDS", 0.0)
    git_repositories._remembered.clear()  # noqa: SLF001  what is known already takes no time

    assert _decided("git show HEAD -- src", stage.root) is Behavior.ASK


def test_a_repository_that_git_can_not_read_asks(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "refs" / "heads" / "main").write_text("no hash\n")

    assert _decided("git show", tmp_path) is Behavior.ASK
