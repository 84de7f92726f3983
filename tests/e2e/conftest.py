"""A worker process and the command line as users start them."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.client.client import Longhaul
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from tests.activities.mcp.serving import small
from tests.e2e import processes
from tests.e2e.warm_cli import Command, WarmCli, warm
from tests.limits import SURE_SECONDS
from tests.replay.record import server_suggesting

CLI = [sys.executable, "-P", "-m", "longhaul.starter.cli.main"]


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
    warm: WarmCli | None = None
    """Where there is none, each command is a new process."""

    def __call__(self, *arguments: str, stdin: str = "") -> Answer:
        if self.warm is not None:
            return Answer(*self.warm.run(arguments, self.environment, self.folder, stdin))
        done = subprocess.run(
            [*CLI, *arguments],
            env=self.environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SURE_SECONDS,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def at_terminal(self, arguments: Sequence[str], environment: Mapping[str, str], terminal: int) -> Command:
        """Start a command there, with more variables. `tests.e2e.terminal` sits at it, and ends it."""
        assert self.warm is not None
        return self.warm.at_terminal(arguments, {**self.environment, **environment}, self.folder, terminal)

    def script(self, *replies: dict[str, Any]) -> str:
        """A scripted model that gives these replies, as `--model` takes it."""
        file = self.folder / "script.jsonl"
        file.write_text("\n".join(json.dumps(reply) for reply in replies))
        return f"scripted:{file}"

    def waits_for(self, file: str, seconds: float = SURE_SECONDS) -> bool:
        """Whether a file with something in it appears in the folder in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (self.folder / file).is_file() and (self.folder / file).stat().st_size:
                return True
            time.sleep(0.05)
        return False


@pytest.fixture(scope="session")
def worker_settings(temporal_server: DevServer, tmp_path_factory: pytest.TempPathFactory) -> processes.WorkerSettings:
    return processes.WorkerSettings(
        address=temporal_server.address,
        task_queue="end-to-end",
        directory=tmp_path_factory.mktemp("data"),
        tools="tests.e2e.sample_tools",
        further={"LONGHAUL_MCP": json.dumps({"quay": {"mcp_config": small(), "effects": {"moor": "idempotent"}}})},
    )


@pytest.fixture(scope="session")
def cli_environment(worker_settings: processes.WorkerSettings) -> dict[str, str]:
    """The settings of the commands, which are the worker's; nothing of this machine's own."""
    there = processes.environment(worker_settings) | {"TERM": "xterm"}
    return {
        key: value for key, value in there.items() if key not in ("CI", "NO_COLOR")
    }  # a person's terminal has neither


@pytest.fixture
async def impatient_server() -> AsyncIterator[str]:
    """The address of a server that wants a fresh history behind almost every activity: a session's first task alone
    leaves three events."""
    async with await server_suggesting(8) as server:
        yield server.client.service_client.config.target_host


@pytest.fixture(scope="session")
async def worker(worker_settings: processes.WorkerSettings) -> AsyncIterator[int]:
    """A worker process that polls; its process id."""
    async with processes.worker(worker_settings) as started:
        yield started.pid


@pytest.fixture(scope="session")
async def app(worker: int, cli_environment: dict[str, str]) -> AsyncIterator[Longhaul]:
    """The client, for what a test needs before its command: a process less each time."""
    assert worker
    settings = Settings(task_queue=cli_environment["LONGHAUL_TASK_QUEUE"])
    async with Longhaul.connect(cli_environment["TEMPORAL_ADDRESS"], settings=settings) as connected:
        yield connected


@pytest.fixture(scope="session")
def warm_cli() -> WarmCli:
    return warm()


@pytest.fixture
def cli(worker: int, cli_environment: dict[str, str], warm_cli: WarmCli, tmp_path: Path) -> Cli:
    """The command line, with a worker behind it. The current directory holds `greeting.txt`: hello world."""
    assert worker
    (tmp_path / "greeting.txt").write_text("hello world\n")
    return Cli(cli_environment, tmp_path, warm_cli)
