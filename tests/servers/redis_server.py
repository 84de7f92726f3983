"""A real Redis for the tests: found, or installed where that is ours to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.debian import find_program
from tests.servers.local import free_port, running


def find_redis(say: Say) -> str:
    """Return the path of `redis-server`, installing the distribution's package when we are root.

    Raises ServerUnavailable.
    """
    return find_program(["redis-server"], "redis-server", say)


@contextmanager
def redis_server(executable: str, directory: Path, *options: str, config: Path | None = None) -> Iterator[str]:
    """Yield the URL of a fresh Redis that keeps its files in `directory` and writes no snapshots."""
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    listening = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", ""]
    command = [executable, *([str(config)] if config else []), *listening, *options]
    with running(command, port, directory / "redis.log", lambda: _answers(url)):
        yield url


def _answers(url: str) -> bool:
    try:
        with Redis.from_url(url) as client:
            return bool(client.ping())
    except RedisError:
        return False
