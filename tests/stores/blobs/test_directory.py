"""Blobs in a directory: what lies on the disk, whatever happens to the writers."""

import asyncio
import os
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

from longhaul.stores.blobs import blob_directory
from longhaul.stores.blobs.blob_directory import DirectoryBlobs, open_blobs
from longhaul.stores.blobs.blobs import BadBlobsSetting, BlobsUnavailable, NoBlob, key_of, session_prefix

SESSION = session_prefix("default", "longhaul:ana:lighthouse")
LOG = b"day 1: fog\n" * 20_000
KEY = key_of(SESSION, LOG)


def the_file(root: Path) -> Path:
    (path,) = (path for path in root.rglob("*") if path.is_file())
    return path


async def test_nobody_but_the_owner_may_read_it(tmp_path: Path) -> None:
    root = tmp_path / "blobs"

    await DirectoryBlobs(root).put(KEY, LOG)

    assert stat.S_IMODE(the_file(root).stat().st_mode) == 0o600
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


@pytest.mark.parametrize(
    "damaged", [b"", LOG[:-1], LOG + b"x", b"y" + LOG[1:]], ids=["empty", "cut", "longer", "other"]
)
async def test_a_damaged_blob_is_none_and_is_fixed_by_the_next_writer(tmp_path: Path, damaged: bytes) -> None:
    blobs = DirectoryBlobs(tmp_path)
    await blobs.put(KEY, LOG)
    the_file(tmp_path).write_bytes(damaged)

    with pytest.raises(NoBlob, match="is damaged"):
        await blobs.get(KEY)
    await blobs.put(KEY, LOG)

    assert await blobs.get(KEY) == LOG


async def test_a_directory_in_the_place_of_a_blob_is_no_blob(tmp_path: Path) -> None:
    blobs = DirectoryBlobs(tmp_path)
    await blobs.put(KEY, LOG)
    path = the_file(tmp_path)
    path.unlink()
    path.mkdir()

    with pytest.raises(NoBlob):
        await blobs.get(KEY)


async def test_a_disk_that_does_not_answer_is_unavailable_and_keeps_none_of_the_loops_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_threads: int
) -> None:
    monkeypatch.setattr(blob_directory, "ANSWER_SECONDS", 0.2)
    blobs = DirectoryBlobs(tmp_path)
    await blobs.put(KEY, LOG)
    path = the_file(tmp_path)
    path.unlink()
    os.mkfifo(path)  # whoever opens it to read waits for a writer

    for _ in range(own_threads):
        with pytest.raises(BlobsUnavailable, match=r"did not answer within 0\.2 seconds"):
            await blobs.get(KEY)

    async with asyncio.timeout(5):
        assert await asyncio.to_thread(os.getpid) == os.getpid()
    os.close(os.open(path, os.O_RDWR))


