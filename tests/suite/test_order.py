"""Where processes share the tests, nothing slow is started last, and each file stays in one piece."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.suite.order import SLOW_FOLDER, slowest_first


class Named:
    """As much of a test as its place depends on."""

    def __init__(self, path: str, name: str, *marks: str) -> None:
        self.path, self.name, self._marks = Path(path), name, marks

    def iter_markers(self) -> list[pytest.Mark]:
        return [getattr(pytest.mark, mark).mark for mark in self._marks]


def ordered(*tests: Named) -> list[str]:
    items = list(tests)
    slowest_first(cast("list[pytest.Item]", items))
    return [f"{test.path.stem}.{test.name}" for test in items]


def test_files_with_a_slow_test_come_first_and_whole() -> None:
    found = ordered(
        Named("tests/oil.py", "lamp"),
        Named("tests/harbour.py", "mole"),
        Named("tests/harbour.py", "pier", "server"),
        Named(str(SLOW_FOLDER / "cli" / "quay.py"), "crane"),
    )

    assert found == ["harbour.mole", "harbour.pier", "quay.crane", "oil.lamp"]


def test_the_largest_file_comes_first() -> None:
    found = ordered(
        Named("tests/oil.py", "lamp"), Named("tests/wick.py", "trim", "timeout"), Named("tests/wick.py", "burn")
    )

    assert found == ["wick.trim", "wick.burn", "oil.lamp"]


def test_each_test_of_this_run_is_placed(request: pytest.FixtureRequest) -> None:
    items: Sequence[pytest.Item] = request.session.items
    here = [item for item in items if item.path == request.path]

    slowest_first(again := list(here))

    assert again == here
