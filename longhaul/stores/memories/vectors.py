"""Vectors of texts: who makes them, how they are stored, and which ones are near to another.

Memories that are found by their vectors too. These stand in the same SQLite file; what has none yet, because their
model did not answer or was set later, is found by its words and gets one when it can.

Knowledge bases whose passages are found by their vectors too. A document is put in with all of the vectors that its
model makes, or not at all, and counts as another one when that model is another.
"""
# ruff: noqa: S608  As in sqlite_memories.

import json
import logging
import math
import sqlite3
from array import array
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from longhaul.stores.memories.memories import KnownDocument, Memory, MemoryOwner, NewMemory, Passage, TakenIn
from longhaul.stores.memories.sqlite_memories import (
    FIELDS,
    KNOWLEDGE_TABLES,
    MEMORY_TABLES,
    OF_OWNER,
    SqliteFile,
    SqliteKnowledge,
    SqliteMemories,
    put_in,
    read,
    whose,
)
from longhaul.stores.state.store import StoreError, StoreUnavailable

log = logging.getLogger(__name__)
Retrieval = Literal["hybrid", "vectors"]
MOST_NUMBERS = 16_384
"""Of one vector."""
READ_AT_ONCE = 64
"""Vectors: few enough for a processor's own memory, which halves the time."""
_EVENING = 60
"""How little the first places of a ranking weigh more than those behind them; what those who fuse rankings take."""

Found = TypeVar("Found", bound=Hashable)


class NoVectors(Exception):
    """The model of the embeddings can't be asked now, or its answer can't be used."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        """`refused`: for what was asked, as a text that is too long, so that it would be refused again."""
        super().__init__(why)
        self.refused = refused


class Embedder(Protocol):
    """Makes vectors of texts; those of different names are never compared."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One for each text, as `packed` makes them. Raises NoVectors within seconds."""
        ...

    async def close(self) -> None: ...


async def each_embedded(embedder: Embedder, texts: Sequence[str]) -> list[bytes | None]:
    """All together, or singly where one is refused: None for that one. Raises NoVectors where none can be made now."""
    try:
        return [*await embedder.embed(texts)]
    except NoVectors as error:
        if not error.refused:
            raise
        log.warning("texts that the model of the embeddings refuses are found only by their words: %s", error)
    return [await _one_embedded(embedder, text) for text in texts]


async def _one_embedded(embedder: Embedder, text: str) -> bytes | None:
    try:
        (vector,) = await embedder.embed([text])
    except NoVectors as error:
        if not error.refused:
            raise
        return None
    return vector


@dataclass(frozen=True, slots=True)
class Meaning:
    """How texts are found by what they mean."""

    embedder: Embedder
    retrieval: Retrieval = "hybrid"
    """By words too, or by vectors alone."""


def packed(numbers: Sequence[float]) -> bytes:
    """Of length one, as 32-bit numbers; empty for a vector without a direction, which is near to none. Raises NoVectors
    for what is no vector."""
    length = math.hypot(*numbers) if 0 < len(numbers) <= MOST_NUMBERS else math.nan
    if not math.isfinite(length):
        raise NoVectors("the model of the embeddings answered with what is no vector")
    return array("f", (number / length for number in numbers)).tobytes() if length else b""


def nearest(rows: sqlite3.Cursor, wanted: bytes, limit: int) -> list[int]:
    """Of rows `id, vector` the ids of those that are nearest, the nearest first; none that points another way."""
    import numpy as np  # noqa: PLC0415  only who has set embeddings waits for it

    towards = np.frombuffer(wanted, dtype=np.float32)
    best = list[tuple[float, int]]()
    for some in _batches(rows, len(wanted)):
        together = np.frombuffer(b"".join(vector for _, vector in some), dtype=np.float32)
        beside = together.reshape(len(some), -1) @ towards
        best += [(-float(near), number) for near, (number, _) in zip(beside, some, strict=True) if near > 0]
        best = sorted(best)[:limit]
    return [number for _, number in best]


