"""Both stores of live streams keep the same promises; the directory's own are below them."""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import asyncinotify
import pytest

from longhaul.stores.streams import stream_directory
from longhaul.stores.streams.open_streams import open_streams, reach
from longhaul.stores.streams.redis_streams import RedisStreams, without_login
from longhaul.stores.streams.stream_directory import DirectoryStreams, numbers
from longhaul.stores.streams.streams import BadStreamsSetting, StreamReader, Streams, StreamsUnavailable, key_of
from tests.limits import SURE_SECONDS, usual
from tests.servers.local import free_port


@pytest.fixture(params=["directory", "directory that tells nothing", pytest.param("redis", marks=pytest.mark.redis)])
async def streams(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Streams]:
    if request.param.endswith("nothing"):
        monkeypatch.setattr(asyncinotify, "Inotify", none_left)
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    opened = open_streams(url, data_dir=tmp_path)
    yield opened
    await opened.close()


def none_left() -> NoReturn:
    """As the system answers a user who has as many as may be had."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.fixture
def key() -> str:
    return key_of("default", f"longhaul/lamp/~/{uuid4().hex}")


def folders(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.is_dir())


async def all_of(reader: StreamReader, count: int) -> list[bytes]:
    """So many lines; fewer when no more come."""
    lines: list[bytes] = []
    while len(lines) < count and (more := await reader.read(SURE_SECONDS)):
        lines += more
    await reader.close()
    return lines


async def test_every_reader_gets_all_lines_in_order_also_one_that_comes_late(streams: Streams, key: str) -> None:
    early = streams.reader(key)
    following = asyncio.create_task(all_of(early, 60))
    for number in range(30):
        await streams.append(key, b"%d first\n%d second\n" % (number, number))

    expected = [b"%d %s" % (number, word) for number in range(30) for word in (b"first", b"second")]
    assert await following == expected
    assert await all_of(streams.reader(key), 60) == expected


async def test_a_reader_waits_no_longer_than_it_was_told(streams: Streams, key: str) -> None:
    reader = streams.reader(key)
    began = time.monotonic()

    assert await reader.read(0.1) == []

    assert 0.09 < time.monotonic() - began < usual(15)
    await reader.close()


async def test_a_line_is_read_within_moments_of_being_written(streams: Streams, key: str) -> None:
    reader = streams.reader(key)
    waiting = asyncio.create_task(reader.read(SURE_SECONDS))
    await asyncio.sleep(0.1)
    began = time.monotonic()

    await streams.append(key, b"now\n")

    assert await waiting == [b"now"]
    assert time.monotonic() - began < usual(30)
    await reader.close()


@pytest.mark.parametrize("session", ["../../etc/passwd", "a/b", "*", "x" * 250, "{tag}", "Ä\n\0", ".", "", "~"])
async def test_a_hostile_name_is_a_name_like_any_other(streams: Streams, session: str, tmp_path: Path) -> None:
    session = f"{session}{uuid4().hex}" if len(session) < 200 else session
    mine, other = key_of("default", session), key_of("default", f"{session}2")
    await streams.append(mine, b"mine\n")

    assert await all_of(streams.reader(mine), 1) == [b"mine"]
    reader = streams.reader(other)
    assert await reader.read(0.01) == []
    await reader.close()
    assert folders(tmp_path) in ([], ["streams"])


async def test_a_deleted_stream_is_gone_and_may_begin_again(streams: Streams, key: str) -> None:
    reader = streams.reader(key)
    await streams.append(key, b"old\n")
    assert await reader.read(SURE_SECONDS) == [b"old"]

    assert await streams.delete(key)
    assert not await streams.delete(key)
    await streams.append(key, b"new\n")

    assert await reader.read(SURE_SECONDS) == [b"new"]
    assert await all_of(streams.reader(key), 1) == [b"new"]
    await reader.close()


async def test_a_client_finds_the_stream_by_the_address_that_the_worker_tells(streams: Streams, key: str) -> None:
    await streams.append(key, b"hello\n")

    reached = await reach(streams.address)

    assert await all_of(reached.reader(key), 1) == [b"hello"]
    await reached.close()


async def test_several_writers_lose_nothing_to_each_other(tmp_path: Path, key: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(stream_directory, "FILE_BYTES", 4_000)
    monkeypatch.setattr(stream_directory, "FILES_KEPT", 1_000)
    writers = [DirectoryStreams(tmp_path) for _ in range(4)]

    async def write(name: int) -> None:
        for number in range(200):
            await writers[name].append(key, b"%d:%d %s\n" % (name, number, b"x" * 50))

    await asyncio.gather(*(write(name) for name in range(4)))

    lines = await all_of(writers[0].reader(key), 800)
    assert len(lines) == 800
    for name in range(4):
        mine = [int(line.split()[0].split(b":")[1]) for line in lines if line.startswith(b"%d:" % name)]
        assert mine == list(range(200))


async def test_old_files_are_dropped_and_a_slow_reader_goes_on_with_what_is_left(
    tmp_path: Path, key: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(stream_directory, "FILE_BYTES", 1_000)
    streams = DirectoryStreams(tmp_path)
    slow = streams.reader(key)
    await streams.append(key, b"0\n")
    assert await slow.read(SURE_SECONDS) == [b"0"]

    for number in range(1, 100):
        await streams.append(key, b"%d %s\n" % (number, b"x" * 200))

    (folder,) = folders(tmp_path)
    assert len(numbers(tmp_path / folder)) == stream_directory.FILES_KEPT
    lines = [line async for line in read_until_silent(slow)]
    assert lines[-1].startswith(b"99 ")
    assert len(lines) < 99


async def read_until_silent(reader: StreamReader) -> AsyncIterator[bytes]:
    while lines := await reader.read(0.1):
        for line in lines:
            yield line


async def test_a_torn_line_is_given_when_its_rest_has_come(tmp_path: Path, key: str) -> None:
    streams = DirectoryStreams(tmp_path)
    reader = streams.reader(key)
    await streams.append(key, b'whole\n{"k":')
    assert await reader.read(SURE_SECONDS) == [b"whole"]
    assert await reader.read(0.05) == []

    await streams.append(key, b'"wake"}\n')

    assert await reader.read(SURE_SECONDS) == [b'{"k":"wake"}']


def written_long_ago(folder: Path) -> None:
    long_ago = time.time() - stream_directory.KEPT_SECONDS - 60
    for path in (next(folder.iterdir()), folder):
        os.utime(path, (long_ago, long_ago))


async def test_a_session_that_was_silent_for_long_loses_its_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the second look: a clock that has jumped ahead makes those old at the first that are written to just now."""
    monkeypatch.setattr(stream_directory, "SWEEP_SECONDS", 0.0)
    streams = DirectoryStreams(tmp_path)
    for name in ("old", "young", "new"):
        await streams.append(name, b"line\n")
    for name in ("old", "young"):
        written_long_ago(tmp_path / name)

    await streams.append("new", b"line\n")
    there = folders(tmp_path)
    await DirectoryStreams(tmp_path).append("young", b"line\n")
    await streams.append("new", b"line\n")

    assert there == ["new", "old", "young"]
    assert folders(tmp_path) == ["new", "young"]


