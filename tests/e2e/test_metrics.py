"""Metrics as Prometheus gets them from a worker process."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from starter.provision.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.servers.local import free_port

pytestmark = [pytest.mark.server, pytest.mark.timeout(90)]


def value_of(page: str, name: str, *labels: str) -> float:
    """The sum of all lines of a metric that hold these labels."""
    lines = [
        line for line in page.splitlines() if line.startswith(f"{name}{{") and all(each in line for each in labels)
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def scraped(url: str) -> str:
    return httpx.get(url).text


def started_beside(given: WorkerSettings, folder: Path) -> tuple[int, str]:
    """Exit status and errors of another worker with the same settings, which is to end by itself."""
    command = [sys.executable, "-m", "worker"]
    ended = subprocess.run(
        command, env=environment(given), cwd=folder, capture_output=True, text=True, check=False, timeout=30
    )
    return ended.returncode, ended.stderr


async def test_a_worker_serves_what_it_and_the_sdk_have_counted(temporal_server: DevServer, tmp_path: Path) -> None:
    where = f"127.0.0.1:{free_port()}"
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"metrics-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"LONGHAUL_METRICS": where},
    )  # fmt: skip
    cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
    reads = {"tool_calls": [{"name": "Read", "input": {"file_path": "missing.txt"}}]}
    model = cli.script({**reads, "usage": {"input_tokens": 70, "output_tokens": 9}}, {"text": "It is not there."})
    async with worker(given):
        done = cli("run", "What does it say?", "--model", model, "--session", "counted")
        page = scraped(f"http://{where}/metrics")
        code, said = started_beside(given, tmp_path)

    assert done.code == 0, done.err
    assert value_of(page, "longhaul_model_calls_total") == 2
    assert value_of(page, "longhaul_tool_calls_total", 'tool="Read"', 'state="error"') == 1
    assert value_of(page, "longhaul_tokens_total", 'token_type="input"') >= 70
    assert value_of(page, "temporal_workflow_task_execution_latency_count") >= 1, page[:2000]
    assert code == 1
    assert said.startswith(f"longhaul worker: LONGHAUL_METRICS: nothing can be served at '{where}'")
