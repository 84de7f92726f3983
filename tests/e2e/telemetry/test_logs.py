"""Structured logs of a worker process: every line is JSON with the names of what it is about, and repeats nobody."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.crash.crash_stage import until
from tests.e2e.processes import ROOT, WorkerSettings, environment, worker

pytestmark = pytest.mark.server

SECRET = "sk-tide-table-4711"
WORDS = ("greet the walrus", "I will sing", "barnacles", "all sung", "drowned")
WRITES = {"id": "write-7", "name": "Write", "input": {"file_path": "low-tide.txt", "content": f"barnacles {SECRET}"}}
SINKS = {"id": "sink-8", "name": "sink", "input": {}}
BEGINS = """
import sys, threading, worker
from longhaul.activities.masker import NO_SECRETS
worker.begin_logs("INFO", structured=False)
around = worker.around_activities(worker.Settings(), NO_SECRETS)
print(len(around), threading.active_count(), *sys.modules)
"""
TOOLS = '''
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect


@tool(effect=Effect.READ)
def sink() -> str:
    """Fails."""
    raise RuntimeError("drowned sk-tide-table-4711")
'''


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_a_worker_writes_json_with_names_and_without_words(temporal_server: DevServer, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sinking.py").write_text(TOOLS)
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"logs-{tmp_path.name}", directory=tmp_path / "data",
        tools="sinking", further={"LONGHAUL_LOG": "json", "LONGHAUL_SECRET_TIDE": SECRET},
    )  # fmt: skip
    cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
    agent = tmp_path / "coder.toml"
    agent.write_text('name = "coder"\ntools = ["Write", "sink"]\n[permission]\nmode = "bypass"\n')
    model = cli.script({"text": "I will sing", "tool_calls": [WRITES, SINKS]}, {"text": "all sung"})
    async with worker(given) as one:
        done = cli("run", "greet the walrus", "--agent", str(agent), "--model", model, "--session", "cove",
                   "--user", "ana", "--json")  # fmt: skip
        await until(lambda: one.has_said("reply ended"), "the checkpoint, a moment after the answer")
        one.ask_to_stop()
        await one.wait()
        lines = lines_of(one.log)
        written = one.log.read_text()

    assert done.code == 0, done.err
    attempts = [line for line in lines if line["message"] == "attempt ended"]
    (write,) = [line for line in attempts if line["activity"] == "Write"]
    assert {
        "session": "cove",
        "user": "ana",
        "agent": "coder",
        "call": "write-7",
        "attempt": 1,
    }.items() <= write.items()
    assert (write["state"], write["level"]) == ("success", "INFO")
    (ended,) = [line for line in lines if line["message"] == "reply ended"]
    assert (ended["finish_reason"], ended["session"]) == ("completed", "cove")
    steps = {line["activity"]: line.get("reply") for line in attempts if line["activity"] != "longhaul.checkpoint"}
    assert steps.pop("longhaul.restore") is None
    assert set(steps.values()) == {ended["reply"]}
    (failed,) = [line for line in attempts if line["activity"] == "sink"]
    assert (failed["state"], failed["call"], failed["reply"]) == ("error", "sink-8", ended["reply"])
    assert [line["level"] for line in lines if line["message"].startswith("stopping: running calls")] == ["WARNING"]
    assert [word for word in (*WORDS, "sk-tide") if word in written] == []


@pytest.mark.parametrize("form", ["warning", "json"])
async def test_what_the_sdk_warns_of_stands_in_the_log_and_waits_for_no_reader_of_stdout(
    temporal_server: DevServer, tmp_path: Path, form: str
) -> None:
    """Its own way is stdout: the worker of whoever reads no more of that than its first line stood still after some
    ninety warnings."""
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"warns-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"LONGHAUL_LOG": form, "TEMPORAL_WORKFLOW_TASK_DURATION_WARN_SECONDS": "0"},
    )  # fmt: skip
    cli = Cli(environment(given), tmp_path)
    async with worker(given) as one:
        done = cli("run", "greet the walrus", "--model", cli.script({"text": "I will sing"}), "--session", form)
        await until(lambda: one.has_said("Workflow task duration exceeded 0 seconds"), "the SDK's warning")
        one.ask_to_stop()
        await one.wait()
        said, written = await one.rest_of_stdout(), one.log.read_text()
        warned = [line for line in written.splitlines() if "Workflow task duration" in line]

    assert done.code == 0, done.err
    assert (said, "ERROR" in written) == ("", False)
    if form == "json":
        assert {json.loads(line)["logger"] for line in warned} == {"temporalio.core"}
    assert [line for line in warned if ("workflow_history_size" in line) is (form == "json")] == []


CONNECTED = """
import asyncio, json, sys
from longhaul import AgentSpec, Longhaul
from longhaul.activities.models.providers import Providers
from longhaul.worker import build


async def main():
    async with Longhaul.connect() as app, build(app.client, app.settings, Providers()):
        message = await app.session("cove", agent=AgentSpec(model=sys.argv[1])).reply("greet the walrus")
        print(json.dumps({"said": message.get_text_content()}))


asyncio.run(main())
"""


async def test_what_the_sdk_warns_a_program_of_that_connects_is_not_among_what_it_prints(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"connected-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"TEMPORAL_WORKFLOW_TASK_DURATION_WARN_SECONDS": "0"},
    )  # fmt: skip
    cli = Cli(environment(given), tmp_path)
    program = [sys.executable, "-c", CONNECTED, cli.script({"text": "I will sing"})]

    done = await asyncio.to_thread(
        subprocess.run, program, cwd=tmp_path, env=cli.environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"said": "I will sing"}
    assert "Workflow task duration exceeded 0 seconds" in done.stderr


def test_a_worker_with_nothing_switched_on_loads_starts_and_wraps_nothing(tmp_path: Path) -> None:
    given = WorkerSettings(address="127.0.0.1:1", task_queue="nobody", directory=tmp_path, tools="")
    told = subprocess.run(
        [sys.executable, "-c", BEGINS],
        env=environment(given), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    around, threads, *loaded_modules = told.stdout.split()
    loaded = set(loaded_modules)

    assert (around, threads) == ("0", "1")
    assert {
        "pythonjsonlogger",
        "longhaul.activities.telemetry.log_lines",
        "longhaul.activities.telemetry.metrics",
    } & loaded == set()
    assert "longhaul.activities.telemetry.setup" in loaded
