"""Bodies of answers about memories and knowledge bases."""

from pydantic import BaseModel, ConfigDict


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
