"""Vectors of texts: who makes them, how they are stored, and which ones are near to another."""

import logging
import math
import sqlite3
from array import array
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

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
        log.warning("texts that the model of the embeddings refuses are found by their words alone: %s", error)
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
    """Without those of another size: a server may have begun to give others under the same name."""
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
