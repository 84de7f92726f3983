"""A real Redis for the tests: found, or installed where that is ours to do."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from starter.provision.processes import run_within
from starter.provision.temporal_cli import Say
from tests.servers.local import ServerUnavailable, free_port, running

APT_SECONDS = 300.0


def find_redis(say: Say) -> str:
    """Return the path of `redis-server`, installing the distribution's package when we are root.

    Raises ServerUnavailable.
    """
    if found := shutil.which("redis-server"):
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ServerUnavailable("no redis-server on PATH; install it (Debian: apt-get install redis-server)")
    say("installing redis-server with apt-get")
    quietly = {"DEBIAN_FRONTEND": "noninteractive"}
    run_within(APT_SECONDS, ["apt-get", "update"], quietly)
    install = ["apt-get", "install", "-y", "--no-install-recommends", "redis-server"]
    complaint = run_within(APT_SECONDS, install, quietly)
    if found := shutil.which("redis-server"):
        return found
    raise ServerUnavailable(f"apt-get could not install redis-server: {complaint}")


@contextmanager
def redis_server(executable: str, directory: Path) -> Iterator[str]:
    """Yield the URL of a fresh Redis that keeps its files in `directory` and writes no snapshots."""
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    command = [executable, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", ""]
    with running(command, port, directory / "redis.log", lambda: _answers(url)):
        yield url


def _answers(url: str) -> bool:
    try:
        with Redis.from_url(url) as client:
            return bool(client.ping())
    except RedisError:
        return False