async def test_a_place_that_can_not_be_written_is_said_with_its_path(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("not a folder")

    with pytest.raises(BlobsUnavailable, match="taken"):
        await DirectoryBlobs(taken).put(KEY, LOG)


async def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    blobs = DirectoryBlobs(tmp_path)
    await blobs.put(KEY, LOG)
    before = the_file(tmp_path).stat()

    await blobs.put(KEY, LOG)

    assert the_file(tmp_path).stat().st_ino == before.st_ino


WRITER = """
import asyncio, sys
from pathlib import Path
from longhaul.stores.blobs.blobs import key_of, session_prefix
from longhaul.stores.blobs.blob_directory import DirectoryBlobs

async def main():
    blobs = DirectoryBlobs(Path(sys.argv[1]))
    prefix = session_prefix("default", "longhaul:ana:lighthouse")
    for number in range(1_000_000):
        data = number.to_bytes(4, "big") * 500_000
        await blobs.put(key_of(prefix, data), data)
        print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("milliseconds", [0, 3, 7])
async def test_a_killed_writer_leaves_whole_blobs_and_each_that_it_has_reported(
    tmp_path: Path, milliseconds: int
) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(tmp_path), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert writer.stdout is not None
    for _ in range(3):
        await writer.stdout.readline()
    await asyncio.sleep(milliseconds / 1000)
    os.kill(writer.pid, signal.SIGKILL)
    reported = 3 + len((await writer.stdout.read()).splitlines())
    await writer.wait()

    blobs = DirectoryBlobs(tmp_path)
    kept = await blobs.keys(SESSION)
    assert len(kept) in (reported, reported + 1)
    for key in kept:
        assert len(await blobs.get(key)) == 2_000_000


async def test_what_a_killed_writer_left_is_swept_after_an_hour_and_never_listed(tmp_path: Path) -> None:
    blobs = DirectoryBlobs(tmp_path)
    await blobs.put(KEY, LOG)
    left, fresh = (the_file(tmp_path).with_name(f"{name}.tmp") for name in ("left", "fresh"))
    for path in (left, fresh):
        path.write_bytes(b"half")
    old = time.time() - 4_000
    os.utime(left, (old, old))

    assert await blobs.keys(SESSION) == [KEY]
    await blobs.put(key_of(SESSION, b"next"), b"next")

    assert (left.exists(), fresh.exists()) == (False, True)
    assert await blobs.delete_prefix(SESSION) == 2
    assert not fresh.exists()


REPOSITORY = Path(__file__).parents[3]
PUT = """
import asyncio, sys, time
from pathlib import Path

from longhaul.stores.blobs.blob_directory import DirectoryBlobs

right = time.time
time.time = lambda: right() + 86_400
asyncio.run(DirectoryBlobs(Path(sys.argv[1])).put(sys.argv[2], b"next"))
"""


async def test_a_writer_whose_clock_is_a_day_ahead_leaves_alone_what_another_one_writes(tmp_path: Path) -> None:
    await DirectoryBlobs(tmp_path).put(KEY, LOG)
    fresh = the_file(tmp_path).with_name("fresh.tmp")
    fresh.write_bytes(b"half")

    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PUT, str(tmp_path), key_of(SESSION, b"next"), cwd=REPOSITORY
    )

    assert await writer.wait() == 0
    assert fresh.exists()


@pytest.mark.parametrize(
    ("setting", "place"),
    [("", "/home/ana/data/blobs"), ("/srv/blobs", "/srv/blobs"), ("file:///srv/my%20blobs", "/srv/my blobs"),
     ("redis://ana:secret@cache:7000/2", "Redis at cache:7000")],
)  # fmt: skip
async def test_a_setting_names_a_place(setting: str, place: str) -> None:
    blobs = open_blobs(setting, data_dir=Path("/home/ana/data"))

    assert blobs.place == place
    await blobs.close()


@pytest.mark.parametrize(
    ("setting", "why"),
    [("blobs", "no absolute path"), ("/", "no absolute path"), ("/srv/\0", "no absolute path"),
     ("file://host/srv", "names a host"), ("s3://bucket", "nothing is known of s3"), ("redis://a:b:c", "no host:port"),
     ("redis://[", "no URL"), ("redis://x/y", "no number of a Redis database")],
)  # fmt: skip
def test_a_setting_that_names_none_is_refused_with_what_to_do(setting: str, why: str) -> None:
    with pytest.raises(BadBlobsSetting, match=r"^LONGHAUL_BLOBS: ") as refused:
        open_blobs(setting, data_dir=Path("/home/ana/data"))

    assert why in str(refused.value)


async def test_a_redis_that_is_not_there_is_unavailable_and_not_empty() -> None:
    blobs = open_blobs("redis://:secret@127.0.0.1:1", data_dir=Path("/"))

    with pytest.raises(BlobsUnavailable, match=r"Redis at 127\.0\.0\.1:1") as refused:
        await blobs.get(KEY)

    assert "secret" not in str(refused.value)
    await blobs.close()
