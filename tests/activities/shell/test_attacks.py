"""Attacks that begin at the causes of earlier ones: what passes unasked runs, with no sandbox, and does no harm."""

import os
import shutil
from pathlib import Path

import pytest

from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.activities.shell.walk import examine_command
from longhaul.agent.values.permission import PermissionMode
from tests.activities.corpora import repositories
from tests.activities.corpora.attacks import EDITING, READING, Arena, attacked, passing
from tests.activities.corpora.fuzzing import run
from tests.activities.corpora.harness import picture
from tests.activities.corpora.stage import Line, Stage, corpus, git

LINES = corpus("attacks.txt")
FAMILIES = list(dict.fromkeys(line.family for line in LINES))
REPOSITORIES = list(repositories.hostile())
FILES = ("done", "zz", "HEAD", "interactive", "onto", "head-name", "git-rebase-todo", "end", "msgnum")
"""In the folder outside: names that git looks for in its own."""
SHARE = 60
"""One in so many is tried in each of three tests; all of them by `make chaos`."""
ALL = pytest.param(0, 1, marks=[pytest.mark.chaos, pytest.mark.timeout(3_600)])


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path.resolve() / "arena")


@pytest.mark.parametrize("modes", [READING, EDITING], ids=["reading", "editing"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_line_that_passes_does_no_harm(family: str, modes: tuple[PermissionMode, ...], arena: Arena) -> None:
    harmful = []

    for line in (line for line in LINES if line.family == family):
        text = arena.stage.text(line.text)
        if passing(text, arena.stage.root, modes) is not None and (harm := arena.harm(text, editing=modes is EDITING)):
            harmful.append((line.text, harm))

    assert harmful == []


@pytest.mark.parametrize(
    ("line", "harm"),
    [
        ("cat .env", "shows a secret"),
        ("cat ../outside/secret", "shows a secret"),
        ("echo x > f.new", "changes"),
        ("touch ../outside/new", "changes"),
        ("3/ls", "changes"),
    ],
)
def test_harm_would_be_seen(line: str, harm: str, arena: Arena) -> None:
    assert arena.harm(line, editing=False).startswith(harm)


def test_an_edit_of_the_workspace_is_no_harm_but_of_what_others_run(arena: Arena) -> None:
    assert arena.harm("echo x > f.new", editing=True) == ""
    assert arena.harm("echo x > Makefile", editing=True).endswith("Makefile")
    assert arena.harm("echo x > ../outside/new", editing=True).endswith("new")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain").resolve() / "root"
    repositories.plain(root)
    return root


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "world"


@pytest.mark.parametrize(("first", "share"), [*((first, SHARE) for first in (0, 20, 40)), ALL])
def test_git_that_passes_in_a_hostile_repository_does_no_harm(first: int, share: int, plain: Path, world: Path) -> None:
    harmful = []

    for hostile in REPOSITORIES[first::share]:
        shutil.rmtree(world, ignore_errors=True)
        _outside(world)
        shutil.copytree(plain, world / "root", symlinks=True)
        hostile.make(world / "root", world / "outside")
        harmful += [(hostile.name, line) for line in repositories.COMMANDS if _harms(line, world)]

    assert harmful == []


def _outside(world: Path) -> None:
    for name in ("canary", *(f"folder/{name}" for name in FILES)):
        (world / "outside" / name).parent.mkdir(parents=True, exist_ok=True)
        (world / "outside" / name).write_text(f"{repositories.CANARY}\n")
    (world / "home").mkdir()


def _harms(line: str, world: Path, *, unasked: bool = True) -> bool:
    if unasked and passing(line, world / "root", READING) is None:
        return False
    before = picture(world)
    printed = run(line, world / "root", hardened(scrubbed(os.environ)) | {"HOME": str(world / "home")})
    return repositories.CANARY.encode() in printed or picture(world) != before


HARMFUL = {
    "diff.external in its configuration": "git diff",
    "the index names ../outside/canar": "git grep quince",
    "branches/zz is a link to a file": "git remote get-url zz",
    "rebase-merge is a link to a folder": "git status",
    "a folder of the index is a link": "git grep quince",
}


@pytest.mark.parametrize("name", HARMFUL)
def test_such_a_repository_is_harmful_to_who_is_not_asked(name: str, plain: Path, world: Path) -> None:
    _outside(world)
    (world / "outside" / "canar").write_text(f"{repositories.CANARY}\n")
    shutil.copytree(plain, world / "root", symlinks=True)
    next(each for each in REPOSITORIES if each.name == name).make(world / "root", world / "outside")

    assert _harms(HARMFUL[name], world, unasked=False)
    assert not _harms(HARMFUL[name], world)


def test_the_corpora_are_large_and_new() -> None:
    older = {line.text for name in ("hostile.txt", "benign.txt", "edits.txt") for line in corpus(name)}

    assert len({line.text for line in LINES} - older) == len(LINES) >= 1_500
    assert len({hostile.name for hostile in REPOSITORIES}) == len(REPOSITORIES) >= 500


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return attacked(tmp_path_factory.mktemp("attacked"))


FOUND = [
    Line("a file of options", "strings @resp"),
    Line("a file of options", "strings -a @data.csv"),
    Line("a variable that a builtin sets", "printf 'abc%n' PATH; ls"),
    Line("a variable that a builtin sets", "printf -- '%5n' HOME"),
    Line("folders that no repository looks after", "git -C inner diff ../keys ../src"),
    Line("folders that no repository looks after", "git -C inner diff -- ../a ../docs"),
    Line("lines that are wrong", "git log --check"),
    Line("lines that are wrong", "git show --raw --check"),
]


@pytest.mark.parametrize("line", FOUND, ids=lambda line: line.text)
def test_what_was_found_asks(line: Line, stage: Stage) -> None:
    assert passing(line.text, stage.root, READING) is None


@pytest.mark.parametrize(
    "line",
    [
        "printf '%s\\n' abc", "printf '%-10s|%5.2f|%%|%d' a 1 2", "printf 'a%(%F)Tb' -1", "printf -- '%q' x",
        "printf x",
        "printf '%b' a", "git -C inner diff g", "git diff -- src", "git log -3", "git -C inner grep g",
    ],
)  # fmt: skip
def test_its_plain_neighbours_do_not(line: str, stage: Stage) -> None:
    assert passing(line, stage.root, READING) is not None


def test_a_comparison_without_a_repository_asks(tmp_path: Path) -> None:
    for name in ("one/.env", "other/x"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()

    assert not examine_command("git diff one other", tmp_path, tmp_path).read_only


def test_a_repository_as_git_makes_it_is_plain(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "branches").mkdir(exist_ok=True)

    assert examine_command("git status", tmp_path, tmp_path).read_only
