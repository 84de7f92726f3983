"""A workspace of its own for each test."""

from pathlib import Path

import pytest

from longhaul.activities.tool import Place
from tests.activities.tools.calls import place_at
from tests.activities.tools.holding import SECRET


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path.resolve() / "workspace"
    root.mkdir()
    return place_at(root)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with secrets, beside the workspace."""
    folder = tmp_path.resolve() / "home"
    for name in (".ssh/id_rsa", ".netrc", ".aws/credentials", "notes", ".local/share/longhaul/blob"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)
    monkeypatch.setenv("HOME", str(folder))
    return folder
