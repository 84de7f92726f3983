"""Keyrings over the real key stores: SQLite and Redis."""

import base64
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.stores.keys import keyring
from longhaul.stores.keys.keyring import BadKeysSetting, Keyring, KeyStore, KeysUnavailable, Masters, NoKey, WrongMaster
from longhaul.stores.keys.open_keyring import FILE, open_keyring, open_keys
from longhaul.stores.keys.redis_keys import RedisKeys

FIRST, SECOND = (f"{name}:{base64.b64encode(os.urandom(32)).decode()}" for name in ("first", "second"))


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.redis)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KeyStore]:
    setting = ""
    if request.param == "redis":
        setting = f"{request.getfixturevalue('redis_url')}?prefix=keys-{uuid.uuid4().hex[:8]}:"
    opened = open_keys(setting, data_dir=tmp_path)
    yield opened
    await opened.close()


def ring(store: KeyStore, masters: str = FIRST) -> Keyring:
    return Keyring(store, Masters(masters))


async def test_two_processes_give_a_session_one_key(store: KeyStore) -> None:
    told = await ring(store).encrypt("ana", b"amber", begins=False)
    again = await ring(store).encrypt("ana", b"amber", begins=False)
    other = await ring(store).encrypt("ben", b"amber", begins=False)

    assert told == again
    assert told[0] != other[0]
    assert told[1] != other[1]
    assert b"amber" not in told[1]
    assert await ring(store).decrypt("ana", *told) == b"amber"


