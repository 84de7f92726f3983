"""What every blob store does: the same promises over a directory and over Redis."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.blobs.blobs import LARGEST_BLOB, BlobStore, NoBlob, delete_session_blobs, key_of, session_prefix

LIGHTHOUSE = session_prefix("default", "longhaul:ana:lighthouse")
HARBOUR = session_prefix("default", "longhaul:ana:harbour")
LOG = b"day 1: fog\n" * 50_000


@pytest.fixture(params=["directory", pytest.param("redis", marks=pytest.mark.redis)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    prefix = f"?prefix={tmp_path.name}:"
    setting = "" if request.param == "directory" else request.getfixturevalue("redis_url") + prefix
    opened = open_blobs(setting, data_dir=tmp_path)
    yield opened
    await opened.close()


async def test_what_was_put_is_got(store: BlobStore) -> None:
    key = key_of(LIGHTHOUSE, LOG)

    await store.put(key, LOG)

    assert await store.get(key) == LOG


@pytest.mark.parametrize("data", [b"", b"\0\xff\r\n", bytes(range(256)) * 40_000])
async def test_any_bytes_come_back_as_they_were(store: BlobStore, data: bytes) -> None:
    key = key_of(LIGHTHOUSE, data)

    await store.put(key, data)

    assert await store.get(key) == data


async def test_what_was_never_put_is_no_blob(store: BlobStore) -> None:
    with pytest.raises(NoBlob, match="there is no blob"):
        await store.get(key_of(LIGHTHOUSE, b"never"))


async def test_the_same_bytes_of_another_session_are_another_blob(store: BlobStore) -> None:
    await store.put(key_of(LIGHTHOUSE, LOG), LOG)

    with pytest.raises(NoBlob):
        await store.get(key_of(HARBOUR, LOG))


async def test_twice_the_same_is_one_blob(store: BlobStore) -> None:
    key = key_of(LIGHTHOUSE, LOG)

    await store.put(key, LOG)
    await store.put(key, LOG)

    assert await store.keys(LIGHTHOUSE) == [key]


async def test_bytes_are_refused_under_the_key_of_others(store: BlobStore) -> None:
    with pytest.raises(ValueError, match="the key of other bytes"):
        await store.put(key_of(LIGHTHOUSE, b"fog"), b"sun")

    assert await store.keys(LIGHTHOUSE) == []


async def test_what_no_reader_could_hold_is_refused(store: BlobStore) -> None:
    huge = bytes(LARGEST_BLOB + 1)

    with pytest.raises(ValueError, match="64000 kB"):
        await store.put(key_of(LIGHTHOUSE, huge), huge)


@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../" * 9 + "etc/passwd", f"{LIGHTHOUSE}/..", f"{LIGHTHOUSE}/{'a' * 63}/", f"{LIGHTHOUSE}/*",
     f"{LIGHTHOUSE}/{'a' * 64}\n", f"{LIGHTHOUSE.upper()}/{'a' * 64}", f"x/{LIGHTHOUSE}/{'a' * 64}", "\0" * 122],
)  # fmt: skip
async def test_a_key_that_nobody_made_by_key_of_reaches_no_store(store: BlobStore, key: str) -> None:
    with pytest.raises(ValueError, match="no key of a blob"):
        await store.get(key)
    with pytest.raises(ValueError, match="no key of a blob"):
        await store.put(key, b"x")


@pytest.mark.parametrize("prefix", ["", "..", "/", LIGHTHOUSE[:16], f"{LIGHTHOUSE}/", "*", f"{LIGHTHOUSE[:-1]}*"])
async def test_nothing_is_deleted_by_a_prefix_that_is_no_session(store: BlobStore, prefix: str) -> None:
    await store.put(key_of(LIGHTHOUSE, LOG), LOG)

    with pytest.raises(ValueError, match="no prefix of a session"):
        await store.delete_prefix(prefix)

    assert await store.get(key_of(LIGHTHOUSE, LOG)) == LOG


async def test_deleting_a_session_deletes_its_blobs_and_no_others(store: BlobStore) -> None:
    pages = [f"page {number}".encode() for number in range(250)]
    await asyncio.gather(*(store.put(key_of(LIGHTHOUSE, page), page) for page in pages))
    await store.put(key_of(HARBOUR, LOG), LOG)

    deleted = await delete_session_blobs(store, "longhaul:ana:lighthouse")

    assert deleted == 250
    assert await store.keys(LIGHTHOUSE) == []
    assert await store.keys(HARBOUR) == [key_of(HARBOUR, LOG)]
    assert await delete_session_blobs(store, "longhaul:ana:lighthouse") == 0


async def test_many_writers_of_one_blob_all_succeed(store: BlobStore) -> None:
    key = key_of(LIGHTHOUSE, LOG)

    await asyncio.gather(*(store.put(key, LOG) for _ in range(30)))

    assert await store.get(key) == LOG
    assert await store.keys(LIGHTHOUSE) == [key]


async def test_a_blob_put_while_its_session_is_deleted_is_there_or_gone_but_never_half(store: BlobStore) -> None:
    pages = [bytes([number]) * 20_000 for number in range(40)]

    async def write() -> None:
        for page in pages:
            await store.put(key_of(LIGHTHOUSE, page), page)

    writing = asyncio.create_task(write())
    while not writing.done():
        await store.delete_prefix(LIGHTHOUSE)
        await asyncio.sleep(0.03)
    await writing

    for page in pages:
        try:
            assert await store.get(key_of(LIGHTHOUSE, page)) == page
        except NoBlob as gone:
            assert "there is no blob" in str(gone)  # noqa: PT017  both outcomes are right


def test_sessions_with_similar_names_share_no_prefix() -> None:
    pairs = [("default", "a:b"), ("default", "a"), ("default:a", "b"), ("", "default:a:b"), ("Default", "a:b")]

    assert len({session_prefix(namespace, name) for namespace, name in pairs}) == len(pairs)


async def test_a_store_is_known_by_the_mark_that_the_first_worker_left(store: BlobStore) -> None:
    before = await store.mark()

    marks = await asyncio.gather(*(store.mark(f"worker{number}") for number in range(8)))

    assert before == ""
    assert set(marks) == {await store.mark()}
    assert marks[0].startswith("worker")
    assert await store.keys(LIGHTHOUSE) == []
