"""Settings name stores of memories and of knowledge: files, or classes of the operator's."""

import re
from pathlib import Path

import pytest

from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.open_memories import open_knowledge, open_memories
from longhaul.stores.memories.sqlite_memories import SqliteMemories
from longhaul.stores.state.store import BadStoreSetting
from tests.workflows import own_memories


async def test_a_file_lies_in_the_data_directory_or_where_the_setting_says(tmp_path: Path) -> None:
    for setting, path in (("sqlite", "memory.db"), (f"sqlite://{tmp_path}/with%20space.db", "with space.db")):
        await open_memories(setting, tmp_path).record(MemoryOwner(None, "lamp"), [NewMemory("k", "A lamp.", "s")])

        assert (tmp_path / path).is_file()
    await open_knowledge("sqlite", tmp_path).put("harbour", "a", "d", [])
    assert (tmp_path / "knowledge.db").is_file()


def test_a_class_of_the_operators_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_memories.FOLDER, str(tmp_path))

    assert isinstance(open_memories("tests.workflows.own_memories:Stalling", tmp_path), SqliteMemories)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("redis://127.0.0.1", "memory: redis://… can't be used; set sqlite, sqlite:///PATH or module:Class"),
        ("sqlite://host/x.db", "memory: sqlite://… can't be used"),
        ("tests.workflows.own_memories:Nothing", "memory: the class 'tests.workflows.own_memories:Nothing' can't be"),
        ("pathlib:Path", "memory: pathlib:Path can't be used: it has no `async def record`"),
    ],
)
def test_a_setting_that_names_no_store_is_refused_with_a_sentence(tmp_path: Path, setting: str, why: str) -> None:
    with pytest.raises(BadStoreSetting, match=f"^{re.escape(why)}"):
        open_memories(setting, tmp_path)
