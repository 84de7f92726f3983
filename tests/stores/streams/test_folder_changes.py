"""A reader of a directory is woken by what is written there, and looks at nothing meanwhile."""

import asyncio
import gc
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from longhaul.stores.streams import stream_directory
from longhaul.stores.streams.stream_directory import DirectoryReader, DirectoryStreams
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
KEY = "default/longhaul/lamp/~/told"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When readers have looked."""
    times: list[float] = []
    look = vars(DirectoryReader)["_look"]

    def counted(reader: DirectoryReader) -> Any:
        times.append(time.monotonic())
        return look(reader)

    monkeypatch.setattr(DirectoryReader, "_look", counted)
    return times


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def under(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


async def test_whoever_waits_looks_once_a_second_at_most(tmp_path: Path, looks: list[float]) -> None:
    streams = DirectoryStreams(tmp_path)
    assert streams.address
    early = streams.reader("default/not/yet/there")
    await streams.append(KEY, b"one\n")
    reader = streams.reader(KEY)
    assert await reader.read(SURE_SECONDS) == [b"one"]
    looks.clear()

    await asyncio.gather(reader.read(2.5), early.read(2.5))

    assert len(looks) <= 10, looks
    await asyncio.gather(reader.close(), early.close())


async def test_what_another_process_writes_is_read_at_once(tmp_path: Path) -> None:
    streams = DirectoryStreams(tmp_path)
    await streams.append(KEY, b"0\n")
    reader = streams.reader(KEY)
    await reader.read(SURE_SECONDS)
    (file,) = under(tmp_path, "*/*.jsonl")
    program = "import os, sys, time\nfor _ in range(20):\n time.sleep(0.05)\n os.write(1, b'%d\\n' % time.time_ns())"
    late: list[float] = []

    with file.open("ab") as written:
        writer = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=written)
    while len(late) < 20:
        lines = await reader.read(SURE_SECONDS)
        late += [(time.time_ns() - int(line)) / 1e9 for line in lines]

    assert await writer.wait() == 0
    assert statistics.median(late) < 0.1, late
    await reader.close()


async def test_a_reader_that_came_before_the_folder_is_woken_by_it(tmp_path: Path, looks: list[float]) -> None:
    streams = DirectoryStreams(tmp_path)
    assert streams.address
    reader = streams.reader(KEY)
    waiting = asyncio.create_task(reader.read(SURE_SECONDS))
    await asyncio.sleep(0.1)
    looks.clear()

    await streams.append(KEY, b"one\n")

    assert await waiting == [b"one"]
    assert len(looks) <= 5, looks
    await reader.close()


async def test_a_folder_that_is_deleted_and_made_again_is_followed(tmp_path: Path) -> None:
    streams = DirectoryStreams(tmp_path)
    reader = streams.reader(KEY)
    for number in range(5):
        await streams.append(KEY, b"%d\n" % number)
        assert await reader.read(SURE_SECONDS) == [b"%d" % number]
        waiting = asyncio.create_task(reader.read(SURE_SECONDS))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(shutil.rmtree, under(tmp_path, "*/")[0])
        await asyncio.sleep(0.05)
        await DirectoryStreams(tmp_path).append(KEY, b"again %d\n" % number)
        assert await waiting == [b"again %d" % number]
    await reader.close()


async def test_five_hundred_readers_have_one_descriptor_and_leave_none(tmp_path: Path) -> None:
    streams = DirectoryStreams(tmp_path)
    for number in range(50):
        await streams.append(f"default/{number}", b"one\n")
    before = descriptors()
    readers = [streams.reader(f"default/{number % 50}") for number in range(500)]
    await asyncio.gather(*(reader.read(SURE_SECONDS) for reader in readers))
    waiting = [asyncio.create_task(reader.read(SURE_SECONDS)) for reader in readers]
    await asyncio.sleep(0.2)

    assert descriptors() <= before + 3
    await asyncio.gather(*(streams.append(f"default/{number}", b"two\n") for number in range(50)))
    assert await asyncio.gather(*waiting) == [[b"two"]] * 500

    await asyncio.gather(*(reader.close() for reader in readers[:400]))
    del readers, waiting  # a hundred that nobody closes
    gc.collect()
    await asyncio.gather(*(streams.append(f"default/{number}", b"three\n") for number in range(50)))
    async with asyncio.timeout(SURE_SECONDS):
        while descriptors() > before:  # noqa: ASYNC110  the system tells of it
            await asyncio.sleep(0.02)


def test_one_loop_after_another_hears(tmp_path: Path) -> None:
    async def once(number: int) -> None:
        streams = DirectoryStreams(tmp_path)
        await streams.append(KEY, b"%d\n" % number)
        reader = streams.reader(KEY)
        assert (await reader.read(SURE_SECONDS))[-1] == b"%d" % number
        waiting = asyncio.create_task(reader.read(SURE_SECONDS))
        await asyncio.sleep(0.05)
        await streams.append(KEY, b"more\n")
        assert await waiting == [b"more"]
        assert stream_directory.of_this_loop().tell(tmp_path, asyncio.Event())

    for number in range(3):
        asyncio.run(once(number))
    gc.collect()
    assert not [loop for loop in vars(stream_directory)["_changes"] if loop.is_closed()]
