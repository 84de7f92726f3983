"""Data keys in one SQLite file, for the workers and clients of one machine."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from longhaul.stores.blocking_calls import Threads
from longhaul.stores.keys.keyring import KeysUnavailable, StoredKey

Answer = TypeVar("Answer")

ANSWER_SECONDS = 15.0
BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS keys (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, wrapped BLOB NOT NULL, master TEXT NOT NULL, deleted_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (owner TEXT PRIMARY KEY, id TEXT NOT NULL) WITHOUT ROWID;
"""
_BY_ID = "SELECT * FROM keys WHERE id = ?"
_BY_OWNER = "SELECT * FROM keys WHERE id = (SELECT id FROM owners WHERE owner = ?)"
_THERE = "SELECT * FROM keys WHERE wrapped != x''"


class SqliteKeys:
    def __init__(self, path: Path) -> None:
        """Made when it is first used."""
        self._path = path
        self._threads = Threads(4)
        self._made = False

    @property
    def place(self) -> str:
        return f"the file {str(self._path)!r}"

    async def get(self, key_id: str) -> StoredKey | None:
        return await self._run(lambda db: _one(db, _BY_ID, key_id))

    async def key_of(self, owner: str) -> StoredKey | None:
        return await self._run(lambda db: _key_of(db, owner))

    async def add(self, key: StoredKey) -> StoredKey:
        return await self._run(lambda db: _added(db, key))

    async def share(self, owner: str, key_id: str) -> StoredKey | None:
        return await self._run(lambda db: _shared(db, owner, key_id))

    async def delete(self, key_id: str, at: str) -> bool:
        change = "UPDATE keys SET wrapped = x'', deleted_at = ? WHERE id = ? AND wrapped != x''"
        return await self._run(lambda db: db.execute(change, (at, key_id)).rowcount > 0)

    async def every(self) -> list[StoredKey]:
        return await self._run(lambda db: [StoredKey(*row) for row in db.execute(_THERE)])

    async def rewrap(self, key: StoredKey, wrapped: bytes, master: str) -> bool:
        change = "UPDATE keys SET wrapped = ?, master = ? WHERE id = ? AND wrapped = ?"
        values = (wrapped, master, key.id, key.wrapped)
        return await self._run(lambda db: db.execute(change, values).rowcount > 0)

    async def close(self) -> None:
        """Nothing is held open."""

    async def _run(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            return await self._threads.run(lambda: self._done(work), ANSWER_SECONDS)
        except TimeoutError as error:
            raise KeysUnavailable(f"keys: {self.place} did not answer within {ANSWER_SECONDS:g} seconds") from error
        except (sqlite3.Error, OSError) as error:
            self._made = False  # the file, or a table, may be what is missing
            raise KeysUnavailable(f"keys: {self.place} can't be used: {error}") from error

    def _done(self, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        if not self._made:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Before SQLite does it: keys are for the owner alone.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level="IMMEDIATE")) as connection:
            # Without it a deleted key would stay in free pages of the file.
            connection.execute("PRAGMA secure_delete = ON")
            if not self._made:
                connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
                self._made = True
            with connection:
                return work(connection)


def _one(db: sqlite3.Connection, asked: str, value: str) -> StoredKey | None:
    row = db.execute(asked, (value,)).fetchone()
    return StoredKey(*row) if row else None


def _key_of(db: sqlite3.Connection, owner: str) -> StoredKey | None:
    return _one(db, _BY_OWNER, owner)


def _added(db: sqlite3.Connection, key: StoredKey) -> StoredKey:
    # The lock first: one that reads first could find none where another is just adding one.
    db.execute("INSERT OR IGNORE INTO owners VALUES (?, '')", (key.owner,))
    there = _key_of(db, key.owner)
    if there is not None and there.wrapped:
        return there
    db.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", key)
    db.execute("UPDATE owners SET id = ? WHERE owner = ?", (key.id, key.owner))
    return key


def _shared(db: sqlite3.Connection, owner: str, key_id: str) -> StoredKey | None:
    db.execute("INSERT OR IGNORE INTO owners VALUES (?, '')", (owner,))
    there = _key_of(db, owner)
    if there is None or not there.wrapped:
        db.execute("UPDATE owners SET id = ? WHERE owner = ?", (key_id, owner))
    return _key_of(db, owner)
