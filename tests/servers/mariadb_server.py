"""A real MariaDB for the tests, in a folder of its own, gone with the test session."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.debian import find_program
from tests.servers.local import ServerUnavailable, free_port, running

INSTALL_SECONDS = 60.0
DATABASE = "longhaul"


def find_mariadb(say: Say) -> str:
    """Return the path of `mariadbd`; `mariadb-install-db` is on PATH with it. Raises ServerUnavailable."""
    find_program(["my_print_defaults"], "mariadb-client-core", say)  # mariadb-install-db asks for it
    return find_program(["mariadbd", "/usr/sbin/mariadbd"], "mariadb-server-core", say)


@contextmanager
def mariadb_server(executable: str) -> Iterator[str]:
    """Yield the URL of an empty database."""
    with tempfile.TemporaryDirectory(prefix="longhaul-mariadb-") as folder:
        directory, data, port = Path(folder), f"--datadir={folder}/data", free_port()
        user = ["--user=root"] if os.geteuid() == 0 else []
        make = ["mariadb-install-db", "--no-defaults", data, *user, "--auth-root-authentication-method=normal"]
        if complaint := run_within(INSTALL_SECONDS, [*make, "--skip-test-db"], {}):
            raise ServerUnavailable(f"mariadb-install-db could not make a database: {complaint}")
        first = directory / "first.sql"
        first.write_text(f"CREATE DATABASE {DATABASE};\n", encoding="utf-8")
        listening = [
            "--bind-address=127.0.0.1",
            f"--port={port}",
            f"--socket={directory}/socket",
            "--skip-name-resolve",
        ]
        quick = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M", f"--init-file={first}"]
        command = [executable, "--no-defaults", *user, data, *listening, *quick]
        with running(command, port, directory / "mariadb.log", lambda: _answers(port)):
            yield f"mariadb://root@127.0.0.1:{port}/{DATABASE}"


def _answers(port: int) -> bool:
    try:
        pymysql.connect(host="127.0.0.1", port=port, user="root", database=DATABASE).close()
    except pymysql.Error:
        return False
    return True
