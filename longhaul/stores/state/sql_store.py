"""Sessions in a relational database: SQLite in a file, PostgreSQL, MySQL or MariaDB, through SQLAlchemy.

Each change is one statement that the database carries out whole, and whose WHERE names what it replaces. So there
is no transaction to hold open, and nothing to deadlock with. The table's name carries the number of its layout.
"""

import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    ColumnElement,
    CursorResult,
    Engine,
    Index,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    and_,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    make_url,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.stores.blocking_calls import Threads
from longhaul.stores.state.store import (
    BadStoreSetting,
    SessionRecord,
    SessionRow,
    Slot,
    StateStore,
    StoreBusy,
    StoreUnavailable,
    digest_of,
    encode_record,
    newest_first,
    no_such_session,
    owner,
    read,
    slot_of,
    stamp_record,
    with_state,
)

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
    # Each statement stands alone. The ping finds out connections that did not survive a restart of the database.
    options: dict[str, Any] = {
        "isolation_level": "AUTOCOMMIT",
        "pool_pre_ping": True,
        "pool_size": connections,
        "pool_timeout": STATEMENT_SECONDS,
        "pool_recycle": 1_800,
        "connect_args": _limits(named),
    }
    if named.get_backend_name() != "sqlite":
        return create_engine(named, **options)
    Path(str(named.database)).absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = create_engine(named, **options)
    event.listen(engine, "connect", _durable)
    return engine


def place_of(url: URL) -> str:
    """The database for an error message: no user, no password, no parameters."""
    host = f"{url.host or ''}{f':{url.port}' if url.port else ''}"
    return f"{url.get_backend_name()}://{host}/{url.database}"


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


_LONG = Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")

_TABLES = MetaData()

