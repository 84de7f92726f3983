"""Knowledge bases whose passages are found by their vectors too. A document is put in with all of the vectors that its
model makes, or not at all, and counts as another one when that model is another."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from longhaul.stores.memories.knowledge import KnownDocument, Passage, TakenIn
from longhaul.stores.memories.sqlite_file import SqliteFile
from longhaul.stores.memories.sqlite_knowledge import TABLES, SqliteKnowledge, put_in
from longhaul.stores.memories.vector_memories import MOST_AT_ONCE, RANKED, log
from longhaul.stores.memories.vectors import Meaning, NoVectors, each_embedded, fused, nearest
from longhaul.stores.state.store import StoreUnavailable

_VECTORS = """
CREATE TABLE IF NOT EXISTS passage_vectors_1 (id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS passage_vectors_1_go AFTER DELETE ON passages_1
    BEGIN DELETE FROM passage_vectors_1 WHERE id = old.id; END;
"""
_PASSAGES = (
    "SELECT passages_1.id FROM passages_1 JOIN documents_1 ON documents_1.id = passages_1.document "
    "WHERE base = ? AND name = ? ORDER BY passages_1.id"
)
_VECTORS_OF = (
    "SELECT passage_vectors_1.id, vector FROM passage_vectors_1 JOIN passages_1 USING (id) "
    "JOIN documents_1 ON documents_1.id = passages_1.document "
    "WHERE model = :model AND base IN (SELECT value FROM json_each(:bases))"
)
_PLAIN = "water"
"""What every model of embeddings takes that takes any text."""
_PASSAGE = (
    "SELECT base, documents_1.name, text FROM passages_1 JOIN documents_1 ON documents_1.id = passages_1.document "
    "WHERE passages_1.id = ?"
)


class VectorKnowledge:
    def __init__(self, path: Path, meaning: Meaning) -> None:
        self._file = SqliteFile(path, TABLES + _VECTORS)
        self._texts = SqliteKnowledge(path)
        self._embedder, self._by_words = meaning.embedder, meaning.retrieval == "hybrid"

    async def put(self, base: str, document: str, digest: str, passages: Sequence[str]) -> TakenIn:
        """Raises StoreUnavailable also where the model does not answer: nothing has changed then."""
        with_model = f"{digest} {self._embedder.name}"
        if await self._texts.has(base, document, with_model):
            return TakenIn(new=False)
        try:
            vectors = await self._vectors_of(passages)
        except NoVectors as error:
            raise StoreUnavailable(str(error)) from error
        stamp = (with_model, datetime.now(UTC).isoformat(timespec="seconds"))

        def work(connection: sqlite3.Connection) -> bool:
            added = put_in(connection, base, document, stamp, passages)
            numbers = [row[0] for row in connection.execute(_PASSAGES, (base, document))] if added else []
            made = zip(numbers, vectors, strict=False)
            rows = [(number, self._embedder.name, each) for number, each in made if each is not None]
            connection.executemany("INSERT OR REPLACE INTO passage_vectors_1 VALUES (?, ?, ?)", rows)
            return added

        refused = tuple(at for at, each in enumerate(vectors) if each is None)
        return TakenIn(await self._file.run(work), refused)

    async def _vectors_of(self, passages: Sequence[str]) -> list[bytes | None]:
        """None for a passage that the model refuses; where it refuses every text, it raises NoVectors."""
        made = list[bytes | None]()
        for at in range(0, len(passages), MOST_AT_ONCE):
            made += await each_embedded(self._embedder, passages[at : at + MOST_AT_ONCE])
        if made and all(each is None for each in made):
            await self._embedder.embed([_PLAIN])
        return made

    async def search(self, bases: Sequence[str], query: str, limit: int) -> list[Passage]:
        try:
            (wanted,) = await self._embedder.embed([query])
        except NoVectors as error:
            log.warning("passages are looked for by words alone: %s", error)
            return await self._texts.search(bases, query, limit)
        asked = {"model": self._embedder.name, "bases": json.dumps(list(bases))}
        near = await self._file.run(lambda connection: _near(connection, asked, wanted, max(limit, RANKED)))
        if not self._by_words:
            return near[:limit]
        return fused([await self._texts.search(bases, query, max(limit, RANKED)), near], limit)

    async def bases(self) -> list[str]:
        return await self._texts.bases()

    async def list_documents(self, base: str | None) -> list[KnownDocument]:
        """Of one whose vectors are another model's, or missing, the digest is none that a file has."""
        found = await self._texts.list_documents(base)
        return [replace(each, digest=each.digest.removesuffix(f" {self._embedder.name}")) for each in found]

    async def delete(self, base: str, documents: Sequence[str] | None) -> int:
        """With their vectors."""
        return await self._texts.delete(base, documents)

    async def close(self) -> None:
        await self._embedder.close()


def _near(connection: sqlite3.Connection, asked: dict[str, str], wanted: bytes, limit: int) -> list[Passage]:
    numbers = nearest(connection.execute(_VECTORS_OF, asked), wanted, limit) if wanted else []
    return [Passage(*row) for number in numbers for row in connection.execute(_PASSAGE, (number,))]
