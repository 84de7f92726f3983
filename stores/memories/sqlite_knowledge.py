"""Knowledge bases in a SQLite file: the words of each passage, and of its document's name."""
# ruff: noqa: S608  Values are bound; what statements are put together from stands in this file.

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from longhaul.stores.memories.knowledge import KnownDocument, Passage, TakenIn
from longhaul.stores.memories.sqlite_file import SqliteFile
from longhaul.stores.memories.words import indexed, query_of

TABLES = """
CREATE TABLE IF NOT EXISTS documents_1 (
    id INTEGER PRIMARY KEY, base TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, passages INTEGER NOT NULL,
    at TEXT NOT NULL, UNIQUE (base, name)
);
CREATE TABLE IF NOT EXISTS passages_1 (id INTEGER PRIMARY KEY, document INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS passages_1_documents ON passages_1 (document);
CREATE VIRTUAL TABLE IF NOT EXISTS passage_words_1 USING fts5 (name, words, tokenize = 'porter unicode61');
"""
_NAMED = "base = :base AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))"


class SqliteKnowledge:
    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(path, TABLES)

    async def put(self, base: str, document: str, digest: str, passages: Sequence[str]) -> TakenIn:
        stamp = (digest, datetime.now(UTC).isoformat(timespec="seconds"))
        return TakenIn(await self._file.run(lambda connection: put_in(connection, base, document, stamp, passages)))

    async def has(self, base: str, document: str, digest: str) -> bool:
        return await self._file.run(lambda connection: is_there(connection, base, document, digest))

    async def search(self, bases: Sequence[str], query: str, limit: int) -> list[Passage]:
        if not (match := query_of(query)):
            return []
        asked = {"match": match, "bases": json.dumps(list(bases)), "limit": limit}
        statement = (
            "SELECT base, documents_1.name, text FROM passage_words_1 "
            "JOIN passages_1 ON passages_1.id = passage_words_1.rowid "
            "JOIN documents_1 ON documents_1.id = passages_1.document "
            "WHERE passage_words_1 MATCH :match AND base IN (SELECT value FROM json_each(:bases)) "
            "ORDER BY bm25(passage_words_1), passages_1.id LIMIT :limit"
        )
        rows = await self._file.run(lambda connection: connection.execute(statement, asked).fetchall())
        return [Passage(*row) for row in rows]

    async def bases(self) -> list[str]:
        statement = "SELECT DISTINCT base FROM documents_1 ORDER BY base"
        return [row[0] for row in await self._file.run(lambda connection: connection.execute(statement).fetchall())]

    async def list_documents(self, base: str | None) -> list[KnownDocument]:
        statement = (
            "SELECT base, name, passages, at, digest FROM documents_1 WHERE :base IS NULL OR base = :base "
            "ORDER BY base, name"
        )
        rows = await self._file.run(lambda connection: connection.execute(statement, {"base": base}).fetchall())
        return [KnownDocument(*row) for row in rows]

    async def delete(self, base: str, documents: Sequence[str] | None) -> int:
        return await self._file.run(lambda connection: _remove(connection, base, documents))

    async def close(self) -> None:
        """Nothing is held open."""


def is_there(connection: sqlite3.Connection, base: str, document: str, digest: str) -> bool:
    same = "SELECT 1 FROM documents_1 WHERE base = ? AND name = ? AND digest = ?"
    return connection.execute(same, (base, document, digest)).fetchone() is not None


def put_in(
    connection: sqlite3.Connection, base: str, document: str, stamp: tuple[str, str], passages: Sequence[str]
) -> bool:
    digest, at = stamp
    if is_there(connection, base, document, digest):
        return False
    _remove(connection, base, [document])
    number = connection.execute(
        "INSERT INTO documents_1 (base, name, digest, passages, at) VALUES (?, ?, ?, ?, ?)",
        (base, document, digest, len(passages), at),
    ).lastrowid
    for text in passages:
        passage = connection.execute("INSERT INTO passages_1 (document, text) VALUES (?, ?)", (number, text)).lastrowid
        connection.execute(
            "INSERT INTO passage_words_1 (rowid, name, words) VALUES (?, ?, ?)",
            (passage, indexed(document), indexed(text)),
        )
    return True


def _remove(connection: sqlite3.Connection, base: str, documents: Sequence[str] | None) -> int:
    named = {"base": base, "names": None if documents is None else json.dumps(list(documents))}
    which = f"SELECT id FROM documents_1 WHERE {_NAMED}"
    passages = f"SELECT id FROM passages_1 WHERE document IN ({which})"
    connection.execute(f"DELETE FROM passage_words_1 WHERE rowid IN ({passages})", named)
    connection.execute(f"DELETE FROM passages_1 WHERE document IN ({which})", named)
    return connection.execute(f"DELETE FROM documents_1 WHERE {_NAMED}", named).rowcount
