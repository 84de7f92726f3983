"""One SQLite file with a full-text index (FTS5): opened for each piece of work, on a thread, in one transaction."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from longhaul.stores.blocking_calls import Threads
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
