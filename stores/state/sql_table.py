"""The one table. Its name carries the number of its layout: another layout is another table, filled from this one."""

from sqlalchemy import BigInteger, Column, Engine, Index, MetaData, SmallInteger, String, Table, Text, inspect
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import DBAPIError

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
    Column("generation", BigInteger, nullable=False),
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
