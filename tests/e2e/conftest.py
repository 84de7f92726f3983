"""A worker process and the command line as users start them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from starter.client import Longhaul
from starter.provision.dev_server import DevServer
from starter.provision.processes import bound_to_parent
from starter.settings import Settings

ROOT = Path(__file__).parents[2]
CLI = [sys.executable, "-P", "-m", "starter.cli.main"]


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """All of stdout as one JSON document."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Cli:
    """`longhaul …` in a folder of the test's own, with the worker's settings."""

    environment: dict[str, str]
    folder: Path

    def __call__(self, *arguments: str, stdin: str = "") -> Answer:
        done = subprocess.run(
            [*CLI, *arguments],
            env=self.environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def script(self, *replies: dict[str, Any]) -> str:
        """A scripted model that gives these replies, as `--model` takes it."""
        file = self.folder / "script.jsonl"
        file.write_text("\n".join(json.dumps(reply) for reply in replies))
        return f"scripted:{file}"

    def waits_for(self, file: str, seconds: float = 15.0) -> bool:
        """Whether a file with something in it appears in the folder in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (self.folder / file).is_file() and (self.folder / file).stat().st_size:
                return True
            time.sleep(0.05)
        return False


@pytest.fixture(scope="session")
def cli_environment(temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of worker and commands; nothing of this machine's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
    return kept | {
        "TEMPORAL_ADDRESS": temporal_server.address,
        "LONGHAUL_TASK_QUEUE": "end-to-end",
        "LONGHAUL_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "LONGHAUL_TOOLS": "tests.e2e.sample_tools",
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
    }


@pytest.fixture(scope="session")
def worker(cli_environment: dict[str, str]) -> Iterator[int]:
    """A worker process that polls; its process id."""
    command = bound_to_parent([sys.executable, str(ROOT / "worker.py")])
    with subprocess.Popen(command, env=cli_environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "polling" in process.stdout.readline()
        yield process.pid
        process.send_signal(signal.SIGKILL)


@pytest.fixture(scope="session")
async def app(worker: int, cli_environment: dict[str, str]) -> AsyncIterator[Longhaul]:
    """The client, for what a test needs before its command: a process less each time."""
    assert worker
    settings = Settings(task_queue=cli_environment["LONGHAUL_TASK_QUEUE"])
    async with Longhaul.connect(cli_environment["TEMPORAL_ADDRESS"], settings=settings) as connected:
        yield connected


@pytest.fixture
def cli(worker: int, cli_environment: dict[str, str], tmp_path: Path) -> Cli:
    """The command line, with a worker behind it. The current directory holds `greeting.txt`: hello world."""
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    return Cli(cli_environment, tmp_path)
