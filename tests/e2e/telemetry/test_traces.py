"""Traces as a collector gets them, from worker processes and the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.processes import ROOT, WorkerSettings, environment, worker
from tests.e2e.telemetry.collector import Collector, Span, collecting

pytestmark = pytest.mark.server

WORDS = ("greet the walrus", "I will sing", "low-tide.txt", "barnacles", "all sung")
WRITES = {"id": "write-7", "name": "Write", "input": {"file_path": "low-tide.txt", "content": "barnacles"}}
LINES = (
    {"text": "I will sing", "tool_calls": [WRITES], "usage": {"input_tokens": 70, "output_tokens": 9}},
    {"text": "all sung"},
)
SESSION = ("--session", "shore", "--request-id", "r-1", "--json")


def settings(server: DevServer, folder: Path, collector: Collector, **more: str) -> WorkerSettings:
    further = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100", **more}
    return WorkerSettings(
        address=server.address, task_queue=f"traces-{folder.name}", directory=folder / "data", tools="", further=further
    )


@pytest.mark.proves("F7")
async def test_one_trace_connects_client_model_and_tool_across_a_killed_worker(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    with collecting() as collector:
        given = settings(temporal_server, tmp_path, collector)
        cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
        async with worker(given) as first:
            parked = cli("run", "greet the walrus", "--model", cli.script(*LINES), *SESSION)
            collector.until(lambda: collector.spans("longhaul.call_model"), "the first model call")
            await first.kill()
        async with worker(given):
            approved = cli("approve", "shore", "write-7")
            finished = cli("run", "greet the walrus", *SESSION)
            collector.until(lambda: collector.spans("invoke_agent longhaul"), "the reply")
            collector.until(lambda: len(collector.spans("longhaul.call_model")) == 2, "the second model call")

        assert (parked.code, approved.code, finished.code) == (3, 0, 0), finished.err
        (reply,) = collector.spans("invoke_agent longhaul")
        asked = collector.spans("longhaul.submit")[0]
        (tool,) = collector.spans("execute_tool Write")
        chats, calls = collector.spans("chat script.jsonl"), collector.spans("longhaul.call_model")
        assert reply.parent == asked.id
        assert asked.parent == ""
        assert {span.trace for span in (reply, tool, *chats, *calls)} == {asked.trace}
        assert {span.parent for span in (tool, *calls)} == {reply.id}
        assert [chat.parent for chat in chats] == [call.id for call in calls]
        assert_described(reply, tool, chats[0])
        assert [word for word in WORDS if word.encode() in collector.raw] == []


def assert_described(reply: Span, tool: Span, chat: Span) -> None:
    assert reply.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert reply.attributes["gen_ai.conversation.id"] == "shore"
    assert reply.attributes["longhaul.finish_reason"] == "completed"
    assert reply.attributes["gen_ai.usage.input_tokens"] >= 70
    assert reply.start <= chat.start < chat.end <= tool.start
    assert reply.end >= tool.end - 1_000_000  # the workflow counts in milliseconds
    assert tool.attributes["gen_ai.tool.call.id"] == "write-7"
    assert tool.attributes["longhaul.tool.state"] == "success"
    assert (tool.status, chat.kind) == (0, 3)
    assert chat.attributes["gen_ai.provider.name"] == "scripted"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 70
    assert chat.attributes["gen_ai.usage.output_tokens"] == 9
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["tool_use"]


async def test_words_are_exported_when_they_are_asked_for_and_secrets_never(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    with collecting() as collector:
        more = {"LONGHAUL_OTEL_CONTENT": "on", "LONGHAUL_SECRET_TIDE": "sk-tide-table-4711"}
        given = settings(temporal_server, tmp_path, collector, **more)
        cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
        reads = {"tool_calls": [{"name": "Read", "input": {"file_path": "missing.txt"}}]}
        async with worker(given):
            model = cli.script(reads, {"text": "the walrus says sk-tide-table-4711"})
            done = cli("run", "greet the walrus", "--model", model, "--session", "sea")
            collector.until(lambda: collector.spans("invoke_agent longhaul"), "the reply")

        chat = collector.spans("chat script.jsonl")[-1]
        (tool,) = collector.spans("execute_tool Read")
        assert done.code == 0, done.err
        assert "greet the walrus" in chat.attributes["gen_ai.input.messages"]
        assert "the walrus says [secret TIDE]" in chat.attributes["gen_ai.output.messages"]
        assert "missing.txt" in tool.attributes["gen_ai.tool.call.arguments"]
        assert (tool.status, tool.attributes["error.type"]) == (2, "error")
        assert b"sk-tide" not in collector.raw


def test_a_worker_without_traces_loads_nothing_that_makes_or_sends_them(tmp_path: Path) -> None:
    given = WorkerSettings(address="127.0.0.1:1", task_queue="nobody", directory=tmp_path, tools="")
    told = subprocess.run(
        [sys.executable, "-c", "import sys, longhaul.worker; print(*sys.modules, sep='\\n')"],
        env=environment(given), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = told.stdout.split()

    # The client of Redis loads OpenTelemetry's metrics by itself.
    makers = (
        "opentelemetry.sdk.trace",
        "opentelemetry.exporter",
        "opentelemetry.proto",
        "longhaul.starter.telemetry.traces",
    )
    assert "longhaul.activities.telemetry.setup" in loaded
    assert [name for name in loaded if name.startswith((*makers, "longhaul.activities.telemetry.spans"))] == []


def test_a_way_of_sending_that_is_not_known_is_a_sentence(tmp_path: Path) -> None:
    given = WorkerSettings(
        address="127.0.0.1:1",
        task_queue="nobody",
        directory=tmp_path,
        tools="",
        further={"OTEL_TRACES_EXPORTER": "fax"},
    )
    told = subprocess.run(
        [sys.executable, "-m", "longhaul.worker"],
        env=environment(given),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 1
    assert told.stderr.startswith("longhaul worker: OTEL_TRACES_EXPORTER: 'fax' is not known")
