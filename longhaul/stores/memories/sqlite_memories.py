"""One SQLite file with a full-text index (FTS5): opened for each piece of work, on a thread, in one transaction.

Words as the full-text index knows them, of texts and of questions.

Memories in a SQLite file, found by their words: the rarer a word and the shorter the memory, the better (BM25).

Knowledge bases in a SQLite file: the words of each passage, and of its document's name.
"""
# ruff: noqa: S608  Values are bound; what statements are put together from stands in this file.

import json
import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from longhaul.stores.blocking_calls import Threads
from longhaul.stores.memories.memories import (
    MOST_OF_AN_OWNER,
    KnownDocument,
    Memory,
    MemoryOwner,
    NewMemory,
    Passage,
    TakenIn,
)
from longhaul.stores.state.store import StoreUnavailable

Answer = TypeVar("Answer")

ANSWER_SECONDS = 15.0
BUSY_SECONDS = 10.0
THREADS = 4


class SqliteFile:
    def __init__(self, path: Path, tables: str) -> None:
        """`tables`: statements that make what is missing of them, at first use."""
        self._path, self._tables = path, tables
        self._threads = Threads(THREADS)
        self._made = False

    async def run(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What the work returns. All that it changes is written, or nothing. Raises StoreUnavailable."""
        where = f"the file {str(self._path)!r}"
        try:
            return await self._threads.run(lambda: self._done(work), ANSWER_SECONDS)
        except TimeoutError as error:
            raise StoreUnavailable(f"{where} did not answer within {ANSWER_SECONDS:g} seconds") from error
        except (sqlite3.Error, OSError) as error:
            self._made = False  # the file, or a table, may be what is missing
            raise StoreUnavailable(f"{where} can't be used: {error}") from error

    def _done(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        if not self._made:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Before SQLite does it: what people have said is for the owner alone.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        # Immediate: one that reads first and then writes could not wait for another writer.
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level="IMMEDIATE")) as connection:
            if not self._made:
                connection.executescript(f"BEGIN IMMEDIATE; {self._tables} COMMIT;")
                self._made = True
            with connection:
                return work(connection)


MOST_WORDS = 60
"""Of a question: each is a search of its own."""

_SPACELESS = re.compile(r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f])")
_WORD = re.compile(r"\w+")
_SAY_NOTHING = frozenset(
    _WORD.findall(
        "a about after all also am an and any are as at be because been before but by can could did do does for from"
        " had has have he her here him his how i if in into is it its just me more most my no not of on one or our out"
        " over please she should so some than that the their them then there these they this those to too up us use"
        " user was we were what when where which who whom whose why will with would you your"
    )
)
"""Words that stand in most texts; found by them, each memory would fit each request."""


def indexed(text: str) -> str:
    """The text for the index: scripts that put no spaces between words are found by their signs."""
    return _SPACELESS.sub(r" \1 ", text).replace("\0", " ")


def query_of(question: str) -> str:
    """Any text as a query of FTS5 for each of its words that says something; empty when none does. Nothing in it is
    taken for an operator."""
    words = dict.fromkeys(_WORD.findall(indexed(question).casefold()))
    telling = [word for word in words if word not in _SAY_NOTHING][:MOST_WORDS]
    return " OR ".join(f'"{word}"' for word in telling)


MEMORY_TABLES = """
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
        self._file = SqliteFile(path, MEMORY_TABLES)

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
        _remove_memory(connection, "user = :user AND agent = :agent AND key = :key", same)
        number = connection.execute(
            "INSERT INTO memories_1 (user, agent, key, session, text, at) "
            "VALUES (:user, :agent, :key, :session, :text, :at)",
            {**same, "session": each.session_id, "text": each.text, "at": at},
        ).lastrowid
        connection.execute("INSERT INTO memory_words_1 (rowid, words) VALUES (?, ?)", (number, indexed(each.text)))
    older = f"SELECT id FROM memories_1 WHERE {OF_OWNER} ORDER BY id DESC LIMIT -1 OFFSET {MOST_OF_AN_OWNER}"
    _remove_memory(connection, f"id IN ({older})", named)


def _delete(connection: sqlite3.Connection, owner: MemoryOwner, ids: Sequence[str] | None) -> int:
    if ids is None:
        return _remove_memory(connection, OF_OWNER, whose(owner))
    numbers = {int(each) for each in ids if each.isascii() and each.isdigit() and len(each) < 19}
    return sum(_remove_memory(connection, f"{OF_OWNER} AND id = :id", {**whose(owner), "id": each}) for each in numbers)


def _remove_memory(connection: sqlite3.Connection, which: str, named: dict[str, str | int | None]) -> int:
    """How many were removed, with their words."""
    connection.execute(f"DELETE FROM memory_words_1 WHERE rowid IN (SELECT id FROM memories_1 WHERE {which})", named)
    return connection.execute(f"DELETE FROM memories_1 WHERE {which}", named).rowcount


KNOWLEDGE_TABLES = """
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
        self._file = SqliteFile(path, KNOWLEDGE_TABLES)

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
        return await self._file.run(lambda connection: _remove_document(connection, base, documents))

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
    _remove_document(connection, base, [document])
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


def _remove_document(connection: sqlite3.Connection, base: str, documents: Sequence[str] | None) -> int:
    named = {"base": base, "names": None if documents is None else json.dumps(list(documents))}
    which = f"SELECT id FROM documents_1 WHERE {_NAMED}"
    passages = f"SELECT id FROM passages_1 WHERE document IN ({which})"
    connection.execute(f"DELETE FROM passage_words_1 WHERE rowid IN ({passages})", named)
    connection.execute(f"DELETE FROM passages_1 WHERE document IN ({which})", named)
    return connection.execute(f"DELETE FROM documents_1 WHERE {_NAMED}", named).rowcount
