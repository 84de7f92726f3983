"""Knowledge bases: documents that an operator has put in, in passages, for agents whose settings name the base."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_PASSAGES_OF_A_DOCUMENT = 10_000


@dataclass(frozen=True, slots=True)
class Passage:
    base: str
    document: str
    text: str


@dataclass(frozen=True, slots=True)
class KnownDocument:
    base: str
    name: str
    passages: int
    at: str
    """When it was put in: ISO 8601 in UTC."""
    digest: str = ""
    """As it was put in with, which `longhaul knowledge add` knows a file by, and its place. Empty: not told."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What came of putting a document in."""

    new: bool = True
    """False: it was there already with this digest, and stays."""
    by_words_alone: tuple[int, ...] = ()
    """Passages, counted from 0, that the model of the embeddings refuses: they are found by their words."""


class KnowledgeBases(Protocol):
    """The protocol of all stores of knowledge. Methods raise StoreUnavailable within seconds and never hang.

    A class of one's own is named `module:Class` in LONGHAUL_KNOWLEDGE, and called without arguments.
    """

    async def put(self, base: str, document: str, digest: str, passages: Sequence[str]) -> TakenIn:
        """In place of what the document was before."""
        ...

    async def search(self, bases: Sequence[str], query: str, limit: int) -> list[Passage]:
        """Those that fit the query best, the best first."""
        ...

    async def bases(self) -> list[str]:
        """The names of those that have a document, in order."""
        ...

    async def list_documents(self, base: str | None) -> list[KnownDocument]:
        """By base and name."""
        ...

    async def delete(self, base: str, documents: Sequence[str] | None) -> int:
        """How many there were of these. None deletes the base."""
        ...

    async def close(self) -> None: ...
