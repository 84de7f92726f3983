"""No program is proven that a version manager chooses by files of the workspace, and no version but of the machine's
own programs: both are ways to run what a repository brings."""

import os
import sys
from pathlib import Path

import pytest

from longhaul.activities.shell.programs import VERSIONS
from longhaul.activities.shell.walk import examine_command

SYSTEM = "/usr/bin:/bin"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = (tmp_path / "root").resolve()
    (root / "evil" / "bin").mkdir(parents=True)
    (root / ".tool-versions").write_text(f"nodejs path:{root}/evil\n")
    (root / "f").write_text("x\n")
    return root


def _proven(line: str, root: Path) -> bool:
    return examine_command(line, root, root).read_only


def _shim(folder: Path, program: str, kind: str) -> None:
    """As asdf, pyenv, nodenv and jenv make them (`script`), or mise, volta and proto (their names)."""
    folder.mkdir(exist_ok=True)
    if kind == "script":
        (folder / program).write_text('#!/usr/bin/env bash\nexec asdf exec "$(basename "$0")" "$@"\n')
        (folder / program).chmod(0o755)
        return
    manager = folder.parent / kind
    if not manager.exists():
        manager.write_bytes(Path(os.path.realpath(sys.executable)).read_bytes()[:1000])
        manager.chmod(0o755)
    (folder / program).symlink_to(manager)


@pytest.mark.parametrize("kind", ["script", "mise", "rtx", "volta-shim", "proto-shim"])
@pytest.mark.parametrize("program", [*sorted(VERSIONS), "cat", "grep", "tree", "sha256sum"])
def test_what_a_version_manager_chooses_is_not_proven(
    program: str, kind: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _shim(tmp_path / "shims", program, kind)
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:{SYSTEM}")

    words = VERSIONS.get(program, frozenset({"f"}))
    lines = [f"{program} {word}" for word in words] + [f"{program} x f", f"nice {program} {min(words)} | head -1"]

    assert [line for line in lines if _proven(line, root)] == []


@pytest.mark.parametrize("line", ["sed -i s/x/y/ f", "mv f g", "touch g", "find . -name f | xargs cat", "cat f | sort"])
def test_nor_is_what_edits_or_is_fed(line: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("sed", "mv", "touch", "xargs", "sort"):
        _shim(tmp_path / "shims", program, "script")
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:{SYSTEM}")
    assert not examine_command(line, root, root).proven

    monkeypatch.setenv("PATH", SYSTEM)
    assert examine_command(line, root, root).proven


@pytest.mark.parametrize("program", ["sed", "bash", "find", "tar", "sort"])
def test_a_version_is_proven_of_the_machines_own_programs_alone(
    program: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", SYSTEM)
    assert _proven(f"{program} --version", root)

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / program).symlink_to(f"/usr/bin/{program}")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{SYSTEM}")
    assert not _proven(f"{program} --version", root)


@pytest.mark.parametrize("line", ["pip list", "pip show x", "pip freeze", "pip --version", "pip3 list", "pip3 -V"])
def test_pip_runs_what_is_installed_from_the_workspace(line: str, root: Path) -> None:
    assert not _proven(line, root)


def test_what_is_installed_in_a_folder_of_its_own_is_still_proven(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").symlink_to("/usr/bin/sort")  # as native as ripgrep in ~/.cargo/bin
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{SYSTEM}")

    assert _proven("rg x f", root)
