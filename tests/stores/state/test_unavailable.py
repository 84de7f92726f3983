"""Stores that do not answer: an error that names them, within seconds, and all is well when they are back."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.redis_store import RedisStorage
from longhaul.stores.state.sql_store import SESSIONS, SqlStore, engine_of
from longhaul.stores.state.store import StateStore, StoreUnavailable
from tests.limits import usual
from tests.servers.local import free_port
from tests.servers.postgres_server import find_postgres, postgres_server
from tests.servers.redis_server import find_redis, redis_server
from tests.stores.state.records import record

SCHEMES = ["redis", "redis+cluster", "redis+sentinel", "postgresql", "mysql", "mariadb"]


def address(scheme: str, port: int) -> str:
    return f"{scheme}://ana:s3cr3t@127.0.0.1:{port}" + ("" if scheme in ("redis", "redis+cluster") else "/name")


@pytest.fixture
async def silent_port() -> AsyncIterator[int]:
    """Takes every connection and never says a word."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for writer in held:
        writer.close()


async def refused(store: StateStore) -> list[str]:
    """What each operation says."""
    said = []
    for asked in (
        store.get_session("ana", "reviewer", "s-1"),
        store.save_checkpoint(record(1)),
        store.list_sessions("ana"),
    ):
        with pytest.raises(StoreUnavailable) as error:
            await asked
        said.append(str(error.value))
    return said


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_store_where_nobody_listens_is_unavailable_and_its_password_unsaid(scheme: str, tmp_path: Path) -> None:
    port = free_port()
    async with open_store(address(scheme, port), data_dir=tmp_path) as store:
        said = await refused(store)

    assert [str(port) in sentence for sentence in said] == [True] * 3
    assert "s3cr3t" not in repr(said)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_store_that_never_answers_is_given_up(scheme: str, silent_port: int) -> None:
    url = address(scheme, silent_port)
    store: StateStore
    if scheme.startswith("redis"):
        store = RedisStorage.from_url(url, answer_seconds=0.3)
    else:
        store = SqlStore(url, answer_seconds=0.3)
    started = time.monotonic()

    async with store:
        with pytest.raises(StoreUnavailable, match=r"did not answer within 0\.3 seconds"):
            await store.save_checkpoint(record(1))

    assert time.monotonic() - started < usual(20)


@pytest.mark.redis
async def test_a_redis_that_was_emptied_takes_the_next_checkpoint(redis_url: str, tmp_path: Path) -> None:
    del redis_url
    with redis_server(find_redis(print), tmp_path) as url:
        async with RedisStorage.from_url(url) as store:
            await store.save_checkpoint(record(5))
            with Redis.from_url(url) as client:
                client.flushall()

            assert await store.get_session("ana", "reviewer", "s-1") is None
            with pytest.raises(KeyError):
                await store.update_session_state("ana", "reviewer", "s-1", record(5).state)
            assert await store.save_checkpoint(record(6)) is True


@pytest.mark.redis
async def test_a_redis_that_refuses_is_unavailable_with_its_words(redis_url: str, tmp_path: Path) -> None:
    del redis_url
    with redis_server(find_redis(print), tmp_path) as url, Redis.from_url(url) as client:
        client.config_set("requirepass", "right")
        port = int(url.rpartition(":")[2].removesuffix("/0"))
        async with RedisStorage("127.0.0.1", port, password="wrong") as store:
            said = await refused(store)
        async with RedisStorage("127.0.0.1", port, password="right") as store:
            assert await store.save_checkpoint(record(1)) is True

    assert "WRONGPASS" in said[0] or "invalid username-password" in said[0]
    assert "wrong'" not in repr(said)


@pytest.mark.sql
@pytest.mark.parametrize(
    ("server", "hang_up"),
    [
        ("postgres_url", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"),
        ("mariadb_url", "KILL CONNECTION USER root"),
    ],
)
async def test_connections_that_the_database_has_closed_are_replaced(
    server: str, hang_up: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue(server)
    async with SqlStore(url) as store:
        await store.save_checkpoint(record(1, session="closed-on"))
        engine = engine_of(url, 1)
        with suppress(OperationalError), engine.connect() as connection:  # MariaDB closes this one as well
            connection.execute(text(hang_up))
        engine.dispose()

        assert await store.save_checkpoint(record(2, session="closed-on")) is True


@pytest.mark.sql
async def test_a_database_that_was_stopped_is_unavailable(postgres_url: str) -> None:
    del postgres_url
    with postgres_server(find_postgres(print)) as url:
        store = SqlStore(url)
        await store.save_checkpoint(record(1))

    said = await refused(store)

    await store.close()
    assert said[0].startswith(f"the SQL store at {url.replace('longhaul:unasked@', '')}: ")


async def test_a_table_that_is_gone_is_made_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    async with SqlStore(url) as store:
        await store.save_checkpoint(record(1))
        engine = engine_of(url, 1)
        SESSIONS.drop(engine)
        engine.dispose()

        with pytest.raises(StoreUnavailable, match="no such table"):
            await store.get_session("ana", "reviewer", "s-1")
        assert await store.get_session("ana", "reviewer", "s-1") is None


@pytest.mark.sql
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("", "10s"),
        ("?options=-c%20search_path%3Dharbour", "10s"),
        ("?options=-c%20statement_timeout%3D7000", "7s"),
        ("?options=-c%20search_path%3Dharbour&options=-c%20statement_timeout%3D8000", "8s"),
    ],
)
def test_a_statement_of_postgres_ends_in_time_whatever_options_the_url_gives(
    postgres_url: str, options: str, told: str
) -> None:
    engine = engine_of(f"{postgres_url}{options}", 1)
    with engine.connect() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar() == told
        path = connection.execute(text("SHOW search_path")).scalar()
    assert (path == "harbour") is ("search_path" in options)
    engine.dispose()
