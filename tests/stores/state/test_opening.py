"""From settings to stores, and what is said of settings that name none."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from longhaul.stores.state.file_store import FileStore, MemoryStore
from longhaul.stores.state.open_store import is_single_host, open_store, why_not_shared
from longhaul.stores.state.redis_connection import target_of
from longhaul.stores.state.redis_store import RedisStorage
from longhaul.stores.state.sql_store import SqlStore
from longhaul.stores.state.store import BadStoreSetting
from tests.stores.state.own import Shared
from tests.stores.state.records import files_of, record
from tests.stores.state.writers import ROOT

OWN = "tests.stores.state.own"


@pytest.mark.parametrize(
    ("setting", "kind", "single_host"),
    [
        ("memory", MemoryStore, True),
        ("file", FileStore, True),
        ("file:///tmp/sessions", FileStore, True),
        ("sqlite:////tmp/longhaul-unused.db", SqlStore, True),
        ("redis://cache", RedisStorage, False),
        ("rediss://ana:pw@cache:6380/2?prefix=team:", RedisStorage, False),
        ("redis+sentinel://one:26379,two/chief/3", RedisStorage, False),
        ("redis+cluster://one:7000,two:7001", RedisStorage, False),
        ("postgresql://ana@db/longhaul", SqlStore, False),
        ("postgres://ana@db/longhaul", SqlStore, False),
        ("mysql://ana@db/longhaul", SqlStore, False),
        ("mariadb://ana@db/longhaul", SqlStore, False),
        (f"{OWN}:Shared", Shared, False),
    ],
)
async def test_a_setting_names_a_store(setting: str, kind: type, single_host: bool, tmp_path: Path) -> None:
    async with open_store(setting, data_dir=tmp_path) as store:
        assert type(store) is kind
        assert store.single_host is is_single_host(setting) is single_host


async def test_files_lie_in_the_data_directory_or_where_the_setting_says(tmp_path: Path) -> None:
    await open_store("file", data_dir=tmp_path / "data").upsert_session(record(1))
    await open_store(f"file://{tmp_path}/my%20sessions", data_dir=tmp_path).upsert_session(record(1))

    assert len(files_of("s-1", tmp_path / "data" / "sessions")) == 1
    assert len(files_of("s-1", tmp_path / "my sessions")) == 1


async def test_a_file_of_sqlite_that_another_is_about_to_make_is_waited_for(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    other.execute("CREATE TABLE anything (x)")
    other.execute("BEGIN IMMEDIATE")  # SQLite refuses the change to a write-ahead log at once now, without a wait
    async with open_store(f"sqlite:///{tmp_path}/sessions.db", data_dir=tmp_path) as store:
        saving = asyncio.ensure_future(store.save_checkpoint(record(1)))
        await asyncio.sleep(0.2)
        assert not saving.done()

        other.execute("COMMIT")

        assert await saving
    other.close()


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("", "is none of file"),
        ("files", "is none of file"),
        ("mongodb://ana:s3cr3t@db/x", "nothing is known of mongodb://"),
        ("file://host/path", "names no folder"),
        ("file:///", "names no folder"),
        ("redis+smoke://ana:s3cr3t@cache", "'redis+smoke' is no kind of Redis"),
        ("redis://ana:s3cr3t@cache:port/0", "'cache:port' is no host:port"),
        ("redis://ana:s3cr3t@cache/zero", "'/zero' is no number"),
        ("redis+cluster://ana:s3cr3t@cache/1", "'/1' is no number"),
        ("redis+sentinel://ana:s3cr3t@cache", "needs the master's name"),
        ("redis://ana:s3cr3t@cache?colour=green", "no parameter 'colour'"),
        ("postgresql://ana:s3cr3t@db:port/x", "not a URL like postgresql://user:password@host:port/database"),
        ("postgresql://ana:s3cr3t@db", "names no database"),
        ("sqlite://", "names no database"),
        ("no.such.module:Store", "can't be loaded: ModuleNotFoundError"),
        (f"{OWN}:Missing", "has no attribute 'Missing'"),
        (f"{OWN}:Unfinished", "is no StateStore: it has no `async def upsert_session`"),
        (f"{OWN}:Demanding", "has to work without arguments"),
    ],
)
def test_a_setting_that_names_no_store_is_said_to_and_its_password_unsaid(
    setting: str, what: str, tmp_path: Path
) -> None:
    with pytest.raises(BadStoreSetting) as found:
        open_store(setting, data_dir=tmp_path)

    assert what in str(found.value)
    assert str(found.value).startswith("store: ")
    assert "s3cr3t" not in str(found.value)


def test_what_a_redis_url_means() -> None:
    target, prefix = target_of("rediss+sentinel://ana:p%40ss@one:26380,two/chief/3?prefix=team:&ca=/etc/ca.pem")

    assert (target.kind, target.nodes, target.master) == ("sentinel", (("one", 26380), ("two", 26379)), "chief")
    assert (target.login["username"], target.login["password"], target.login["db"]) == ("ana", "p@ss", 3)
    assert (target.login["ssl"], target.login["ssl_ca_certs"], prefix) == (True, "/etc/ca.pem", "team:")
    assert "p@ss" not in repr(target)


@pytest.mark.proves("E3")
@pytest.mark.parametrize("setting", ["memory", "file", "file:///srv/sessions", "sqlite:////srv/sessions.db"])
def test_a_shared_workspace_with_a_store_of_one_host_is_refused_with_what_to_do(setting: str) -> None:
    why = why_not_shared(setting)

    assert "keeps sessions on this host alone, but the workspace is shared" in why
    assert "redis://…, postgresql://… or mysql://…" in why


@pytest.mark.parametrize("setting", ["redis://cache", "postgresql://ana@db/longhaul", f"{OWN}:Shared"])
def test_a_shared_workspace_with_a_shared_store_is_fine(setting: str) -> None:
    assert why_not_shared(setting) == ""


@pytest.mark.proves("A11")
@pytest.mark.redis
async def test_the_seeds_example_works_with_the_public_names(redis_url: str) -> None:
    from longhaul import RedisStorage as Public  # noqa: PLC0415  the import is what is tested

    port = int(redis_url.rpartition(":")[2].removesuffix("/0"))
    async with Public(host="127.0.0.1", port=port, key_prefix="seed:") as storage:
        assert await storage.get_session(user_id="user_123", agent_id="agent_456", session_id="session_789") is None
        await storage.upsert_session(record(1, user="user_123", agent="agent_456", session="session_789"))
        await storage.update_session_state(
            user_id="user_123", agent_id="agent_456", session_id="session_789", state=record(2).state
        )
        kept = await storage.get_session(user_id="user_123", agent_id="agent_456", session_id="session_789")

    assert kept is not None
    assert kept.state.summary == "1.2"


def test_who_keeps_files_loads_no_driver() -> None:
    script = (
        "import sys, longhaul.stores.state.open_store; print([n for n in ('redis', 'sqlalchemy') if n in sys.modules])"
    )

    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert answer.stdout == "[]\n"
