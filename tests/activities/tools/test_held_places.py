"""Where a command that runs unasked works, and what it sees from there: odd workspaces, repositories, programs."""

# ruff: noqa: ASYNC240, ASYNC221  the loop has nothing else to do

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from longhaul.activities.tool import Place
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_analysis import Confined
from tests.activities.corpora.stage import git
from tests.activities.tools.calls import RIPGREP, place_at
from tests.activities.tools.holding import PROVEN, SECRET, held, said

pytestmark = pytest.mark.usefixtures("bubblewrap")


@pytest.mark.parametrize(
    "name",
    ["with space", "ünïcode-✓", "quo'te\"s", "$(touch x)", "-dash", "new\nline", "back\\slash",
     b"\xff\xe9".decode(errors="surrogateescape"), "--ro-bind"],
)  # fmt: skip
@pytest.mark.parametrize("confined", ["read", "edit"])
async def test_odd_names_of_workspaces(name: str, confined: Confined, tmp_path: Path) -> None:
    root = tmp_path.resolve() / name / name
    root.mkdir(parents=True)
    (root / "file").write_text("as it was\n")

    output = await held(place_at(root), "cat file; echo x > file; cat file", confined)

    changed = "x" if confined == "edit" else "as it was"
    assert [line for line in str(output.output).splitlines() if line in ("as it was", "x")] == ["as it was", changed]


@pytest.mark.parametrize("parent", ["/tmp", "/home", "/var/lib", "/dev/shm", "/usr/src", "/srv"])
async def test_workspaces_in_odd_places(parent: str) -> None:
    if os.getuid() != 0 and not os.access(parent, os.W_OK):
        parent = "/tmp"
    root = Path(parent, f"longhaul-{os.getpid()}")
    root.mkdir(parents=True)
    try:
        (root / "file").write_text("here\n")
        place = place_at(root.resolve())
        assert await said(place, "cat file; pwd") == f"here\n{place.root}"
        assert await said(place, "echo there > file; cat file", "edit") == "there"
    finally:
        (root / "file").unlink()
        root.rmdir()


async def test_a_workspace_that_is_the_home_folder(home: Path) -> None:
    sandbox = replace(PROVEN, hidden=(home / ".local/share/longhaul",))

    seen = await said(place_at(home), f"grep -rl {SECRET} .; ls -A .local/share/longhaul; cat notes", sandbox=sandbox)

    assert seen == f"./notes\n{SECRET}"


async def test_a_workspace_in_the_data_directory_is_seen_alone(tmp_path: Path) -> None:
    data = tmp_path.resolve() / "data"
    for name in ("mine", "theirs"):
        (data / "workspaces" / name).mkdir(parents=True)

    seen = await said(
        place_at(data / "workspaces/mine"), f"ls {data}/workspaces", sandbox=replace(PROVEN, hidden=(data,))
    )

    assert seen == "mine"


@pytest.mark.parametrize("root", ["/", "/proc", "/sys/kernel", "/dev"])
async def test_where_the_workspace_leaves_nothing_to_hide_there_is_no_boundary(root: str) -> None:
    analysis = await Bash(sandbox=PROVEN).examine({"command": "ls"}, place_at(Path(root)))

    assert analysis.boundary == "none"
    assert analysis.no_boundary.startswith("the workspace ")


async def test_opened_folders_are_seen_and_edited_like_the_workspace(place: Place, tmp_path: Path) -> None:
    opened, link = tmp_path.resolve() / "opened", tmp_path.resolve() / "link"
    (opened / ".git").mkdir(parents=True)
    link.symlink_to(tmp_path)
    place = replace(place, opened=(opened, link, Path("/"), Path("missing"), tmp_path / "missing"))

    read = await said(place, f"echo x > {opened}/file; ls -A {opened}; ls {link}")
    edited = await said(place, f"echo x > {opened}/file; touch {opened}/.git/config; ls -A {opened}", "edit")

    assert "Read-only" in read
    assert f"cannot access '{link}'" in read
    assert edited.splitlines()[1:3] == [".git", "file"]
    assert (opened / "file").read_text() == "x\n"


async def test_a_command_may_stand_where_it_sees_nothing(place: Place, tmp_path: Path) -> None:
    there = tmp_path.resolve() / "there"
    there.mkdir()
    (there / "file").touch()

    output = await held(replace(place, cwd=there), "pwd; ls")

    assert (output.output, output.cwd) == (str(there), None)


async def test_a_linked_working_tree_sees_its_repository(place: Place, tmp_path: Path) -> None:
    main, tree = tmp_path.resolve() / "main", tmp_path.resolve() / "tree"
    main.mkdir()
    (main / "file").write_text("a\n")
    git(main, "init", "-q")
    git(main, "add", ".")
    git(main, "commit", "-qm", "first")
    git(main, "worktree", "add", "-q", str(tree))

    assert await said(place_at(tree), "git log --format=%s; git status --short") == "first"
    assert (await held(place_at(tree), f"ls {main}/file")).failed


