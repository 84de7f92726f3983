"""Of a worker that died, another one finds the calls that it ran; of one that lives, nobody does."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.stores import leases as leases_module
from longhaul.stores.leases import (
    MOST_SLOTS,
    SLOT_BYTES,
    DirectoryLeases,
    LeasedCall,
    Leases,
    LeasesUnavailable,
    call_in,
)
from longhaul.stores.redis_leases import LOOKS, RedisLeases
from tests.workflows.operations import until

ROOT = Path(__file__).parents[2]
READ, ONCE = LeasedCall(b"token of a read", runs_once=False), LeasedCall(b"\x00\xff token", runs_once=True)
QUEUE = "default/longhaul queue/1"
DIES = """
import asyncio, os, sys
from pathlib import Path
from longhaul.stores import leases as leases_module
from longhaul.stores.leases import DirectoryLeases, LeasedCall
from longhaul.stores.redis_leases import RedisLeases

async def main(url, folder, queue, *tokens):
    leases = RedisLeases(url, queue) if url else DirectoryLeases(Path(folder), queue)
    over = LeasedCall(b"ended before", runs_once=False)
    leases.hold(over)
    for token in tokens:
        leases.hold(LeasedCall(bytes.fromhex(token[1:]), runs_once=token[0] == "o"))
    leases.release(over)
    while url and leases._writing is not None and not leases._writing.done():
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), 9)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["directory", pytest.param("redis", marks=pytest.mark.redis)])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("redis_url")) if request.param == "redis" else ""


@pytest.fixture
async def looking(url: str, tmp_path: Path) -> AsyncIterator[Leases]:
    leases = opened(url, tmp_path)
    yield leases
    await leases.close()


def opened(url: str, folder: Path) -> Leases:
    return RedisLeases(url, f"{QUEUE}{folder}") if url else DirectoryLeases(folder, QUEUE)


def killed(url: str, folder: Path, *calls: LeasedCall) -> None:
    """A process of its own is killed while it runs these calls."""
    tokens = [("o" if call.runs_once else "r") + call.token.hex() for call in calls]
    queue = f"{QUEUE}{folder}" if url else QUEUE
    done = subprocess.run([sys.executable, "-c", DIES, url, str(folder), queue, *tokens], cwd=ROOT, check=False)
    assert done.returncode == -9


async def gone(folder: Path, *calls: LeasedCall) -> None:
    """The same without a process: a copy of its file, on which nobody has a lock."""
    leases = DirectoryLeases(folder, QUEUE)
    for call in calls:
        leases.hold(call)
    (file,) = files(folder)
    shutil.copy(file, file.with_name("of-a-dead-one"))
    await leases.close()


def files(folder: Path) -> list[Path]:
    """Of all workers."""
    return [path for path in (folder / "leases").rglob("*") if path.is_file()]


class Found:
    """What was found at some looks."""

    def __init__(self) -> None:
        self.calls = list[LeasedCall]()

    async def take(self, calls: list[LeasedCall]) -> None:
        self.calls += calls

    async def after(self, leases: Leases, looks: int = LOOKS + 1) -> set[LeasedCall]:
        for _ in range(looks):
            await leases.look(self.take)
        return set(self.calls)


async def test_the_calls_of_a_dead_worker_are_found_once_and_those_that_run_once_where_it_is_surely_dead(
    looking: Leases, url: str, tmp_path: Path
) -> None:
    found, other = Found(), opened(url, tmp_path)
    killed(url, tmp_path, READ, ONCE, LeasedCall(b"another", runs_once=False))

    for _ in range(LOOKS + 1):
        await asyncio.gather(looking.look(found.take), other.look(found.take))

    certain = [] if url else [ONCE.token]
    assert sorted(call.token for call in found.calls) == [*certain, b"another", READ.token]
    assert await Found().after(looking) == set()
    await other.close()


async def test_a_worker_that_lives_is_left_alone_and_one_that_stops_in_order_leaves_nothing(
    looking: Leases, url: str, tmp_path: Path
) -> None:
    living = opened(url, tmp_path)
    living.hold(READ)
    found = Found()

    for _ in range(LOOKS + 1):
        assert await living.look(found.take)
        assert await looking.look(found.take)
    await living.close()

    assert found.calls == []
    assert await found.after(looking) == set()
    assert url or files(tmp_path) == []


