"""Memories and knowledge by the Python client: each user's own, with their source."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from longhaul.starter.client.client import Longhaul
from longhaul.starter.connection.connect import Unreachable
from longhaul.starter.settings import Settings
from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_memories import SqliteKnowledge, SqliteMemories


@pytest.fixture
def app(tmp_path: Path) -> Longhaul:
    # Nothing here asks the server.
    return Longhaul(Mock(), Settings(data_dir=tmp_path))


async def remember(folder: Path) -> None:
    kept = SqliteMemories(folder / "memory.db")
    for user, agent, text in (
        ("ana", "lamp", "The boat is named Grauwal."),
        ("ana", "plumber", "The tap drips."),
        ("ben", "lamp", "The boat of Ben is named Heron."),
        (None, "lamp", "A boat lies here."),
    ):
        await kept.record(MemoryOwner(user, agent), [NewMemory(text, text, f"{user}-night")])


@pytest.mark.proves("C11")
async def test_a_users_memories_are_shown_with_their_source_and_deleted(app: Longhaul, tmp_path: Path) -> None:
    await remember(tmp_path)
    ana, ben = app.memories_of("ana"), app.memories_of("ben")
    (boat,) = await ana.search("boat")
    (theirs,) = await ben.listed()

    assert (boat.agent, boat.session_id, boat.text) == ("lamp", "ana-night", "The boat is named Grauwal.")
    assert [each.text for each in await ana.listed()] == ["The tap drips.", "The boat is named Grauwal."]
    assert [each.agent for each in await ana.listed(agent="plumber")] == ["plumber"]
    assert await ana.search("boat", agent="plumber") == []
    assert await ana.delete(boat.id, theirs.id, "4711") == 1
    assert await ana.delete_all(agent="plumber") == 1
    assert await ana.listed() == []
    assert len(await ben.listed()) == len(await app.memories_of(None).listed()) == 1


async def test_documents_are_listed_searched_and_taken_out(app: Longhaul, tmp_path: Path) -> None:
    bases = SqliteKnowledge(tmp_path / "knowledge.db")
    await bases.put("harbour", "tides.md", "d1", ["High water is at six."])
    await bases.put("harbour", "fees.md", "d2", ["Water costs nothing."])
    await bases.put("kitchen", "soup.md", "d3", ["Boil the water."])

    (found,) = await app.knowledge.search(["harbour"], "high")

    assert (found.base, found.document, found.text) == ("harbour", "tides.md", "High water is at six.")
    assert [each.name for each in await app.knowledge.listed("harbour")] == ["fees.md", "tides.md"]
    assert await app.knowledge.delete("harbour", "fees.md", "soup.md") == 1
    assert await app.knowledge.delete_all("kitchen") == 1
    assert [each.name for each in await app.knowledge.listed()] == ["tides.md"]


async def test_a_store_that_can_not_be_read_is_told_with_its_setting(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("no database at all" * 100)
    app = Longhaul(Mock(), Settings(data_dir=tmp_path, knowledge="redis://cache"))

    with pytest.raises(Unreachable, match="not a database; set LONGHAUL_MEMORY as for the workers"):
        await app.memories_of("ana").listed()
    with pytest.raises(Unreachable, match="redis://… can't be used"):
        await app.knowledge.listed()