def _batches(rows: sqlite3.Cursor, size: int) -> Iterator[list[tuple[int, bytes]]]:
    """Without those of another size: a server may have started to give others under the same name."""
    while read := rows.fetchmany(READ_AT_ONCE):
        if some := [row for row in read if len(row[1]) == size]:
            yield some


def fused(rankings: Sequence[Sequence[Found]], limit: int) -> list[Found]:
    """One ranking of several (reciprocal rank fusion): first what stands high in most of them."""
    scores = dict[Found, float]()
    for ranking in rankings:
        for place, each in enumerate(ranking, start=1):
            scores[each] = scores.get(each, 0.0) + 1 / (_EVENING + place)
    return sorted(scores, key=lambda each: -scores[each])[:limit]


MOST_AT_ONCE = 64
"""Texts of one question to the model of the embeddings."""
RANKED = 50
"""Memories of each ranking that are fused."""
_MEMORY_VECTORS = """
CREATE TABLE IF NOT EXISTS memory_vectors_1 (id INTEGER PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS memory_vectors_1_go AFTER DELETE ON memories_1
    BEGIN DELETE FROM memory_vectors_1 WHERE id = old.id; END;
"""


class VectorMemories:
    def __init__(self, path: Path, meaning: Meaning) -> None:
        self._file = SqliteFile(path, MEMORY_TABLES + _MEMORY_VECTORS)
        self._texts = SqliteMemories(path)
        self._embedder, self._by_words = meaning.embedder, meaning.retrieval == "hybrid"

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        """The text first: a model that does not answer must not cost a memory."""
        await self._texts.record(owner, new)
        try:
            await self._fill(owner)
        except (NoVectors, StoreError) as error:
            log.warning("memories are found only by their words for now: %s", error)

    async def retrieve(self, owner: MemoryOwner, query: str, limit: int, *, not_of: str = "") -> list[Memory]:
        try:
            (wanted,) = await self._embedder.embed([query])
        except NoVectors as error:
            log.warning("memories are searched only by words: %s", error)
            return await self._texts.retrieve(owner, query, limit, not_of=not_of)
        try:
            await self._fill(owner, works=True)
        except NoVectors as error:
            log.warning("the newest memories are found only by their words for now: %s", error)
        asked = {**whose(owner), "model": self._embedder.name, "not_of": not_of}
        near = await self._file.run(lambda connection: _near_memories(connection, asked, wanted, max(limit, RANKED)))
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


def _near_memories(
    connection: sqlite3.Connection, asked: dict[str, str | int | None], wanted: bytes, limit: int
) -> list[Memory]:
    which = f"{OF_OWNER} AND (:not_of = '' OR session != :not_of)"
    vectors = f"SELECT id, vector FROM memory_vectors_1 JOIN memories_1 USING (id) WHERE model = :model AND {which}"
    numbers = nearest(connection.execute(vectors, asked), wanted, limit) if wanted else []
    texts = f"SELECT {FIELDS} FROM memories_1 WHERE id = :id"
    return [memory for number in numbers for memory in read(connection, texts, {"id": number})]


_PASSAGE_VECTORS = """
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
        self._file = SqliteFile(path, KNOWLEDGE_TABLES + _PASSAGE_VECTORS)
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
            log.warning("passages are searched only by words: %s", error)
            return await self._texts.search(bases, query, limit)
        asked = {"model": self._embedder.name, "bases": json.dumps(list(bases))}
        near = await self._file.run(lambda connection: _near_passages(connection, asked, wanted, max(limit, RANKED)))
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


def _near_passages(connection: sqlite3.Connection, asked: dict[str, str], wanted: bytes, limit: int) -> list[Passage]:
    numbers = nearest(connection.execute(_VECTORS_OF, asked), wanted, limit) if wanted else []
    return [Passage(*row) for number in numbers for row in connection.execute(_PASSAGE, (number,))]
