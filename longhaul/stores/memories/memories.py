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
    """Whose memories they are. Nobody else ever sees them."""

    user_id: str | None
    """None: memories of sessions without a user."""
    agent: str | None
    """When memories are listed or deleted, None means every agent of the user."""


NOBODY = MemoryOwner(None, "")


@dataclass(frozen=True, slots=True)
class Memory:
    id: str
    agent: str
    session_id: str
    """Session in which the memory was stored."""
    text: str
    at: str
    """ISO 8601 time in UTC."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to store."""

    key: str
    """Key of the memory. A second attempt with the same key of an owner replaces the memory."""
    text: str
    """At most MOST_CHARS characters, without secrets."""
    session_id: str


class Memories(Protocol):
    """The protocol of all stores of memories. Methods raise StoreUnavailable within seconds and never hang. To use your
    own class, name it as `module:Class` in LONGHAUL_MEMORY; Longhaul calls it without arguments."""

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        """Store all of them or none, once for each key."""
        ...

    async def retrieve(self, owner: MemoryOwner, query: str, limit: int, *, not_of: str = "") -> list[Memory]:
        """The owner's memories that fit the query best, the best first; none from the session `not_of`."""
        ...

    async def list_memories(self, owner: MemoryOwner, limit: int) -> list[Memory]:
        """The owner's memories, the newest first."""
        ...

    async def delete(self, owner: MemoryOwner, ids: Sequence[str] | None) -> int:
        """Delete memories by id, and return how many were deleted; ids of other owners do not count. None deletes all
        of the owner's."""
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
    """ISO 8601 time in UTC at which the document was put in."""
    digest: str = ""
    """Digest of the file with its place, by which `longhaul knowledge add` recognizes it. Empty: not given."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """The result of putting a document in."""

    new: bool = True
    """False: the document was there already with this digest, and stays."""
    by_words_alone: tuple[int, ...] = ()
    """Passages, counted from 0, that the embedding model refuses. They are found only by their words."""


class KnowledgeBases(Protocol):
    """The protocol of all stores of knowledge bases. Methods raise StoreUnavailable within seconds and never hang. To
    use your own class, name it as `module:Class` in LONGHAUL_KNOWLEDGE; Longhaul calls it without arguments."""

    async def put(self, base: str, document: str, digest: str, passages: Sequence[str]) -> TakenIn:
        """Put a document in. It replaces the document's earlier passages."""
        ...

    async def search(self, bases: Sequence[str], query: str, limit: int) -> list[Passage]:
        """The passages that fit the query best, the best first."""
        ...

    async def bases(self) -> list[str]:
        """Names of the bases that have a document, sorted."""
        ...

    async def list_documents(self, base: str | None) -> list[KnownDocument]:
        """Documents of one base or of all, sorted by base and name."""
        ...

    async def delete(self, base: str, documents: Sequence[str] | None) -> int:
        """Delete documents by name, and return how many were deleted. None deletes the base."""
        ...

    async def close(self) -> None: ...
