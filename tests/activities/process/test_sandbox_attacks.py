"""Hostile lines and repositories in the sandbox: those that pass unasked, and those that don't, run as if they had."""

# ruff: noqa: ASYNC240  the loop has nothing else to do

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.agent.permission.call_analysis import Confined
from tests.activities.corpora import repositories
from tests.activities.corpora.attacks import EDITING, READING, passing
from tests.activities.corpora.confinement import EDIT, OUTSIDE, READ, Cell, run_held
from tests.activities.corpora.harness import listening, picture
from tests.activities.corpora.stage import Line, corpus

pytestmark = pytest.mark.usefixtures("bubblewrap")

LINES = [line for name in ("attacks.txt", "hostile.txt", "edits.txt", "benign.txt") for line in corpus(name)]
REPOSITORIES = list(repositories.hostile())
CHAOS = (pytest.mark.chaos, pytest.mark.timeout(7_200))
ALL = pytest.param(1, marks=CHAOS)
"""By `make chaos`; each run of the tests takes one in so many."""
RAN = b"cannot touch"
"""What a program of the stage or of a repository says in a sandbox: the folder of its marker is not there."""


@pytest.fixture
async def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cell]:
    async with listening() as listener:
        cell = Cell(tmp_path.resolve(), listener)
        monkeypatch.setenv("HOME", str(cell.stage.home))
        yield cell


async def _harmful(lines: list[Line], cell: Cell, confined: Confined) -> list[tuple[str, str]]:
    return [(line.text, harm) for line in lines if (harm := await cell.harm(line.text, confined))]


@pytest.mark.parametrize("confined", [READ, EDIT])
@pytest.mark.parametrize("share", [24, ALL])
async def test_a_line_that_passes_does_no_harm_in_its_sandbox(share: int, confined: Confined, cell: Cell) -> None:
    root, modes = cell.stage.root, READING if confined == READ else EDITING

    passed = [line for line in LINES[::share] if passing(cell.stage.text(line.text), root, modes) is not None]

    assert len(passed) >= 10
    assert await _harmful(passed, cell, confined) == []


@pytest.mark.parametrize("confined", [READ, EDIT])
@pytest.mark.parametrize("share", [400, ALL])
async def test_a_line_that_asks_does_no_harm_in_a_sandbox_either(share: int, confined: Confined, cell: Cell) -> None:
    assert await _harmful(LINES[::share], cell, confined) == []


@pytest.mark.parametrize(
    ("line", "confined", "harm"),
    [
        ("cat @OUT@/secret", "", "shows what lies outside"),
        ("touch @OUT@/new", "", "changes"),
        (": > /dev/tcp/127.0.0.1/@PORT@", "", "calls somebody"),
        ("echo x > x", "", "changes"),
        ("head -c 100000 /dev/zero; cat ~/.netrc", "", "shows what lies outside"),
    ],
)
async def test_harm_would_be_seen(line: str, confined: Confined, harm: str, cell: Cell) -> None:
    assert (await cell.harm(line, confined)).startswith(harm)
    assert await cell.harm(line, READ) == ""


async def test_an_edit_is_no_harm_but_of_what_others_run(cell: Cell) -> None:
    before = picture(cell.folder / "stage")

    assert await cell.harm("echo y > x; touch new; rm -r docs", EDIT) == ""
    assert picture(cell.folder / "stage") == before


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain").resolve() / "root"
    repositories.plain(root)
    return root


@pytest.mark.parametrize(("share", "asked"), [(900, True), pytest.param(1, False, marks=CHAOS)])
async def test_git_does_no_harm_in_a_hostile_repository(
    share: int, asked: bool, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a line of it that passes run a program that the repository names."""
    world, harmful = tmp_path.resolve() / "world", []
    root, outside, home = (world / name for name in ("root", "outside", "home"))
    monkeypatch.setenv("HOME", str(home))
    for hostile in REPOSITORIES[::share]:
        shutil.rmtree(world, ignore_errors=True)
        for name in ("canary", "folder/HEAD", "folder/done"):
            (outside / name).parent.mkdir(parents=True, exist_ok=True)
            (outside / name).write_bytes(OUTSIDE)
        home.mkdir()
        shutil.copytree(plain, root, symlinks=True)
        hostile.make(root, outside)
        before = picture(world)
        for line in repositories.COMMANDS:
            passes = passing(line, root, READING) is not None
            if passes or asked:
                printed = await run_held(line, root, home, READ)
                ran = passes and RAN in printed.start
                if printed.shows_outside or ran or picture(world) != before:
                    harmful.append((hostile.name, line))

    assert harmful == []


async def test_a_program_that_ran_would_be_seen(plain: Path, tmp_path: Path) -> None:
    root, outside = tmp_path.resolve() / "root", tmp_path.resolve() / "outside"
    shutil.copytree(plain, root, symlinks=True)
    outside.mkdir()
    next(each for each in REPOSITORIES if each.name == "diff.external in its configuration").make(root, outside)

    assert RAN in (await run_held("git diff", root, tmp_path, READ)).start
    assert passing("git diff", root, READING) is None
