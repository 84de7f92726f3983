"""The file store's own promises: kills, locks, names."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longhaul.starter.dev_server.processes import bound_to_parent
from longhaul.stores.state.file_store import FileStore, locked
from longhaul.stores.state.store import StoreUnavailable, file_name
from tests.limits import SURE_SECONDS
from tests.stores.state.records import files_of, record
from tests.stores.state.writers import ROOT

WRITE_FOREVER = """
import asyncio, sys
from pathlib import Path
from longhaul.stores.state.file_store import FileStore
from longhaul.starter.dev_server.processes import bound_to_parent
from tests.stores.state.records import files_of, record

async def main():
    store, seq = FileStore(Path(sys.argv[1])), 1
    while True:
        await store.save_checkpoint(record(seq, text=str(seq % 10) * 2_000_000))
        print(seq, flush=True)
        seq += 1

asyncio.run(main())
"""


def write_until_killed(root: Path) -> int:
    """The last seq that the writer was told to be written; it is killed while a temporary file is half full."""
    command = bound_to_parent([sys.executable, "-c", WRITE_FOREVER, str(root)])
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        confirmed = [writer.stdout.readline()]
        temporary = files_of("s-1", root)[0].with_suffix(".tmp")
        deadline = time.monotonic() + SURE_SECONDS
        while not half_full(temporary) and time.monotonic() < deadline:
            writer.send_signal(signal.SIGCONT)
            time.sleep(0.003)
            writer.send_signal(signal.SIGSTOP)
        writer.kill()
        confirmed += writer.stdout.readlines()
    return int(confirmed[-1])


def half_full(path: Path) -> bool:
    try:
        return path.stat().st_size < 2_000_000
    except FileNotFoundError:
        return False


def open_to_others(folder: Path) -> list[Path]:
    return [path for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


async def test_a_kill_in_the_middle_of_a_write_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    confirmed = await asyncio.to_thread(write_until_killed, tmp_path)

    found = await store.get_session("ana", "reviewer", "s-1")

    assert found is not None
    assert found.seq in {confirmed, confirmed + 1}
    assert found.state.context[0].get_text_content() == str(found.seq % 10) * 2_000_000
    assert await store.save_checkpoint(record(found.seq + 1)) is True
    assert files_of("", tmp_path, "tmp") == []


async def test_a_lock_that_is_never_let_go_is_an_error_within_seconds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)

    with pytest.raises(StoreUnavailable, match="another process has the lock"), locked(path, 0.1):
        pass

    os.close(holder)
    with locked(path, 0.1):
        pass


async def test_a_folder_that_can_not_be_written_to_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file where the folder should be")

    with pytest.raises(StoreUnavailable, match=f"the file store in {tmp_path}/root: "):
        await FileStore(tmp_path / "root").upsert_session(record(1))


async def test_what_lies_beside_the_sessions_is_left_out_of_the_list(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.upsert_session(record(1))
    kept = files_of("s-1", tmp_path)[0]
    kept.with_name("notes.txt").write_text("hello")
    kept.with_name("copy.json").write_bytes(kept.read_bytes())
    kept.with_name("other.json").write_text("{}")

    assert [row.session_id for row in await store.list_sessions("ana")] == ["s-1"]


async def test_a_session_is_for_its_owner_alone(tmp_path: Path) -> None:
    await FileStore(tmp_path / "deep" / "root").upsert_session(record(1))

    assert open_to_others(tmp_path / "deep") == []


@pytest.mark.parametrize("text", ["..", "", "a/b", "C:\\x", "nul", "İİ", "A" * 5_000, "\ud800", ".git", "-rf", "a\0b"])
def test_a_file_name_is_harmless_everywhere(text: str) -> None:
    name = file_name(text)

    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert len(name) <= 73


def test_names_that_differ_in_case_alone_differ_where_case_does_not_count() -> None:
    names = ["Ana", "ana", "ANA", "ANa"]

    assert len({file_name(name).casefold() for name in names}) == 4


def test_the_anonymous_user_is_no_user_of_any_name() -> None:
    assert file_name(None) not in {file_name(name) for name in ("~", "", "anonymous", "None", "null", "__anon__")}