async def test_what_was_encrypted_for_another_or_changed_is_refused(store: KeyStore) -> None:
    key_id, data = await ring(store).encrypt("ana", b"amber", begins=False)

    with pytest.raises(NoKey, match="for another session"):
        await ring(store).decrypt("ben", key_id, data)
    with pytest.raises(NoKey, match="can't be decrypted"):
        await ring(store).decrypt("ana", key_id, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(NoKey, match="has no key 'unheard-of'"):
        await ring(store).decrypt("ana", "unheard-of", data)


async def test_a_deleted_key_is_gone_for_all_and_a_new_life_has_another(store: KeyStore) -> None:
    one, other = ring(store), ring(store)
    told = await one.encrypt("ana", b"amber", begins=True)
    kept = await one.encrypt("ben", b"blue", begins=True)
    deleted = [await one.delete("ana"), await one.delete("ana")]

    for keys in (one, other):
        with pytest.raises(NoKey, match="its key was deleted at 20"):
            await keys.decrypt("ana", *told)
        with pytest.raises(NoKey, match="its key was deleted at 20"):
            await keys.encrypt("ana", b"late", begins=False)
    again = await other.encrypt("ana", b"green", begins=True)
    late = await one.encrypt("ana", b"green", begins=False)

    assert deleted == [True, False]
    assert late == again
    assert again[0] != told[0]
    assert await other.decrypt("ben", *kept) == b"blue"


@pytest.mark.proves("X12")
async def test_whoever_reads_of_a_new_life_encrypts_with_its_key(store: KeyStore) -> None:
    one, other = ring(store), ring(store)
    one.belongs("ana.call", "ana")
    for keys in (one, other):
        await keys.encrypt("ana", b"amber", begins=True)
    await one.encrypt("ana.call", b"amber", begins=True)
    await other.delete("ana")
    start = await other.encrypt("ana", b"green", begins=True)
    read = await one.decrypt("ana", *start)
    answer = await one.encrypt("ana", b"yes", begins=False)
    child = await one.encrypt("ana.call", b"do", begins=True)

    assert read == b"green"
    assert answer[0] == child[0] == start[0]
    assert await ring(store).decrypt("ana", *answer) == b"yes"
    assert await ring(store).decrypt("ana.call", *child) == b"do"


async def test_a_process_that_remembers_a_key_looks_again(store: KeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ring(store)
    told = await one.encrypt("ana", b"amber", begins=True)
    await ring(store).delete("ana")

    assert await one.decrypt("ana", *told) == b"amber"
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.0)
    with pytest.raises(NoKey):
        await one.decrypt("ana", *told)


async def test_a_sub_agent_shares_a_key_and_does_not_delete_it(store: KeyStore) -> None:
    one = ring(store)
    one.belongs("ana.call", "ana")
    lead, child = await one.encrypt("ana", b"a", begins=True), await one.encrypt("ana.call", b"b", begins=True)
    deleted = await one.delete("ana.call")

    assert lead[0] == child[0]
    assert not deleted
    assert await ring(store).decrypt("ana.call", *child) == b"b"
    assert await ring(store).decrypt("ana.call", *lead) == b"a"
    await one.delete("ana")
    with pytest.raises(NoKey):
        await ring(store).decrypt("ana.call", *child)


async def test_a_sub_agent_that_outlives_its_tree_is_given_no_key(store: KeyStore) -> None:
    lead, elsewhere = ring(store), ring(store)
    lead.belongs("ana.call", "ana")
    await lead.encrypt("ana", b"a", begins=True)
    await lead.encrypt("ana.call", b"b", begins=True)
    await lead.delete("ana")

    for keys in (elsewhere, lead):
        with pytest.raises(NoKey, match="its key was deleted"):
            await keys.encrypt("ana.call", b"late", begins=True)
    assert await store.every() == []
    again = await elsewhere.encrypt("ana", b"a", begins=True)
    assert (await lead.encrypt("ana.call", b"b", begins=True))[0] == again[0]


async def test_another_sessions_key_is_refused_without_its_master_key(store: KeyStore) -> None:
    told = await ring(store).encrypt("ana", b"amber", begins=True)
    await ring(store, SECOND).encrypt("ben", b"blue", begins=True)

    with pytest.raises(NoKey, match="for another session"):
        await ring(store, SECOND).decrypt("ben", *told)
    with pytest.raises(WrongMaster, match="'first' is needed"):
        await ring(store, SECOND).decrypt("ana", *told)


@pytest.mark.proves("X12")
async def test_a_master_key_is_replaced_by_wrapping_again(store: KeyStore) -> None:
    told = await ring(store).encrypt("ana", b"amber", begins=True)

    with pytest.raises(WrongMaster, match="'first' is needed, and is not among second"):
        await ring(store, SECOND).decrypt("ana", *told)
    first = await ring(store, f"{SECOND},{FIRST}").rewrap()
    again = await ring(store, f"{SECOND},{FIRST}").rewrap()

    assert (first, again) == ((1, 1), (0, 1))
    assert await ring(store, SECOND).decrypt("ana", *told) == b"amber"
    with pytest.raises(WrongMaster, match="'second' is needed"):
        await ring(store, FIRST).decrypt("ana", *told)


def holds(folder: Path, data: bytes) -> bool:
    return any(data in path.read_bytes() for path in folder.iterdir())


async def test_nothing_of_a_deleted_key_stays_in_the_file(tmp_path: Path) -> None:
    keys = open_keys("", data_dir=tmp_path)
    await ring(keys).encrypt("ana", b"amber", begins=True)
    found = await keys.key_of("ana")
    assert found is not None
    before = found.wrapped in (tmp_path / FILE).read_bytes()
    await ring(keys).delete("ana")

    assert before
    assert not holds(tmp_path, found.wrapped)
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


async def test_a_store_that_is_away_says_so_and_what_is_known_counts_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.0)
    one = ring(open_keys("", data_dir=tmp_path))
    told = await one.encrypt("ana", b"amber", begins=True)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).mkdir()

    assert await one.decrypt("ana", *told) == b"amber"
    assert await one.encrypt("ana", b"amber", begins=False) == told
    with pytest.raises(KeysUnavailable, match=f"{FILE}' can't be used"):
        await ring(open_keys("", data_dir=tmp_path)).decrypt("ana", *told)
    with pytest.raises(KeysUnavailable, match=r"Redis at 127.0.0.1:9 can't be used"):
        await RedisKeys("redis://127.0.0.1:9").get("x")


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("plain", "key 1 has no name"),
        ("a:c2hvcnQ=", "'a' is not 32 bytes in base64"),
        (f"{FIRST},{FIRST}", "key 2 has no name, or another's"),
        (",", "there is no key in it"),
        ("file:/nowhere/at/all", r"can't be read \(FileNotFoundError\)"),
    ],
)
def test_a_master_key_that_is_none_is_explained(setting: str, why: str) -> None:
    with pytest.raises(BadKeysSetting, match=why) as refused:
        Masters(setting)
    assert setting.partition(":")[2][:20] not in str(refused.value) or setting.startswith(("file:", ",", "plain"))


def test_a_master_key_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "master").write_text(f"{SECOND}\n{FIRST}\n")

    assert Masters(f"file:{tmp_path / 'master'}").newest == "second"


def test_keys_without_a_master_key_are_no_reason_to_write_in_clear_text(tmp_path: Path) -> None:
    assert open_keyring("", "", data_dir=tmp_path) is None
    (tmp_path / FILE).touch()

    with pytest.raises(BadKeysSetting, match="sessions were encrypted here"):
        open_keyring("", "", data_dir=tmp_path)
    with pytest.raises(BadKeysSetting, match="LONGHAUL_MASTER_KEY is not set, but LONGHAUL_KEYS is"):
        open_keyring("redis://host", "", data_dir=tmp_path)
    with pytest.raises(BadKeysSetting, match="nothing is known of 'postgresql'"):
        open_keyring("postgresql://host/db", FIRST, data_dir=tmp_path)
