"""The memories of a user, and the knowledge bases, from outside.

They are read where the settings say; a text is embedded here as a worker does it.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from longhaul.agent.plain.errors import LonghaulError
from longhaul.starter.connection.connect import Unreachable
from longhaul.starter.settings import Settings
from longhaul.stores.memories.memories import KnowledgeBases, KnownDocument, Memories, Memory, MemoryOwner, Passage
from longhaul.stores.memories.open_memories import open_knowledge, open_memories
from longhaul.stores.memories.vectors import Meaning


def meaning_of(settings: Settings, *, patient: bool = False) -> Meaning | None:
    """None where embeddings are off. `patient`: nobody waits for a reply. Raises BadSetup."""
    if not settings.embeddings:
        return None
    # What asks a model is loaded where one is asked.
    from longhaul.activities.models.embeddings import open_meaning  # noqa: PLC0415
    from longhaul.activities.models.profiles import read_key_places, read_profiles  # noqa: PLC0415
    from longhaul.activities.models.providers import Providers  # noqa: PLC0415

    providers = Providers(places=read_key_places(settings.model_keys), profiles=read_profiles(settings.models))
    return open_meaning(settings.embeddings, settings.retrieval, providers, str, patient=patient)


__all__ = ["KnowledgeOfWorkers", "MemoriesOfUser"]


class MemoriesOfUser:
    """The memories of one user. Get it as `app.memories_of(user)`. Each memory names its agent and session. `agent`:
    only memories that this agent has stored. All methods raise Unreachable."""

    def __init__(self, settings: Settings, user: str | None) -> None:
        self._settings = settings
        self._user = user

    async def listed(self, *, agent: str | None = None, limit: int = 50) -> list[Memory]:
        """Up to `limit` memories, the newest first."""
        async with self._opened() as memories:
            return await memories.list_memories(MemoryOwner(self._user, agent), limit)

    async def search(self, query: str, *, agent: str | None = None, limit: int = 5) -> list[Memory]:
        """The memories that an agent would find for `query`, the best first."""
        async with self._opened() as memories:
            return await memories.retrieve(MemoryOwner(self._user, agent), query, limit)

    async def delete(self, *ids: str) -> int:
        """Delete memories by id, and return how many were deleted. Memories of other users are not deleted."""
        async with self._opened() as memories:
            return await memories.delete(MemoryOwner(self._user, None), ids)

    async def delete_all(self, *, agent: str | None = None) -> int:
        async with self._opened() as memories:
            return await memories.delete(MemoryOwner(self._user, agent), None)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Memories]:
        with _reached("LONGHAUL_MEMORY"):
            meaning = meaning_of(self._settings)
            memories = open_memories(self._settings.memory, self._settings.data_dir, meaning)
            try:
                yield memories
            finally:
                await memories.close()


class KnowledgeOfWorkers:
    """The workers' knowledge bases. Get it as `app.knowledge`. Knowledge bases belong to no user. All methods raise
    Unreachable."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def listed(self, base: str | None = None) -> list[KnownDocument]:
        """The documents, sorted by base and name."""
        async with self._opened() as knowledge:
            return await knowledge.list_documents(base)

    async def search(self, bases: Sequence[str], query: str, *, limit: int = 5) -> list[Passage]:
        """The passages that an agent with these bases would find for `query`, the best first."""
        async with self._opened() as knowledge:
            return await knowledge.search(bases, query, limit)

    async def delete(self, base: str, *documents: str) -> int:
        """Delete documents by name, and return how many were deleted."""
        async with self._opened() as knowledge:
            return await knowledge.delete(base, documents)

    async def delete_all(self, base: str) -> int:
        async with self._opened() as knowledge:
            return await knowledge.delete(base, None)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[KnowledgeBases]:
        with _reached("LONGHAUL_KNOWLEDGE"):
            meaning = meaning_of(self._settings)
            knowledge = open_knowledge(self._settings.knowledge, self._settings.data_dir, meaning)
            try:
                yield knowledge
            finally:
                await knowledge.close()


@contextmanager
def _reached(variable: str) -> Iterator[None]:
    try:
        yield
    except LonghaulError as error:
        raise Unreachable(f"{error}; set {variable} as for the workers") from error
