"""What lies in a store and is no session of ours: named, never taken for one, never overwritten by a checkpoint."""

import json
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from sqlalchemy import update

from longhaul.stores.state.file_store import FileStore, MemoryStore
from longhaul.stores.state.redis_store import RedisStorage
from longhaul.stores.state.sql_store import SESSIONS, SqlStore, engine_of
from longhaul.stores.state.store import DamagedRecord, NewerStored, Slot, encode_record, read
from tests.stores.state.records import files_of, record

SLOT = Slot("ana", "reviewer", "s-1")


def altered(**fields: Any) -> str:
    return json.dumps({**record(1).model_dump(mode="json"), **fields})


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("", "it is no JSON (Expecting value at line 1, column 1)"),
        (encode_record(record(1))[:-40], "it is no JSON"),
        (b"\xff\x00garbage", "it is no JSON"),
        ("[" * 100_000, "it is no JSON (RecursionError)"),
        ("[]", "stored as a JSON object, not as list"),
        ("{}", "version: must be a whole number from 1 to 1, and there is none"),
        (altered(state={"session_id": 3}), "state.session_id: Input should be a valid string"),
        (altered(state=None), "state: "),
        (altered(seq="many"), "seq: "),
        (altered(incarnation=-1), "incarnation: "),
        (altered(session_id="s-2"), "it is the session 'longhaul/reviewer/ana/s-2'"),
        (altered(user_id=None), "it is the session 'longhaul/reviewer/~/s-1'"),
        (altered(version="1"), "version: must be a whole number"),
    ],
)
def test_a_body_that_is_no_session_is_named_with_what_is_wrong(body: str | bytes, wrong: str) -> None:
    with pytest.raises(DamagedRecord) as found:
        read(body, SLOT, "the store")

    assert wrong in str(found.value)
    assert "the store: what is stored under 'longhaul/reviewer/ana/s-1' can't be used" in str(found.value)


def test_what_is_wrong_is_said_without_what_was_said() -> None:
    with pytest.raises(DamagedRecord) as found:
        read(altered(state={"session_id": "s-1", "summary": ["my secret"]}), SLOT, "the store")

    assert "state.summary" in str(found.value)
    assert "secret" not in str(found.value)


def test_a_session_of_a_newer_version_says_what_to_do() -> None:
    with pytest.raises(NewerStored, match=r"the store: 'longhaul/reviewer/ana/s-1': version: 7 .* Run that one"):
        read(altered(version=7), SLOT, "the store")


def test_a_bare_state_is_no_stored_session() -> None:
    with pytest.raises(DamagedRecord, match=r"'longhaul/reviewer/ana/s-1' .*version: must be a whole number from 1"):
        read(record(1).state.model_dump_json(), SLOT, "the store")


async def test_a_damaged_file_stays_until_somebody_repairs_it(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.upsert_session(record(1))
    await store.upsert_session(record(1, session="s-2"))
    path = files_of("s-1", tmp_path)[0]
    path.write_bytes(b"\0" * 100)

    with pytest.raises(DamagedRecord):
        await store.get_session("ana", "reviewer", "s-1")
    with pytest.raises(DamagedRecord):
        await store.save_checkpoint(record(2))
    with pytest.raises(DamagedRecord):
        await store.update_session_state("ana", "reviewer", "s-1", record(3).state)

    assert path.read_bytes() == b"\0" * 100
    assert [row.session_id for row in await store.list_sessions("ana")] == ["s-2"]
    await store.upsert_session(record(4))
    assert await store.save_checkpoint(record(5)) is True


@pytest.mark.redis
async def test_a_damaged_key_stays_until_somebody_repairs_it(redis_url: str, tmp_path: Path) -> None:
    url = f"{redis_url}?prefix={tmp_path.name}:"
    async with RedisStorage.from_url(url) as store:
        client = Redis.from_url(redis_url)
        await store.upsert_session(record(1))
        key = client.keys(f"{tmp_path.name}:*s-1")[0]
        client.hset(key, "body", "{")
        with pytest.raises(DamagedRecord):
            await store.get_session("ana", "reviewer", "s-1")
        client.hdel(key, "seq")
        with pytest.raises(DamagedRecord):
            await store.save_checkpoint(record(2))
        await store.upsert_session(record(3))
        assert await store.save_checkpoint(record(4)) is True
        client.close()


@pytest.mark.redis
async def test_somebody_elses_key_is_not_touched(redis_url: str, tmp_path: Path) -> None:
    url = f"{redis_url}?prefix={tmp_path.name}:"
    async with RedisStorage.from_url(url) as store:
        client = Redis.from_url(redis_url)
        await store.upsert_session(record(1))
        key = client.keys(f"{tmp_path.name}:*s-1")[0]
        client.set(key, "theirs")
        for writing in (store.upsert_session, store.save_checkpoint):
            with pytest.raises(DamagedRecord, match="the key holds something else"):
                await writing(record(2))
        with pytest.raises(DamagedRecord):
            await store.get_session("ana", "reviewer", "s-1")
        assert client.get(key) == b"theirs"
        client.close()


async def test_a_damaged_row_is_named_and_can_be_repaired(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sessions.db"
    async with SqlStore(url) as store:
        await store.upsert_session(record(1))
        engine = engine_of(url, 1)
        with engine.connect() as connection:
            connection.execute(update(SESSIONS).values(body="{"))
        engine.dispose()

        with pytest.raises(DamagedRecord, match="the SQL store at sqlite:///"):
            await store.get_session("ana", "reviewer", "s-1")
        assert await store.save_checkpoint(record(2)) is True
        assert await store.get_session("ana", "reviewer", "s-1") is not None


async def test_a_record_that_changes_after_it_was_stored_does_not_change_in_memory() -> None:
    store, kept = MemoryStore(), record(1)
    await store.upsert_session(kept)

    kept.state.summary = "changed"

    found = await store.get_session("ana", "reviewer", "s-1")
    assert found is not None
    assert found.state.summary == "1.1"