SESSIONS = Table(
    "longhaul_sessions_1",
    _TABLES,
    # Digests, because databases fold case, accents and trailing blanks of text, and PostgreSQL stores no NUL.
    Column("slot", String(64), primary_key=True, comment="sha-256 of the session's workflow id"),
    Column("owner", String(64), nullable=False, comment="sha-256 of the user; ~ for the anonymous one"),
    Column("agent", String(64), nullable=False, comment="sha-256 of the agent's name"),
    Column(
        "ids", _LONG, nullable=False, comment="user, agent, session as JSON; of the mark of a deletion its time too"
    ),
    Column("incarnation", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("closed", SmallInteger, nullable=False),
    Column("updated_at", String(40), nullable=False),
    Column("revision", String(16), nullable=False, comment="another one with each write"),
    Column("body", _LONG, nullable=False, comment="SessionRecord as JSON"),
    Index("longhaul_sessions_1_owner", "owner", "agent"),
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
)


def create_tables(engine: Engine) -> None:
    """Make what is missing. Several workers may do so at once: who comes second finds it made."""
    if inspect(engine).has_table(SESSIONS.name):
        return
    try:
        _TABLES.create_all(engine)
    except DBAPIError:
        if not inspect(engine).has_table(SESSIONS.name):
            raise


Answer = TypeVar("Answer")
Columns = dict[str, Any]

TRIES = 20
"""For changes that meet others of the same session."""
CONNECTIONS = 5

_ROW = SESSIONS.c


class SqlStore(StateStore):
    """One table, `longhaul_sessions_1`, made at first use."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Raises BadStoreSetting; connects with the first call."""
        self._engine: Engine = engine_of(url, CONNECTIONS)
        self._where = f"the SQL store at {place_of(self._engine.url)}"
        self._threads = Threads(CONNECTIONS)
        self._made = False
        self._answer_seconds = answer_seconds
        self.single_host = self._engine.dialect.name == "sqlite"

    async def get_session(self, user_id: str | None, agent_id: str, session_id: str) -> SessionRecord | None:
        found = await self._run(lambda: self._get(Slot(user_id, agent_id, session_id)))
        return found[0] if found else None

    async def upsert_session(self, record: SessionRecord) -> None:
        await self._run(lambda: self._upsert(stamp_record(record)))

    async def update_session_state(
        self, user_id: str | None, agent_id: str, session_id: str, state: AgentState
    ) -> None:
        await self._run(lambda: self._update(Slot(user_id, agent_id, session_id), state))

    async def list_sessions(self, user_id: str | None, agent_id: str | None = None) -> list[SessionRow]:
        return newest_first(await self._run(lambda: self._rows(user_id, agent_id)))

    async def delete_session(self, user_id: str | None, agent_id: str, session_id: str) -> bool:
        slot = Slot(user_id, agent_id, session_id)
        return await self._run(lambda: self._done(delete(SESSIONS).where(_ROW.slot == slot.digest)))

    async def save_checkpoint(self, record: SessionRecord) -> bool:
        return await self._run(lambda: self._save(stamp_record(record)))

    async def replace_session(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        return await self._run(lambda: self._replace(stamp_record(record), expected))

    async def close(self) -> None:
        await self._threads.run(self._engine.dispose, ANSWER_SECONDS)

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        """The work, on a thread, with the database's complaints as our errors."""
        try:
            return await self._threads.run(lambda: self._with_table(work), self._answer_seconds)
        except TimeoutError as error:
            raise StoreUnavailable(f"{self._where} did not answer within {self._answer_seconds:g} seconds") from error
        except DBAPIError as error:
            self._made = False  # the table may be what is missing
            # Only the database's own first line: the rest quotes the statement, and with it the session.
            complaint = (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0][:300]
            raise StoreUnavailable(f"{self._where}: {complaint}") from None
        except PoolTimeout as error:
            raise StoreUnavailable(f"{self._where}: all {CONNECTIONS} connections are busy") from error

    def _with_table(self, work: Callable[[], Answer]) -> Answer:
        if not self._made:
            create_tables(self._engine)
            self._made = True
        return work()

    def _get(self, slot: Slot) -> tuple[SessionRecord, str] | None:
        row = self._one(slot, _ROW.body, _ROW.revision)
        return (read(row[0], slot, self._where), row[1]) if row else None

    def _upsert(self, record: SessionRecord) -> None:
        slot, columns = slot_of(record), _columns(record)
        for _ in range(TRIES):
            if self._done(update(SESSIONS).where(_ROW.slot == slot.digest).values(columns)) or self._inserted(columns):
                return
        raise self._busy(slot)

    def _save(self, record: SessionRecord) -> bool:
        slot, columns = slot_of(record), _columns(record)
        for _ in range(TRIES):
            if self._done(update(SESSIONS).where(_ROW.slot == slot.digest, _not_later(record)).values(columns)):
                return True
            row = self._one(slot, _ROW.incarnation, _ROW.seq, _ROW.closed)
            if row is None:
                if self._inserted(columns):
                    return True
            elif tuple(row) > (*record.position(), record.closed):
                return tuple(row)[:2] == record.position()
        raise self._busy(slot)

    def _update(self, slot: Slot, state: AgentState) -> None:
        for _ in range(TRIES):
            found = self._get(slot)
            if found is None:
                raise no_such_session(slot.user_id, slot.agent_id, slot.session_id)
            record, revision = found
            same = and_(_ROW.slot == slot.digest, _ROW.revision == revision)
            if self._done(update(SESSIONS).where(same).values(_columns(stamp_record(with_state(record, state))))):
                return
        raise self._busy(slot)

    def _replace(self, record: SessionRecord, expected: tuple[int, int] | None) -> bool:
        if expected is None:
            return self._inserted(_columns(record))
        same = and_(_ROW.slot == slot_of(record).digest, _ROW.incarnation == expected[0], _ROW.seq == expected[1])
        return self._done(update(SESSIONS).where(same).values(_columns(record)))

    def _rows(self, user_id: str | None, agent_id: str | None) -> list[SessionRow]:
        mine = select(_ROW.ids, _ROW.updated_at, _ROW.closed).where(_ROW.owner == owner(user_id))
        if agent_id is not None:
            mine = mine.where(_ROW.agent == digest_of(agent_id))
        with self._engine.connect() as connection:
            found = connection.execute(mine).all()
        return [_row(*line) for line in found]

    def _one(self, slot: Slot, *columns: ColumnElement[Any]) -> Any:
        with self._engine.connect() as connection:
            return connection.execute(select(*columns).where(_ROW.slot == slot.digest)).one_or_none()

    def _done(self, statement: Any) -> bool:
        with self._engine.connect() as connection:
            result: CursorResult[Any] = connection.execute(statement)
            return result.rowcount > 0

    def _inserted(self, columns: Columns) -> bool:
        """False when somebody else has inserted it meanwhile."""
        try:
            with self._engine.connect() as connection:
                connection.execute(insert(SESSIONS).values(columns))
        except IntegrityError:
            return False
        # Not by the number of rows: not every driver tells it of an insert.
        return True

    def _busy(self, slot: Slot) -> StoreBusy:
        return StoreBusy(f"{self._where}: {slot.name!r} was written by others {TRIES} times meanwhile")


def _not_later(record: SessionRecord) -> ColumnElement[bool]:
    """What is stored is not later than the record; on the same position, not closed while the record is open."""
    incarnation, seq = record.position()
    same_seq = and_(_ROW.seq == seq, _ROW.closed <= int(record.closed))
    return or_(_ROW.incarnation < incarnation, and_(_ROW.incarnation == incarnation, or_(_ROW.seq < seq, same_seq)))


def _columns(record: SessionRecord) -> Columns:
    slot = slot_of(record)
    return {
        "slot": slot.digest,
        "owner": slot.owner,
        "agent": digest_of(slot.agent_id),
        "ids": json.dumps([slot.user_id, slot.agent_id, slot.session_id, *filter(None, [record.deleted_at])]),
        "incarnation": record.incarnation,
        "seq": record.seq,
        "closed": int(record.closed),
        "updated_at": record.updated_at,
        "revision": secrets.token_hex(8),
        "body": encode_record(record),
    }


def _row(ids: str, updated_at: str, closed: int) -> SessionRow:
    user_id, agent_id, session_id, *deleted_at = json.loads(ids)
    return SessionRow(
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        updated_at=updated_at,
        closed=bool(closed),
        deleted_at="".join(deleted_at),
    )
