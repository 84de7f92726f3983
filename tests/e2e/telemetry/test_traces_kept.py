"""A trace stays one where a session goes on in a fresh history, and is not made where its caller's is not sampled."""

from pathlib import Path

import pytest
from temporalio.client import Client

from longhaul.agent.plain.ids import workflow_id
from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.processes import WorkerSettings, environment, worker
from tests.e2e.telemetry.collector import Collector, collecting

pytestmark = pytest.mark.server

LOOKS = 12
READ = {"name": "Read", "input": {"file_path": "missing.txt"}}


def settings(address: str, folder: Path, collector: Collector, **more: str) -> WorkerSettings:
    further = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100", **more}
    return WorkerSettings(
        address=address, task_queue=f"kept-{folder.name}", directory=folder / "data", tools="", further=further
    )


async def test_a_reply_is_one_trace_across_fresh_histories(impatient_server: str, tmp_path: Path) -> None:
    with collecting() as collector:
        given = settings(impatient_server, tmp_path, collector, OTEL_METRICS_EXPORTER="none")
        cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
        agent = tmp_path / "reader.toml"
        agent.write_text('name = "reader"\ntools = ["Read"]\n[stuck]\nenabled = false\n')
        model = cli.script(*({"tool_calls": [{**READ, "id": f"look-{n}"}]} for n in range(LOOKS)), {"text": "Seen."})
        async with worker(given):
            done = cli("run", "look", "--agent", str(agent), "--model", model, "--session", "long", "--json")
            collector.until(lambda: collector.spans("invoke_agent reader"), "the reply")
            collector.until(lambda: len(collector.spans("chat script.jsonl")) == LOOKS + 1, "the last model call")
        client = await Client.connect(impatient_server)
        runs = [row async for row in client.list_workflows(f"WorkflowId = '{workflow_id('reader', None, 'long')}'")]

    assert done.code == 0, done.err
    assert len(runs) >= 2
    (reply,) = collector.spans("invoke_agent reader")
    asked = collector.spans("longhaul.submit")[0]
    steps = [*collector.spans("longhaul.call_model"), *collector.spans("execute_tool Read")]
    assert len(steps) == 2 * LOOKS + 1
    assert reply.parent == asked.id
    assert {(span.trace, span.parent) for span in steps} == {(asked.trace, reply.id)}
    assert reply.start <= min(span.start for span in steps)


async def test_a_caller_whose_trace_is_not_sampled_gets_none(temporal_server: DevServer, tmp_path: Path) -> None:
    with collecting() as collector:
        given = settings(temporal_server.address, tmp_path, collector, OTEL_METRICS_EXPORTER="none")
        silent = Cli(environment(given) | {"TERM": "xterm", "OTEL_TRACES_SAMPLER": "always_off"}, tmp_path)
        heard = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
        model = silent.script({"tool_calls": [READ]}, {"text": "Not there."})
        async with worker(given):
            unsampled = silent("run", "look", "--model", model, "--session", "unsampled")
            sampled = heard("run", "look", "--model", model, "--session", "sampled")
            collector.until(lambda: collector.spans("invoke_agent longhaul"), "the reply that is sampled")
            collector.until(lambda: len(collector.spans("chat script.jsonl")) >= 2, "its model calls")

    assert (unsampled.code, sampled.code) == (0, 0), unsampled.err + sampled.err
    of_replies = [span for span in collector.spans() if "longhaul.reply_id" in span.attributes]
    assert {span.attributes["gen_ai.conversation.id"] for span in of_replies} == {"sampled"}
    assert len(collector.spans("chat script.jsonl")) == 2


async def test_a_worker_that_samples_nothing_makes_no_half_traces(temporal_server: DevServer, tmp_path: Path) -> None:
    with collecting() as collector:
        more = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}
        given = settings(temporal_server.address, tmp_path, collector, OTEL_METRICS_EXPORTER="none", **more)
        untraced = environment(given) | {"TERM": "xterm", "OTEL_SDK_DISABLED": "true"}
        cli = Cli(untraced, tmp_path)
        async with worker(given) as one:
            done = cli("run", "look", "--model", cli.script({"text": "Done."}), "--session", "nothing-sampled")
            one.ask_to_stop()
            await one.wait()

    assert done.code == 0, done.err
    assert collector.spans() == []
