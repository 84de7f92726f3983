"""Memories that are found by their vectors too. These stand in the same SQLite file; what has none yet, because their
model did not answer or was set later, is found by its words and gets one when it can."""
# ruff: noqa: S608  As in sqlite_memories.

import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from longhaul.stores.memories.memories import Memory, MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_file import SqliteFile
from longhaul.stores.memories.sqlite_memories import FIELDS, OF_OWNER, TABLES, SqliteMemories, read, whose
from longhaul.stores.memories.vectors import Meaning, NoVectors, each_embedded, fused, nearest
from longhaul.stores.state.store import StoreError

MOST_AT_ONCE = 64
"""Texts of one question to the model of the embeddings."""
RANKED = 50
"""Memories of each ranking that are fused."""
_VECTORS = """
CREATE TABLE IF NOT EXISTS memory_vectors_1 (id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS memory_vectors_1_go AFTER DELETE ON memories_1
    BEGIN DELETE FROM memory_vectors_1 WHERE id = old.id; END;
"""
log = logging.getLogger(__name__)


class VectorMemories:
    def __init__(self, path: Path, meaning: Meaning) -> None:
        self._file = SqliteFile(path, TABLES + _VECTORS)
        self._texts = SqliteMemories(path)
        self._embedder, self._by_words = meaning.embedder, meaning.retrieval == "hybrid"

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        """The text first: a model that does not answer must not cost a memory."""
        await self._texts.record(owner, new)
        try:
            await self._fill(owner)
        except (NoVectors, StoreError) as error:
            log.warning("memories are found by their words alone for now: %s", error)

    async def retrieve(self, owner: MemoryOwner, query: str, limit: int, *, not_of: str = "") -> list[Memory]:
        try:
            (wanted,) = await self._embedder.embed([query])
        except NoVectors as error:
            log.warning("memories are looked for by words alone: %s", error)
            return await self._texts.retrieve(owner, query, limit, not_of=not_of)
        try:
            await self._fill(owner, works=True)
        except NoVectors as error:
            log.warning("the newest memories are found by their words alone for now: %s", error)
        asked = {**whose(owner), "model": self._embedder.name, "not_of": not_of}
        near = await self._file.run(lambda connection: _near(connection, asked, wanted, max(limit, RANKED)))
        if not self._by_words:
            return near[:limit]
        return fused([await self._texts.retrieve(owner, query, max(limit, RANKED), not_of=not_of), near], limit)

    async def list_memories(self, owner: MemoryOwner, limit: int) -> list[Memory]:
        return await self._texts.list_memories(owner, limit)

    async def delete(self, owner: MemoryOwner, ids: Sequence[str] | None) -> int:
        """With their vectors."""
        return await self._texts.delete(owner, ids)

    async def close(self) -> None:
        await self._embedder.close()

    async def _fill(self, owner: MemoryOwner, *, works: bool = False) -> None:
        """Make vectors for those of the owner that have none of this model, the newest first; not for all at once.

        `works`: the model has just made one of another text, so that what it refuses is the text's own fault.
        """
        asked = {**whose(owner), "model": self._embedder.name, "limit": MOST_AT_ONCE}
        bare = await self._file.run(lambda connection: connection.execute(_BARE, asked).fetchall())
        if not bare:
            return
        vectors = await self._vectors_of([text for _, text in bare], works=works)
        rows = [
            (number, self._embedder.name, each)
            for (number, _), each in zip(bare, vectors, strict=True)
            if each is not None
        ]
        await self._file.run(lambda connection: connection.executemany(_ADD, [(*row, row[0]) for row in rows]))

    async def _vectors_of(self, texts: Sequence[str], *, works: bool) -> list[bytes | None]:
        """Of one that is refused an empty vector, which is near to nothing and keeps it from being asked for again;
        None where nothing shows that the model takes any text now."""
        made = await each_embedded(self._embedder, texts)
        works = works or any(each is not None for each in made)
        return [b"" if each is None and works else each for each in made]


_BARE = (
    f"SELECT id, text FROM memories_1 WHERE {OF_OWNER} "
    "AND id NOT IN (SELECT id FROM memory_vectors_1 WHERE model = :model) ORDER BY id DESC LIMIT :limit"
)
_ADD = "INSERT OR REPLACE INTO memory_vectors_1 SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM memories_1 WHERE id = ?)"
"""A memory may have been deleted while the model was asked."""


def _near(
    connection: sqlite3.Connection, asked: dict[str, str | int | None], wanted: bytes, limit: int
) -> list[Memory]:
    which = f"{OF_OWNER} AND (:not_of = '' OR session != :not_of)"
    vectors = f"SELECT id, vector FROM memory_vectors_1 JOIN memories_1 USING (id) WHERE model = :model AND {which}"
    numbers = nearest(connection.execute(vectors, asked), wanted, limit) if wanted else []
    texts = f"SELECT {FIELDS} FROM memories_1 WHERE id = :id"
    return [memory for number in numbers for memory in read(connection, texts, {"id": number})]