async def test_a_folder_can_not_claim_a_repository_that_knows_nothing_of_it(place: Place, tmp_path: Path) -> None:
    theirs = tmp_path.resolve() / "theirs"
    (theirs / "worktrees/x").mkdir(parents=True)
    (theirs / "HEAD").write_text(SECRET)
    (theirs / "worktrees/x/gitdir").write_text(f"{theirs}/.git\n")
    (place.root / ".git").write_text(f"gitdir: {theirs}/worktrees/x\n")

    assert SECRET not in await said(place, f"cat {theirs}/HEAD")


@pytest.mark.parametrize(
    ("settings", "seen"),
    [("[core]\n\tquotepath = false\n", True), ('[url "https://ana:pw@example.org/"]\n', False)],
)
async def test_gits_own_settings_are_seen_unless_they_tell_a_secret(
    place: Place, home: Path, settings: str, seen: bool
) -> None:
    (home / ".gitconfig").write_text(settings)

    assert (settings.strip() in await said(place, "cat ~/.gitconfig")) is seen


async def test_programs_of_path_are_there_with_their_libraries_and_nothing_beside(
    place: Place, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tools/bin/greet", "tools/lib/words", "tools/private"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"#!/bin/sh\ncat {home}/tools/lib/words\n" if "bin" in name else "hello\n")
    (home / "tools/bin/greet").chmod(0o755)
    environment = home / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    monkeypatch.setenv("PATH", f"{home}/tools/bin:{environment}/bin:{home}:/usr/bin:/bin")

    seen = await said(place, "greet; python -c 'import sys; print(sys.prefix)'; ls -A ~ ~/tools")

    assert seen.splitlines()[:2] == ["hello", str(environment)]
    assert {"private", "notes", ".ssh"}.isdisjoint(seen.split())


@pytest.mark.parametrize("inside", [False, True])
async def test_ripgrep_is_there_from_an_environment_at_home_or_in_the_workspace(
    inside: bool, place: Place, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = (place.root if inside else home) / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    shutil.copy(RIPGREP, environment / "bin/rg")
    monkeypatch.setenv("PATH", f"{environment}/bin:/usr/bin:/bin")
    (place.root / "a.txt").write_text("marmalade\n")

    seen = await said(place, "command -v rg; rg -n marmalade a.txt; touch $(command -v rg)")

    assert seen.splitlines()[:2] == [f"{environment}/bin/rg", "1:marmalade"]
    assert inside or "Read-only file system" in seen


async def test_nothing_of_the_data_directory_is_brought_back_by_what_others_run_in_it(home: Path) -> None:
    other = home / ".local/share/longhaul/workspaces/other"
    other.mkdir(parents=True)
    for name in ("Makefile", "notes", ".env"):
        (other / name).write_text(SECRET)
    sandbox = replace(PROVEN, hidden=(home / ".local/share/longhaul",))

    seen = await said(
        place_at(home), f"cat {other}/*; touch {other}/new; mv .local there; ls -A {other}", "edit", sandbox
    )

    assert SECRET not in seen
    assert sorted(path.name for path in other.iterdir()) == [".env", "Makefile", "notes"]


async def test_what_others_run_is_held_below_an_opened_folder_that_holds_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path.resolve() / "data"
    place = replace(place_at(data / "workspaces/mine"), opened=(tmp_path.resolve(),))
    place.root.mkdir(parents=True)
    (place.root / "Makefile").write_text("as it was")

    await held(place, "echo evil > Makefile; touch new", "edit", replace(PROVEN, hidden=(data,)))

    assert (place.root / "Makefile").read_text() == "as it was"
    assert (place.root / "new").exists()


@pytest.mark.parametrize("command", ["mv deep moved; mkdir -p deep/bin", "mv deep/bin deep/b; mkdir deep/bin", "true"])
async def test_programs_of_the_workspace_stay_as_they_are_and_where_they_are(
    command: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = place.root / "deep/bin"
    for name in ("greet", "more/Makefile"):
        (programs / name).parent.mkdir(parents=True, exist_ok=True)
        (programs / name).write_text("as it was")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    await held(place, f"{command}; echo evil > deep/bin/greet; echo evil > deep/bin/more/new", "edit")

    files = {str(path.relative_to(place.root)): path.read_text() for path in place.root.rglob("*") if path.is_file()}
    assert files == {"deep/bin/greet": "as it was", "deep/bin/more/Makefile": "as it was"}


async def test_a_name_that_others_run_is_held_from_the_moment_that_it_is_there(place: Place) -> None:
    await held(place, "touch plain", "edit")
    (place.root / "Makefile").write_text("as it was")

    await held(place, "echo evil > Makefile", "edit")

    assert (place.root / "Makefile").read_text() == "as it was"
