"""Requests about what outlives sessions, with their rows in the table of routes: memories, each caller's own, and
knowledge bases, which are the operator's.
"""

from pydantic import BaseModel, ConfigDict

from longhaul.starter.client.memories import MemoriesOfUser
from longhaul.starter.serve.request_bodies import Discarding, Forgetting, Looking, Nothing, Remembering, Shelf, Whose
from longhaul.starter.serve.requests import Call, Operation, user_meant


class MemoryRow(BaseModel):
    """One memory, and where it comes from."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    agent: str
    session_id: str
    """Where it was written down."""
    text: str
    at: str
    """ISO 8601 in UTC."""


class MemoryRows(BaseModel):
    """The newest first, or what was looked for, the best first."""

    memories: tuple[MemoryRow, ...]


class DocumentRow(BaseModel):
    """One document of a knowledge base."""

    model_config = ConfigDict(from_attributes=True)

    base: str
    name: str
    passages: int
    at: str
    """When it was put in: ISO 8601 in UTC."""


class DocumentRows(BaseModel):
    """By base and name."""

    documents: tuple[DocumentRow, ...]


class PassageRow(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(from_attributes=True)

    base: str
    document: str
    text: str


class PassageRows(BaseModel):
    """The best first."""

    passages: tuple[PassageRow, ...]


class DeletedCount(BaseModel):
    """How many there were of what was to be deleted."""

    deleted: int


async def memories(call: Call) -> MemoryRows:
    query: Remembering = call.query
    asked, mine = query.query.strip(), _memories_of(call)
    found = (
        await mine.search(asked, agent=query.agent, limit=query.limit)
        if asked
        else await mine.listed(agent=query.agent, limit=query.limit)
    )
    return MemoryRows(memories=tuple(MemoryRow.model_validate(each) for each in found))


async def forget(call: Call) -> DeletedCount:
    body: Forgetting = call.body
    mine = _memories_of(call)
    return DeletedCount(deleted=await (mine.delete_all(agent=body.agent) if body.all else mine.delete(*body.ids)))


async def documents(call: Call) -> DocumentRows:
    query: Shelf = call.query
    found = await call.app.knowledge.listed(query.base)
    return DocumentRows(documents=tuple(DocumentRow.model_validate(each) for each in found))


async def passages(call: Call) -> PassageRows:
    query: Looking = call.query
    found = await call.app.knowledge.search([query.base], query.query, limit=query.limit)
    return PassageRows(passages=tuple(PassageRow.model_validate(each) for each in found))


async def discard(call: Call) -> DeletedCount:
    body: Discarding = call.body
    bases = call.app.knowledge
    return DeletedCount(
        deleted=await (bases.delete_all(body.base) if body.all else bases.delete(body.base, *body.documents))
    )


def _memories_of(call: Call) -> MemoriesOfUser:
    return call.app.memories_of(user_meant(call))


MEMORIES: tuple[Operation, ...] = (
    Operation(
        "GET",
        "/v1/memories",
        "memories",
        "What agents remember about the user",
        memories,
        "read",
        {200: MemoryRows},
        Remembering,
    ),
    Operation(
        "POST",
        "/v1/memories/delete",
        "forget",
        "Delete memories for good",
        forget,
        "steer",
        {200: DeletedCount},
        Whose,
        Forgetting,
    ),
    Operation(
        "GET",
        "/v1/knowledge",
        "documents",
        "The documents of knowledge bases",
        documents,
        "read",
        {200: DocumentRows},
        Shelf,
        also="admin",
    ),
    Operation(
        "GET",
        "/v1/knowledge/passages",
        "passages",
        "What an agent would find",
        passages,
        "read",
        {200: PassageRows},
        Looking,
        also="admin",
    ),
    Operation(
        "POST",
        "/v1/knowledge/delete",
        "discard",
        "Delete documents for good",
        discard,
        "steer",
        {200: DeletedCount},
        Nothing,
        Discarding,
        also="admin",
    ),
)
