"""Memories in a SQLite file, found by their words: the rarer a word and the shorter the memory, the better (BM25)."""
# ruff: noqa: S608  Values are bound; what statements are put together from stands in this file.

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from longhaul.stores.memories.memories import MOST_OF_AN_OWNER, Memory, MemoryOwner, NewMemory
from longhaul.stores.memories.sqlite_file import SqliteFile
from longhaul.stores.memories.words import indexed, query_of

TABLES = """
CREATE TABLE IF NOT EXISTS memories_1 (
    id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, agent TEXT NOT NULL, key TEXT NOT NULL,
    session TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL, UNIQUE (user, agent, key)
);
CREATE VIRTUAL TABLE IF NOT EXISTS memory_words_1 USING fts5 (words, tokenize = 'porter unicode61');
"""
OF_OWNER = "user = :user AND (:agent IS NULL OR agent = :agent)"
FIELDS = "memories_1.id, agent, session, text, at"


class SqliteMemories:
    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, TABLES)

    async def record(self, owner: MemoryOwner, new: Sequence[NewMemory]) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        await self._file.run(lambda connection: _record(connection, owner, new, at))

    async def retrieve(self, owner: MemoryOwner, query: str, limit: int, *, not_of: str = "") -> list[Memory]:
        if not (match := query_of(query)):
            return []
        asked = {**whose(owner), "match": match, "limit": limit, "not_of": not_of}
        statement = (
            f"SELECT {FIELDS} FROM memory_words_1 JOIN memories_1 ON memories_1.id = memory_words_1.rowid "
            f"WHERE memory_words_1 MATCH :match AND {OF_OWNER} AND (:not_of = '' OR session != :not_of) "
            "ORDER BY bm25(memory_words_1), memories_1.id DESC LIMIT :limit"
        )
        return await self._file.run(lambda connection: read(connection, statement, asked))

    async def list_memories(self, owner: MemoryOwner, limit: int) -> list[Memory]:
        statement = f"SELECT {FIELDS} FROM memories_1 WHERE {OF_OWNER} ORDER BY id DESC LIMIT :limit"
        return await self._file.run(lambda connection: read(connection, statement, {**whose(owner), "limit": limit}))

    async def delete(self, owner: MemoryOwner, ids: Sequence[str] | None) -> int:
        return await self._file.run(lambda connection: _delete(connection, owner, ids))

    async def close(self) -> None:
        """Nothing is held open."""


def whose(owner: MemoryOwner) -> dict[str, str | int | None]:
    """The user as JSON: whoever has no user is nobody's namesake."""
    return {"user": json.dumps(owner.user_id), "agent": owner.agent}


def read(connection: sqlite3.Connection, statement: str, asked: dict[str, str | int | None]) -> list[Memory]:
    rows = connection.execute(statement, asked).fetchall()
    return [Memory(str(number), agent, session, text, at) for number, agent, session, text, at in rows]


def _record(connection: sqlite3.Connection, owner: MemoryOwner, new: Sequence[NewMemory], at: str) -> None:
    named = {**whose(owner), "agent": owner.agent or ""}
    for each in new:
        same = {**named, "key": each.key}
        _remove(connection, "user = :user AND agent = :agent AND key = :key", same)
        number = connection.execute(
            "INSERT INTO memories_1 (user, agent, key, session, text, at) "
            "VALUES (:user, :agent, :key, :session, :text, :at)",
            {**same, "session": each.session_id, "text": each.text, "at": at},
        ).lastrowid
        connection.execute("INSERT INTO memory_words_1 (rowid, words) VALUES (?, ?)", (number, indexed(each.text)))
    older = f"SELECT id FROM memories_1 WHERE {OF_OWNER} ORDER BY id DESC LIMIT -1 OFFSET {MOST_OF_AN_OWNER}"
    _remove(connection, f"id IN ({older})", named)


def _delete(connection: sqlite3.Connection, owner: MemoryOwner, ids: Sequence[str] | None) -> int:
    if ids is None:
        return _remove(connection, OF_OWNER, whose(owner))
    numbers = {int(each) for each in ids if each.isascii() and each.isdigit() and len(each) < 19}
    return sum(_remove(connection, f"{OF_OWNER} AND id = :id", {**whose(owner), "id": each}) for each in numbers)


def _remove(connection: sqlite3.Connection, which: str, named: dict[str, str | int | None]) -> int:
    """How many were removed, with their words."""
    connection.execute(f"DELETE FROM memory_words_1 WHERE rowid IN (SELECT id FROM memories_1 WHERE {which})", named)
    return connection.execute(f"DELETE FROM memories_1 WHERE {which}", named).rowcount
