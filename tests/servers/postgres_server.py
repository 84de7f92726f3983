"""A real PostgreSQL for the tests, in a folder of its own, gone with the test session."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.debian import find_program
from tests.servers.local import ServerUnavailable, free_port, running

INITDB_SECONDS = 60.0
USER = "postgres"
"""PostgreSQL refuses to run as root; Debian's package brings this user."""
SETTINGS = ("fsync=off", "shared_buffers=16MB", "max_connections=100", "autovacuum=off")


def find_postgres(say: Say) -> str:
    """Return the path of `postgres`, beside which lie `initdb` and `pg_ctl`. Raises ServerUnavailable."""
    found = find_program(["/usr/lib/postgresql/*/bin/postgres", "postgres"], "postgresql", say)
    return str(Path(found).resolve())


@contextmanager
def postgres_server(executable: str) -> Iterator[str]:
    """Yield the URL of an empty database."""
    # Not below pytest's folders: only their owner may look into those.
    with tempfile.TemporaryDirectory(prefix="longhaul-postgres-") as folder:
        directory, data, port = Path(folder), Path(folder) / "data", free_port()
        as_user = _as_other_user(directory)
        _make_cluster(executable, data, as_user)
        url = f"postgresql://longhaul:unasked@127.0.0.1:{port}/postgres"
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        listening = ["-h", "127.0.0.1", "-p", str(port), "-k", str(directory)]
        command = [*as_user, executable, "-D", str(data), *listening, *settings]
        with running(command, port, directory / "postgres.log", lambda: _answers(url)):
            try:
                yield url
            finally:
                stop = [str(Path(executable).with_name("pg_ctl")), "-D", str(data), "-m", "immediate", "stop"]
                run_within(10, [*as_user, *stop], {})


def _as_other_user(directory: Path) -> list[str]:
    if os.geteuid() != 0:
        return []
    shutil.chown(directory, USER, USER)
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig=KILL"]


def _make_cluster(executable: str, data: Path, as_user: list[str]) -> None:
    initdb = [str(Path(executable).with_name("initdb")), "-D", str(data), "-U", "longhaul", "-A", "trust"]
    if complaint := run_within(INITDB_SECONDS, [*as_user, *initdb, "--no-sync", "--no-locale", "-E", "UTF8"], {}):
        raise ServerUnavailable(f"initdb could not make a database: {complaint}")


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=1).close()
    except psycopg.Error:
        return False
    return True
