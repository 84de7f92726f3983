"""Which `rg` Grep runs, in interpreters that have one of their own, one on PATH, both or none."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.activities.tools.calls import RIPGREP

ASK = """
import json
from longhaul.activities.tools.registry import default_tools
from longhaul.activities.process.program_run import find_ripgrep
from longhaul.starter.cli.doctor.local_checks import ripgrep
check = ripgrep()
print(json.dumps([find_ripgrep(), [tool.name for tool in default_tools()], check.ok, check.detail]))
"""


def test_the_tests_have_the_one_that_is_installed_with_longhaul() -> None:
    assert Path(RIPGREP) == Path(sys.executable).parent / "rg"


@pytest.mark.parametrize(("own", "on_path"), [(True, True), (True, False), (False, True), (False, False)])
def test_its_own_comes_first_then_paths_and_without_either_there_is_no_grep(
    own: bool, on_path: bool, tmp_path: Path
) -> None:
    environment, elsewhere = tmp_path / "venv", tmp_path / "programs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    elsewhere.mkdir()
    for folder in [environment / "bin"] * own + [elsewhere] * on_path:
        shutil.copy(RIPGREP, folder / "rg")

    told = subprocess.run(
        [environment / "bin/python", "-c", ASK],
        env=os.environ | {"PATH": str(elsewhere), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found, tools, ok, detail = json.loads(told.stdout)

    wanted = str((environment / "bin" if own else elsewhere) / "rg") if own or on_path else None
    assert found == wanted
    assert [name for name in tools if name in ("Grep", "Glob")] == (["Grep", "Glob"] if wanted else ["Glob"])
    assert ok is (wanted is not None)
    assert detail.startswith(f"{wanted}: ripgrep 1" if wanted else "not found: workers here lack the tool Grep")
