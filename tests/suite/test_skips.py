"""Where CI=true a test that is skipped fails, unless its reason is listed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.skips import LISTED

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.skip(reason="no compass here")
def test_marked(): ...

@pytest.fixture
def compass():
    pytest.skip("no compass here")

def test_set_up(compass): ...

def test_called():
    pytest.skip("no compass here")

def test_listed():
    pytest.skip("/proc is Linux's")

@pytest.mark.xfail(strict=True)
def test_expected_to_fail():
    raise ValueError
"""


@pytest.mark.parametrize(
    ("ci", "failed", "skipped"),
    [("true", {"marked", "set_up", "called"}, {"listed"}), ("", set(), {"marked", "set_up", "called", "listed"})],
)
def test_what_is_not_listed_fails_where_ci_is_true(
    ci: str, failed: set[str], skipped: set[str], tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)

    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.suite.skips",
            "-p",
            "no:schemathesis",
            "-v",
            "-c",
            os.devnull,
            "--rootdir",
            ".",
            "test_it.py",
        ],
        cwd=tmp_path,
        env=os.environ | {"CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    ends = set(re.findall(r"::test_(\w+) (PASSED|FAILED|ERROR|SKIPPED)", told.stdout))
    assert {name for name, end in ends if end in ("FAILED", "ERROR")} == failed
    assert {name for name, end in ends if end == "SKIPPED"} == skipped


def test_every_listed_reason_is_some_tests() -> None:
    others = {Path(__file__), ROOT / "tests" / "suite" / "skips.py"}
    said = "".join(path.read_text() for path in ROOT.glob("tests/**/*.py") if path not in others)

    assert [reason for reason in LISTED if reason not in said] == []
