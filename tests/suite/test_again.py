"""Which failures of the suite are tried once more."""

import json
from pathlib import Path

import pytest

from tests.suite.again import MOST, SECOND_RUN, broke_off, failed_tests, verdict
from tests.suite.reports import CAUSE

FEW = [f"tests/test_x.py::test_{number}" for number in range(MOST)]


@pytest.mark.parametrize(
    ("what", "codes", "failed", "expected"),
    [
        ("all passed", [0, 0], [], "passed"),
        ("one failed", [0, 1], FEW[:1], "again"),
        ("a few failed", [1, 1], FEW, "again"),
        ("many failed", [1, 0], [*FEW, "tests/test_y.py::test_more"], "failed"),
        ("nobody knows which", [1, 0], [], "failed"),
        ("a run was interrupted", [2, 1], FEW[:1], "failed"),
        ("pytest itself broke", [3, 0], FEW[:1], "whole"),
        ("pytest itself broke among the few", [1, 3], [], "whole"),
        ("there was nothing to run", [0, 5], [], "failed"),
    ],
)
def test_only_a_few_failures_of_runs_that_went_to_their_end_are_tried_again(
    what: str, codes: list[int], failed: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECOND_RUN, raising=False)
    assert verdict(codes, failed) == expected, what


def test_a_second_run_that_breaks_off_too_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECOND_RUN, raising=False)
    assert verdict([2, 0], FEW[:1], "nothing was heard") == "whole"

    monkeypatch.setenv(SECOND_RUN, "1")

    assert verdict([3, 0], FEW[:1]) == "failed"
    assert verdict([2, 0], FEW[:1], "nothing was heard") == "failed"


def test_why_pytest_broke_off_is_told_once(tmp_path: Path) -> None:
    (tmp_path / CAUSE).write_text("TypeError: of a plugin")

    assert broke_off(tmp_path) == "TypeError: of a plugin"
    assert broke_off(tmp_path) == ""


def test_what_failed_is_read_from_where_pytest_writes_it(tmp_path: Path) -> None:
    (tmp_path / "v/cache").mkdir(parents=True)
    (tmp_path / "v/cache/lastfailed").write_text(json.dumps({"b": True, "a": True}))

    assert failed_tests(tmp_path) == ["a", "b"]
    assert failed_tests(tmp_path / "none") == []
