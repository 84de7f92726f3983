"""Knowledge bases in a SQLite file: documents in passages, each base for itself."""

from pathlib import Path

import pytest

from longhaul.stores.memories.memories import Passage
from longhaul.stores.memories.sqlite_memories import SqliteKnowledge


@pytest.fixture
def knowledge(tmp_path: Path) -> SqliteKnowledge:
    return SqliteKnowledge(tmp_path / "knowledge.db")


async def test_passages_are_found_in_the_bases_that_were_named(knowledge: SqliteKnowledge) -> None:
    await knowledge.put("harbour", "tides.md", "d1", ["High water is at six.", "Low water is at noon."])
    await knowledge.put("kitchen", "soup.md", "d2", ["Boil the water."])

    assert await knowledge.search(["harbour"], "When is low water?", 5) == [
        Passage("harbour", "tides.md", "Low water is at noon."),
        Passage("harbour", "tides.md", "High water is at six."),
    ]
    assert [each.base for each in await knowledge.search(["kitchen", "harbour"], "water", 1)] == ["kitchen"]
    assert await knowledge.search([], "water", 5) == []
    assert await knowledge.bases() == ["harbour", "kitchen"]


async def test_a_document_is_found_by_its_name_too(knowledge: SqliteKnowledge) -> None:
    await knowledge.put("harbour", "tides.md", "d1", ["Six and noon."])

    assert [each.text for each in await knowledge.search(["harbour"], "the tides", 5)] == ["Six and noon."]


async def test_a_document_stands_as_it_was_put_in_last(knowledge: SqliteKnowledge) -> None:
    assert (await knowledge.put("harbour", "tides.md", "d1", ["High water at six.", "More water."])).new
    assert not (await knowledge.put("harbour", "tides.md", "d1", ["never looked at"])).new
    assert (await knowledge.put("harbour", "tides.md", "d2", ["High water at seven."])).new

    assert [each.text for each in await knowledge.search(["harbour"], "water six", 5)] == ["High water at seven."]
    (document,) = await knowledge.list_documents("harbour")
    assert (document.name, document.passages) == ("tides.md", 1)


async def test_what_is_taken_out_is_found_no_more(knowledge: SqliteKnowledge) -> None:
    for name in ("tides.md", "ferries.md"):
        await knowledge.put("harbour", name, name, ["Water."])
    await knowledge.put("kitchen", "tides.md", "d", ["Water."])

    assert await knowledge.delete("harbour", ["tides.md", "other.md"]) == 1
    assert [each.name for each in await knowledge.list_documents(None)] == ["ferries.md", "tides.md"]
    assert await knowledge.delete("harbour", None) == 1
    assert [each.base for each in await knowledge.search(["harbour", "kitchen"], "water", 5)] == ["kitchen"]
