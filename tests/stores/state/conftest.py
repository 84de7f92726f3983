"""Every kind of store, each empty for each test, and processes that write to them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis

from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.sql_store import SESSIONS, engine_of
from longhaul.stores.state.store import StateStore
from tests.servers.redis_server import find_redis, redis_server
from tests.stores.state.writers import Writers

SHARED = [
    pytest.param("file"),
    pytest.param("sqlite"),
    pytest.param("redis", marks=pytest.mark.redis),
    pytest.param("cluster", marks=pytest.mark.redis),
    pytest.param("sentinel", marks=pytest.mark.redis),
    pytest.param("postgres", marks=pytest.mark.sql),
    pytest.param("mariadb", marks=pytest.mark.sql),
]
"""What several processes can write to."""


@pytest.fixture(params=SHARED)
def shared_setting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The setting of a store that is empty."""
    return _setting(request.param, request, tmp_path)


@pytest.fixture(params=[pytest.param("memory"), *SHARED])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StateStore]:
    async with open_store(_setting(request.param, request, tmp_path), data_dir=tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def writers() -> Iterator[Writers]:
    """Three processes, started once: to load what they need takes longer than what they do."""
    with Writers(3) as running:
        yield running


def _setting(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match kind:
        case "memory":
            return "memory"
        case "file":
            return f"file://{tmp_path}/files"
        case "sqlite":
            return f"sqlite:///{tmp_path}/sessions.db"
        case "postgres" | "mariadb":
            return _emptied(request.getfixturevalue(f"{kind}_url"))
        case _:
            url: str = request.getfixturevalue(f"{kind}_url")
            return f"{url}?prefix={tmp_path.name}:"


def _emptied(url: str) -> str:
    engine = engine_of(url, 1)
    SESSIONS.drop(engine, checkfirst=True)
    engine.dispose()
    return url


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[str]:
    """A cluster of one server: it refuses what spans slots like a larger one."""
    del redis_url  # asked for so that a missing Redis is reported once, there
    with redis_server(find_redis(print), tmp_path_factory.mktemp("cluster"), "--cluster-enabled", "yes") as url:
        with Redis.from_url(url) as server:
            server.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while b"cluster_state:ok" not in bytes(server.execute_command("CLUSTER", "INFO") or b""):
                pass
        yield url.replace("redis://", "redis+cluster://").removesuffix("/0")


@pytest.fixture(scope="session")
def sentinel_url(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[str]:
    """A sentinel that watches the tests' Redis under the name `chief`."""
    directory = tmp_path_factory.mktemp("sentinel")
    port = redis_url.rpartition(":")[2].removesuffix("/0")
    config = directory / "sentinel.conf"
    config.write_text(f"sentinel monitor chief 127.0.0.1 {port} 1\n", encoding="utf-8")
    with redis_server(f"{find_redis(print)}", directory, "--sentinel", config=config) as url:
        yield url.replace("redis://", "redis+sentinel://").removesuffix("/0") + "/chief/0"
