"""The store that docs/agents/memory.md shows can be used as it stands there."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longhaul import MemoryOwner, NewMemory
from longhaul.stores.memories.open_memories import open_memories

PAGE = (Path(__file__).parents[2] / "docs" / "agents" / "memory.md").read_text(encoding="utf-8")


async def test_the_store_of_the_page_keeps_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"(?s)```python\n(.*?)```", PAGE)
    notebook: Any = ModuleType("notebook_of_the_page")
    exec(code, vars(notebook))  # noqa: S102  it is our own page
    monkeypatch.setitem(sys.modules, "notebook_of_the_page", notebook)
    monkeypatch.setattr(notebook, "__spec__", "here", raising=False)
    kept = open_memories("notebook_of_the_page:Notebook", tmp_path)
    ana, ben = MemoryOwner("ana", "lamp"), MemoryOwner("ben", "lamp")

    for _ in range(2):
        await kept.record(ana, [NewMemory("k", "A lamp.", "s1")])

    assert [each.text for each in await kept.retrieve(ana, "lamp", 5)] == ["A lamp."]
    assert await kept.retrieve(ana, "lamp", 5, not_of="s1") == []
    assert await kept.delete(ben, None) == 0
    assert await kept.delete(ana, ["k"]) == 1
