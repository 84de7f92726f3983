"""Metrics as Prometheus gets them from a worker process."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.e2e.telemetry.collector import collecting
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

pytestmark = pytest.mark.server


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
    command = [sys.executable, "-m", "longhaul.worker"]
    ended = subprocess.run(
        command, env=environment(given), cwd=folder, capture_output=True, text=True, check=False, timeout=SURE_SECONDS
    )
    return ended.returncode, ended.stderr


PRICES = """
["scripted"]
input = 1_000
output = 10_000
"""
CHAT = ('gen_ai_operation_name="chat"', 'gen_ai_provider_name="scripted"', 'gen_ai_request_model="script.jsonl"')
OF_EACH_CALL = (
    ("operation_duration_seconds_count", 'gen_ai_response_model="scripted"'),
    ("operation_duration_seconds_bucket", 'le="81.92"'),
    ("token_usage_count", 'gen_ai_token_type="output"'),
)
CACHED = (('result="hit"',), ('result="none"',), ('result="miss"', 'reason="provider"'))
USAGE = {"input_tokens": 70, "output_tokens": 9, "cache_input_tokens": 30}


@pytest.mark.proves("F7")
async def test_a_worker_serves_what_it_and_the_sdk_have_counted(temporal_server: DevServer, tmp_path: Path) -> None:
    where = f"127.0.0.1:{free_port()}"
    (tmp_path / "prices.toml").write_text(PRICES)
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"metrics-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"LONGHAUL_METRICS": where, "LONGHAUL_PRICES": str(tmp_path / "prices.toml")},
    )  # fmt: skip
    cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
    writes = {"tool_calls": [{"id": "w-1", "name": "Write", "input": {"file_path": "a.txt", "content": "x"}}]}
    reads = {"tool_calls": [{"name": "Read", "input": {"file_path": "missing.txt"}}], "usage": USAGE}
    model = cli.script(reads, writes, {"text": "It is there now."})
    async with worker(given):
        cli("run", "What does it say?", "--model", model, "--session", "counted", "--request-id", "r-1")
        approved = cli("approve", "counted", "w-1")
        done = cli("run", "What does it say?", "--session", "counted", "--request-id", "r-1")
        page = scraped(f"http://{where}/metrics")
        while not value_of(page, "longhaul_replies_total"):  # the checkpoint comes a moment after the answer
            page = scraped(f"http://{where}/metrics")
        code, said = started_beside(given, tmp_path)

    assert (approved.code, done.code) == (0, 0), done.err
    assert value_of(page, "longhaul_model_calls_total") == 3
    assert value_of(page, "longhaul_steps_total", 'kind="tool"') == 2
    assert value_of(page, "longhaul_tool_calls_total", 'tool="Read"', 'state="error"') == 1
    assert value_of(page, "longhaul_tokens_total", 'token_type="input"') >= 70
    assert [value_of(page, "longhaul_prompt_cache_total", *labels) for labels in CACHED] == [1, 1, 1]
    assert value_of(page, "longhaul_cost_sum") >= 0.16
    assert value_of(page, "longhaul_replies_total", 'finish_reason="completed"') == 1
    assert value_of(page, "longhaul_wait_seconds_count", 'tool="Write"', 'waits_for="person"') == 1
    assert value_of(page, "longhaul_wait_seconds_bucket", 'le="604800"') == 1
    assert [value_of(page, f"gen_ai_client_{name}", *CHAT, *labels) for name, *labels in OF_EACH_CALL] == [3, 3, 3]
    assert value_of(page, "temporal_workflow_task_execution_latency_count") >= 1, page[:2000]
    assert code == 1
    assert said.startswith(f"longhaul worker: LONGHAUL_METRICS: nothing can be served at '{where}'")


@pytest.mark.proves("X8")
async def test_what_is_spent_put_aside_and_left_of_a_budget_is_counted(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    where = f"127.0.0.1:{free_port()}"
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"spent-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"LONGHAUL_METRICS": where},
    )  # fmt: skip
    cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
    model = cli.script({"text": "Forty.", "usage": {"input_tokens": 200, "output_tokens": 50}}, {"text": "Never."})
    agent = tmp_path / "miser.toml"
    agent.write_text(f'model = "{model}"\n[budget]\nmax_calls = 1\nmax_tokens = 100_000\non_exhaustion = "stop"\n')
    async with worker(given):
        first = cli("run", "How many?", "--agent", str(agent), "--session", "miser")
        second = cli("run", "And now?", "--session", "miser")
        page = scraped(f"http://{where}/metrics")
        while not value_of(page, "longhaul_replies_total", 'finish_reason="out_of_budget"'):
            page = scraped(f"http://{where}/metrics")

    assert (first.code, second.code) == (0, 4), second.err
    assert value_of(page, "longhaul_budget_exhausted_total", 'limit="calls"') == 1
    shares = {
        (limit, part): value_of(page, "longhaul_budget_share_sum", f'limit="{limit}"', f'part="{part}"')
        / value_of(page, "longhaul_budget_share_count", f'limit="{limit}"', f'part="{part}"')
        for limit in ("calls", "tokens")
        for part in ("spent", "reserved", "left")
    }
    assert shares["calls", "spent"] == 1
    assert (shares["calls", "left"], shares["calls", "reserved"], shares["tokens", "reserved"]) == (0, 0, 0)
    assert shares["tokens", "spent"] == pytest.approx(0.0025)
    assert shares["tokens", "left"] == pytest.approx(0.9975)


@pytest.mark.proves("F7")
async def test_a_worker_sends_them_to_a_collector(temporal_server: DevServer, tmp_path: Path) -> None:
    with collecting() as collector:
        given = WorkerSettings(
            address=temporal_server.address, task_queue=f"sent-{tmp_path.name}", directory=tmp_path / "data", tools="",
            further={
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{collector.url}/v1/metrics",
                "OTEL_METRIC_EXPORT_INTERVAL": "200",
            },
        )  # fmt: skip
        cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
        model = cli.script({"text": "Forty.", "usage": USAGE, "faults": [{"kind": "overloaded"}]})
        async with worker(given):
            done = cli("run", "greet the walrus", "--model", model, "--session", "sent")
            collector.until(lambda: collector.metric("longhaul_replies"), "the end of the reply")

    assert done.code == 0, done.err
    assert collector.metric("longhaul_model_calls", model="scripted") == 1, collector.bodies
    assert collector.metric("longhaul_tokens", token_type="output") == 9
    assert collector.metric("longhaul_reply_seconds") > 0
    call = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "script.jsonl"}
    assert collector.metric("gen_ai.client.token.usage", **call, **{"gen_ai.token.type": "input"}) == 70
    assert collector.metric("gen_ai.client.token.usage", **call, **{"gen_ai.token.type": "output"}) == 9
    assert collector.metric("gen_ai.client.operation.duration", **call, **{"gen_ai.response.model": "scripted"}) > 0
    assert collector.metric("gen_ai.client.operation.duration", **call, **{"error.type": "upstream"}) > 0
    assert collector.spans() == []
    assert b"walrus" not in collector.raw
    assert b"Forty" not in collector.raw
