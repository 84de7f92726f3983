"""What a worker refuses to start with, and what it closes when it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from longhaul.activities.models.providers import Providers
from longhaul.starter.connection.connect import connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.requirements import Refusal, check_lasting, check_shared
from longhaul.stores.state.file_store import MemoryStore
from longhaul.worker import build
from tests.e2e.processes import ROOT, WorkerSettings, environment
from tests.limits import SURE_SECONDS
from tests.servers.redis_server import find_redis, redis_server

ALONE = "keeps sessions on this host alone"
BLOBS = "redis://cache/1"


class Watched(MemoryStore):
    """Says whether it was closed, and how often."""

    closed = 0

    async def close(self) -> None:
        type(self).closed += 1


def start(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """`python -m longhaul.worker` where no server answers."""
    given = WorkerSettings(address="127.0.0.1:1", task_queue="nobody", directory=folder, tools="")
    command = [sys.executable, "-m", "longhaul.worker"]
    return subprocess.run(
        command,
        env=environment(given) | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SURE_SECONDS,
    )


def test_a_bad_value_of_a_setting_ends_the_worker_with_one_sentence(tmp_path: Path) -> None:
    ended = start(tmp_path, LONGHAUL_ACTIVITY_SLOTS="many")

    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("longhaul worker: LONGHAUL_ACTIVITY_SLOTS: Input should be a valid integer")


@pytest.mark.proves("E3")
@pytest.mark.parametrize("store", ["file", "file:///srv/longhaul", "memory", "sqlite:////srv/longhaul.db"])
def test_workers_of_several_hosts_do_not_start_with_a_store_of_one(store: str) -> None:
    with pytest.raises(Refusal, match=f"{ALONE}.*LONGHAUL_SHARED=off"):
        check_shared(Settings(shared=True, store=store, blobs=BLOBS))


def test_workers_of_several_hosts_do_not_start_with_blobs_of_one() -> None:
    with pytest.raises(Refusal, match="LONGHAUL_BLOBS is not set"):
        check_shared(Settings(shared=True, store="redis://cache", blobs=""))


@pytest.mark.parametrize("blobs", [BLOBS, "/mnt/all/blobs"])
def test_workers_of_several_hosts_start_with_what_all_of_them_reach(blobs: str) -> None:
    check_shared(Settings(shared=True, store="postgresql://ana@db/longhaul", blobs=blobs))


def test_workers_of_one_host_start_with_files() -> None:
    check_shared(Settings(shared=False, store="file", blobs=""))


def test_the_refusal_is_a_sentence_and_comes_before_the_server_is_asked(tmp_path: Path) -> None:
    shared = start(tmp_path, LONGHAUL_SHARED="on")

    assert shared.returncode == 1
    assert ALONE in shared.stderr
    assert "Traceback" not in shared.stderr


@pytest.mark.redis
@pytest.mark.parametrize("variable", ["LONGHAUL_STORE", "LONGHAUL_BLOBS"])
@pytest.mark.parametrize(
    "options",
    [
        ("--maxmemory-policy", "allkeys-lru"),
        ("--maxmemory-policy", "volatile-ttl", "--maxmemory", "100mb"),
        ("--maxmemory-policy", "allkeys-random", "--maxmemory", "100mb"),
    ],
)
def test_a_worker_does_not_start_with_a_redis_that_evicts(
    variable: str, options: tuple[str, ...], redis_url: str, tmp_path: Path
) -> None:
    with redis_server(find_redis(print), tmp_path, *options) as url:
        refused = start(tmp_path, **{variable: url})

    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
    assert f"{variable}: this Redis evicts data" in refused.stderr
    assert f"its maxmemory-policy is {options[1]}" in refused.stderr
    assert "CONFIG SET maxmemory-policy noeviction" in refused.stderr


@pytest.mark.redis
@pytest.mark.parametrize("options", [(), ("--maxmemory", "100mb"), ("--maxmemory-policy", "volatile-lru")])
async def test_a_redis_that_keeps_all_is_taken(options: tuple[str, ...], redis_url: str, tmp_path: Path) -> None:
    with redis_server(find_redis(print), tmp_path, *options) as url:
        await check_lasting(Settings(store=url, blobs=url))


async def test_a_redis_that_does_not_answer_now_is_not_waited_for() -> None:
    await check_lasting(Settings(store="redis://127.0.0.1:1", blobs="redis://127.0.0.1:1/no-number"))


def test_a_plain_worker_loads_nothing_that_only_others_need() -> None:
    dear = (
        "anthropic", "openai", "httpx", "httpx2", "redis", "sqlalchemy", "psycopg", "pymysql", "opentelemetry.sdk",
        "rich", "click", "typer", "prompt_toolkit", "starlette", "uvicorn",
    )  # fmt: skip
    script = f"import sys, longhaul.worker; print(*sorted(set({dear!r}) & set(sys.modules)))"

    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert told.stdout.split() == []


@pytest.mark.server
async def test_the_store_is_closed_when_the_worker_has_ended(temporal_server: DevServer, tmp_path: Path) -> None:
    settings = Settings(task_queue="watched", data_dir=tmp_path, store=f"{__name__}:Watched")
    client, providers = await connect(temporal_server.address, settings=settings), Providers({})
    Watched.closed = 0

    async with build(client, settings, providers):
        before = Watched.closed
    await providers.close()
    await let_go(client)

    assert (before, Watched.closed) == (0, 1)
