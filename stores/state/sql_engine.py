"""Reads which database a URL means, by which driver it is reached, and how long it may take to answer."""

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from longhaul.stores.state.store import BadStoreSetting

ANSWER_SECONDS = 15.0
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
FIRST_OPEN_PAUSE_SECONDS = 0.01

DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
"""What people write to what SQLAlchemy calls it."""


def engine_of(url: str, connections: int) -> Engine:
    """An engine that has not connected yet. Raises BadStoreSetting, never with a password."""
    scheme = url.partition(":")[0]
    if scheme not in DRIVERS:
        raise BadStoreSetting(f"store: {scheme!r} is no database; known are {', '.join(DRIVERS)}")
    try:
        named = make_url(DRIVERS[scheme] + url[len(scheme) :])
    except (ArgumentError, ValueError):
        # Without its cause: the message would quote the URL with its password.
        raise BadStoreSetting(f"store: not a URL like {scheme}://user:password@host:port/database") from None
    if not named.database:
        raise BadStoreSetting(f"store: {scheme}://… names no database; add it after the host as /NAME")
    return _tuned(named, connections)


def place_of(url: URL) -> str:
    """The database for an error message: no user, no password, no parameters."""
    host = f"{url.host or ''}{f':{url.port}' if url.port else ''}"
    return f"{url.get_backend_name()}://{host}/{url.database}"


def _tuned(url: URL, connections: int) -> Engine:
    # Each statement stands alone. The ping finds out connections that did not survive a restart of the database.
    options: dict[str, Any] = {
        "isolation_level": "AUTOCOMMIT",
        "pool_pre_ping": True,
        "pool_size": connections,
        "pool_timeout": STATEMENT_SECONDS,
        "pool_recycle": 1_800,
        "connect_args": _limits(url),
    }
    if url.get_backend_name() != "sqlite":
        return create_engine(url, **options)
    Path(str(url.database)).absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_engine(url, **options)
    event.listen(engine, "connect", _durable)
    return engine


def _limits(url: URL) -> dict[str, Any]:
    match url.get_backend_name():
        case "sqlite":
            return {"timeout": STATEMENT_SECONDS}
        case "postgresql":
            # What the URL says comes behind it, and counts where it sets the same.
            options = [f"-c statement_timeout={STATEMENT_SECONDS * 1000}", *url.normalized_query.get("options", ())]
            limits = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": STATEMENT_SECONDS * 1000}
            return {**limits, "options": " ".join(options)}
        case _:
            seconds = {"read_timeout": STATEMENT_SECONDS, "write_timeout": STATEMENT_SECONDS}
            return {"connect_timeout": CONNECT_SECONDS, "charset": "utf8mb4", **seconds}


def _durable(connection: Any, _entry: ConnectionPoolEntry) -> None:
    """Readers beside a writer, and nothing lost that was answered for, power cuts included."""
    cursor = connection.cursor()
    give_up = time.monotonic() + STATEMENT_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            # Of several processes that open a new file at once SQLite makes one go first and refuses the others at
            # once, without the wait that it was told: two that hold a lock and want a larger one would wait for ever.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(FIRST_OPEN_PAUSE_SECONDS)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()
