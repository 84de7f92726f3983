"""A workspace of its own for each test."""

from pathlib import Path

import pytest

from activities.tools.tool import Place
from tests.activities.tools.calls import place_at


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path.resolve() / "workspace"
    root.mkdir()
    return place_at(root)
