"""Long-term memories: short texts that outlive the session in which they were written down, each of one owner.

Knowledge bases: documents that an operator has put in, in passages, for agents whose settings name the base.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_CHARS = 4_000
"""Of one memory."""
MOST_OF_AN_OWNER = 10_000
"""The oldest go when there are more."""
MOST_FOUND = 50


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """Whose memories they are: nobody else is ever shown them."""

    user_id: str | None
    """None: those of sessions without a user."""
    agent: str | None
    """None is every agent of the user, where memories are listed or deleted."""


NOBODY = MemoryOwner(None, "")


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    agent: str
    session_id: str
    """Where it was written down."""
    text: str
    at: str
    """ISO 8601 in UTC."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What is to be written down."""

    key: str
    """The same memory for the same key of an owner: a second attempt writes it in place of the first."""
    text: str
    """At most MOST_CHARS; without secrets."""
    session_id: str


class Memories(Protocol):
    """The protocol of all stores of memories. Methods raise StoreUnavailable within seconds and never hang.

    A class of one's own is named `module:Class` in LONGHAUL_MEMORY, and called without arguments.
    """

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        """All of them or none, once for each key."""
        ...

    async def retrieve(self, owner: MemoryOwner, query: str, limit: int, *, not_of: str = "") -> list[Memory]:
        """Those of the owner that fit the query best, the best first; none of the session `not_of`."""
        ...

    async def list_memories(self, owner: MemoryOwner, limit: int) -> list[Memory]:
        """The newest first."""
        ...

    async def delete(self, owner: MemoryOwner, ids: Sequence[str] | None) -> int:
        """How many there were of these; `ids` of others count as none. None deletes all of the owner's."""
        ...

    async def close(self) -> None: ...


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
