"""The rows about memories and knowledge bases in the table of routes.

Which agent may read which base, its file says; a token that may talk to some agents says nothing of it. So bases want
`admin` beside what is done with them.
"""

from longhaul.starter.serve import memories
from longhaul.starter.serve.memory_rows import DeletedCount, DocumentRows, MemoryRows, PassageRows
from longhaul.starter.serve.operation import Operation
from longhaul.starter.serve.request_bodies import Discarding, Forgetting, Looking, Nothing, Remembering, Shelf, Whose

MEMORIES: tuple[Operation, ...] = (
    Operation(
        "GET",
        "/v1/memories",
        "memories",
        "What agents remember of the user",
        memories.memories,
        "read",
        {200: MemoryRows},
        Remembering,
    ),
    Operation(
        "POST",
        "/v1/memories/delete",
        "forget",
        "Delete memories for good",
        memories.forget,
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
        memories.documents,
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
        memories.passages,
        "read",
        {200: PassageRows},
        Looking,
        also="admin",
    ),
    Operation(
        "POST",
        "/v1/knowledge/delete",
        "discard",
        "Take documents out for good",
        memories.discard,
        "steer",
        {200: DeletedCount},
        Nothing,
        Discarding,
        also="admin",
    ),
)
