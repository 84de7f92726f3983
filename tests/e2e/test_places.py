"""A worker behind a wall, as in a container: the same paths are other folders there."""

import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.dev_server.temporal_cli import Say
from tests.conftest import found
from tests.e2e import processes
from tests.e2e.conftest import Cli
from tests.servers.local import ServerUnavailable

pytestmark = pytest.mark.server

QUEUE = "behind-a-wall"


def find_walls(say: Say) -> str:
    """Mount namespaces are allowed here."""
    del say
    path = shutil.which("unshare")
    if path is None or subprocess.run([path, "--map-root-user", "--mount", "true"], check=False).returncode:
        raise ServerUnavailable("`unshare --map-root-user --mount` does not work on this machine")
    return path


@pytest.fixture
async def walled(temporal_server: DevServer, tmp_path: Path) -> AsyncIterator[Cli]:
    """Commands with the very settings of the worker, which is behind the wall."""
    found("mount namespaces", find_walls)
    settings = processes.WorkerSettings(
        address=temporal_server.address,
        task_queue=QUEUE,
        directory=tmp_path / "data",
        tools="tests.e2e.sample_tools",
        program=("tests.e2e.walled_worker",),
    )
    async with processes.worker(settings):
        yield Cli(processes.environment(settings) | {"TERM": "xterm"}, tmp_path)


async def test_the_same_path_in_another_container_is_another_place(walled: Cli) -> None:
    refused = walled("rules", "add", "--user", "bob", "--deny", "Bash(touch:*)")
    listed = walled("rules", "list", "--user", "bob")
    checks = {check["name"]: check for check in walled("doctor", "--json").document["checks"]}

    path = walled.environment["LONGHAUL_DATA_DIR"]
    assert refused.code == 1
    assert refused.out == ""
    assert f"here LONGHAUL_STORE leads to {path}/sessions (file, in which no worker has ever written)" in refused.err
    assert "keeps sessions and users' rules in file:" in refused.err
    assert "another place" in listed.err
    for name, variable in (("workers' store", "LONGHAUL_STORE"), ("workers' blobs", "LONGHAUL_BLOBS")):
        assert not checks[name]["ok"]
        assert checks[name]["fix"].startswith(f"set {variable} for both")
