"""What a worker's identity tells of its places, and how a place is named for people."""

from pathlib import Path

import pytest

from longhaul.starter.connection.storage_places import Keeper, StoragePlace, described, keeper_of, own_identity
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blob_directory import DirectoryBlobs
from longhaul.stores.state.file_store import FileStore


async def test_a_worker_says_where_it_keeps_what(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    store, blobs = FileStore(tmp_path / "sessions"), DirectoryBlobs(tmp_path / "blobs")

    first = keeper_of(await own_identity(settings, store, blobs))
    again = keeper_of(await own_identity(settings, store, blobs))
    other = keeper_of(await own_identity(settings, FileStore(tmp_path / "other"), blobs))

    assert first is not None
    assert first == again
    assert (first.store.kind, len(first.store.mark), first.blobs.kind) == ("file", 4, "file")
    assert other is not None
    assert (other.store == first.store, other.blobs == first.blobs) == (False, True)


async def test_a_worker_whose_places_do_not_answer_says_so_and_starts(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    settings = Settings(data_dir=tmp_path, store="postgresql://ana:violet@127.0.0.1:1/x", blobs="redis://127.0.0.1:1")
    told = await own_identity(settings, FileStore(tmp_path / "taken"), DirectoryBlobs(tmp_path / "taken" / "blobs"))

    keeper = keeper_of(told)

    assert keeper is not None
    assert (keeper.store, keeper.blobs) == (StoragePlace("postgresql", "?"), StoragePlace("redis", "?"))


@pytest.mark.parametrize(
    "identity",
    [
        "",
        "12@host",
        "a/b/c",
        "12@host/file:1",
        "12@host/file:1:2/file:3",
        "//",
        "12@h/fabcd/fabcd",
        "12@h/abcde/fabcd/fabcd",
    ],
)
def test_what_is_no_worker_of_ours_says_nothing(identity: str) -> None:
    assert keeper_of(identity) is None


def test_a_host_of_any_name_is_told_from_the_places() -> None:
    told = keeper_of("12@odd/host:1/ab-_/redis:aa/own:bb")

    assert told == Keeper("12@odd/host:1", "ab-_", StoragePlace("redis", "aa"), StoragePlace("own", "bb"))


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("file", "/srv/data/sessions (file:aa)"),
        ("file:///mnt/kept", "/mnt/kept (file:aa)"),
        ("sqlite:////mnt/kept.db", "/mnt/kept.db (sqlite:aa)"),
        ("redis://ana:violet@cache:6379/3?prefix=x", "cache:6379/3 (redis:aa)"),
        ("rediss+cluster://one:1,two:2", "one:1,two:2 (rediss:aa)"),
        ("postgresql://ana:violet@db/main", "db/main (postgresql:aa)"),
        ("memory", "memory (memory:aa)"),
        ("mine.stores:Kept", "mine.stores:Kept (own:aa)"),
    ],
)
def test_a_store_is_named_without_its_password(setting: str, shown: str) -> None:
    settings = Settings(data_dir=Path("/srv/data"), store=setting)
    kind = shown.rpartition("(")[2].partition(":")[0]

    assert described(settings, "store", StoragePlace(kind, "aa")) == shown