@pytest.mark.parametrize("hours", [-24, 24])
async def test_a_reader_goes_on_to_the_next_file_by_whatever_clock_files_have_their_times(
    tmp_path: Path, hours: int
) -> None:
    """A clock that was set back since leaves files behind that are written to tomorrow."""
    folder = tmp_path / "x"
    folder.mkdir()
    moment = time.time() + hours * 3_600
    for number, name in enumerate(("first", "second"), start=1):
        (folder / f"{number:014d}.jsonl").write_text(f"{name}\n")
        os.utime(folder / f"{number:014d}.jsonl", (moment, moment))
    reader = DirectoryStreams(tmp_path).reader("x")

    read = [line for _ in range(2) for line in await reader.read(5.0)]
    (folder / "00000000000003.jsonl").write_text("third\n")
    os.utime(folder, (moment, moment))
    read += await reader.read(5.0)

    assert read == [b"first", b"second", b"third"]


async def test_a_stream_that_another_writer_is_just_beginning_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    (tmp_path / ".started").mkdir()

    await DirectoryStreams(tmp_path).append("new", b"line\n")

    assert (tmp_path / ".started").is_dir()


async def test_the_same_path_on_another_machine_is_not_taken_for_the_stream(tmp_path: Path) -> None:
    address = DirectoryStreams(tmp_path / "one").address
    (tmp_path / "one").rename(tmp_path / "elsewhere")

    with pytest.raises(StreamsUnavailable, match="no live streams in"):
        await reach(address)
    assert DirectoryStreams(tmp_path / "one").address != address
    with pytest.raises(StreamsUnavailable, match="not where the session's worker writes"):
        await reach(address)


async def test_a_directory_that_cannot_be_written_is_said_to_be_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    streams = DirectoryStreams(tmp_path / "file")

    with pytest.raises(StreamsUnavailable, match="can't be written"):
        await streams.append("x", b"line\n")
    with pytest.raises(StreamsUnavailable, match="can't be written"):
        _ = streams.address


async def test_a_redis_that_is_not_there_is_said_to_be_unavailable() -> None:
    address = f"redis://127.0.0.1:{free_port()}"
    streams = RedisStreams(address)

    with pytest.raises(StreamsUnavailable, match="can't be used"):
        await streams.append("x", b"line\n")
    reader = streams.reader("x")
    with pytest.raises(StreamsUnavailable, match="can't be read"):
        await reader.read(0.1)
    await reader.close()
    with pytest.raises(StreamsUnavailable, match="can't be used"):
        await reach(address)
    await streams.close()


@pytest.mark.parametrize("address", ["", "ftp://x", "redis://", "file://", "redis://h:notaport", "http://[", "x"])
async def test_an_address_that_names_nothing_is_said_to_be_unavailable(address: str) -> None:
    with pytest.raises(StreamsUnavailable):
        await reach(address)


def test_no_password_is_told_with_an_address() -> None:
    told = without_login("rediss://ana:secret@h1:7000,h2:7001/2?prefix=x&ca=/etc/ca.pem")

    assert told == "rediss://h1:7000,h2:7001/2?prefix=x"


def test_a_setting_that_names_no_redis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadStreamsSetting, match="LONGHAUL_REDIS_URL: 'http' is no kind of Redis"):
        open_streams("http://localhost", data_dir=tmp_path)
