"""Requests about what outlives sessions: memories, each caller's own, and knowledge bases, which are the operator's."""

from longhaul.starter.client.memories import MemoriesOfUser
from longhaul.starter.serve.memory_rows import (
    DeletedCount,
    DocumentRow,
    DocumentRows,
    MemoryRow,
    MemoryRows,
    PassageRow,
    PassageRows,
)
from longhaul.starter.serve.request_bodies import Discarding, Forgetting, Looking, Remembering, Shelf
from longhaul.starter.serve.requests import Call, user_meant


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