async def test_workers_of_another_queue_do_not_look(tmp_path: Path) -> None:
    await gone(tmp_path, READ)
    other = DirectoryLeases(tmp_path, "default/other")

    assert await Found().after(other) == set()
    await other.close()


async def test_of_another_host_no_worker_is_taken_as_dead_for_its_lock_may_not_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boot_id").write_text("7d1f0c1e-other\n")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(leases_module, "BOOT_ID", tmp_path / "boot_id")
        await gone(tmp_path, READ)
    here = DirectoryLeases(tmp_path, QUEUE)

    assert await Found().after(here) == set()
    assert len(files(tmp_path)) == 1
    await here.close()


async def test_a_call_is_noted_again_in_the_place_of_one_that_has_ended(tmp_path: Path) -> None:
    leases = DirectoryLeases(tmp_path, QUEUE)
    many = [LeasedCall(str(number).encode(), runs_once=False) for number in range(MOST_SLOTS + 5)]
    for call in many:
        leases.hold(call)
    for call in many:
        leases.release(call)
    leases.hold(LeasedCall(b"x" * SLOT_BYTES, runs_once=False))  # too long to be noted: the heartbeats are left
    leases.hold(READ)

    (file,) = files(tmp_path)
    assert call_in(file.read_bytes().partition(b"\n")[0]) == READ
    await leases.close()


@pytest.mark.parametrize(
    "rubbish",
    [b"", b"\n\n", b"\xff" * 5_000, b'{"token": 7, "once": 1}\n', b'{"token": "%%", "once": false}\n', b"[" * 9_000],
)
async def test_what_no_worker_has_written_is_passed_over(tmp_path: Path, rubbish: bytes) -> None:
    leases = DirectoryLeases(tmp_path, QUEUE)
    await gone(tmp_path, READ)
    folder = files(tmp_path)[0].parent
    (folder / "rubbish").write_bytes(rubbish)
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(tmp_path / "nowhere")

    assert await Found().after(leases) == {READ}
    await leases.close()


async def test_a_folder_that_can_not_be_made_is_said_and_stops_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "leases").write_text("a file stands there")
    leases = DirectoryLeases(tmp_path, QUEUE)

    leases.hold(READ)
    leases.release(READ)

    assert await Found().after(leases) == set()
    assert "noticed by its heartbeats alone" in caplog.text
    await leases.close()


async def test_a_failure_in_the_midst_leaves_the_calls_for_the_next_look(tmp_path: Path) -> None:
    leases = DirectoryLeases(tmp_path, QUEUE)
    await gone(tmp_path, READ)

    async def fail(calls: list[LeasedCall]) -> None:
        raise OSError(f"no way to the server with {len(calls)}")

    with pytest.raises(LeasesUnavailable, match="no way to the server"):
        await leases.look(fail)

    assert await Found().after(leases) == {READ}
    await leases.close()


@pytest.mark.redis
async def test_a_worker_that_only_stalled_hears_that_it_was_taken_as_dead(redis_url: str, tmp_path: Path) -> None:
    stalled, looking, found = opened(redis_url, tmp_path), opened(redis_url, tmp_path), Found()
    stalled.hold(READ)

    async def noted() -> bool:
        await looking.look(found.take)
        return bool(found.calls)

    await until(noted)

    assert not await stalled.look(found.take)
    assert found.calls == [READ]
    for _ in range(LOOKS + 1):  # and is there again
        assert await stalled.look(found.take)
        await looking.look(found.take)
    assert found.calls == [READ]
    await stalled.close()
    await looking.close()


async def test_a_redis_that_is_away_is_nobodys_death_and_stops_no_call() -> None:
    leases, found = RedisLeases("redis://127.0.0.1:1", QUEUE), Found()

    leases.hold(READ)
    for _ in range(LOOKS):
        with pytest.raises(LeasesUnavailable, match=r"127\.0\.0\.1:1"):
            await leases.look(found.take)
    leases.release(READ)

    assert found.calls == []
    await leases.close()
