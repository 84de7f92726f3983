"""Versioned workers with further queues: those of hosts need workers of the promoted build, a worker's own does not."""

import json
import uuid
from pathlib import Path

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.worker_host.deployment import hosts_without, set_current
from tests.activities.mcp.serving import small
from tests.e2e.crash.crash_stage import Stage, until
from tests.e2e.processes import worker
from tests.e2e.test_rollout import Builds

pytestmark = pytest.mark.server


def at_den(stage: Stage, folder: Path) -> Session:
    lines = [
        {"tool_calls": [{"name": "Bash", "input": {"command": "echo here"}}]},
        {"text": "Seen."},
        {"text": "Again."},
    ]
    script = folder / "den.jsonl"
    script.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    spec = {
        "name": "den",
        "model": f"scripted:{script}",
        "tools": ["Bash"],
        "permission": {"mode": "bypass"},
        "workspace": {"root": str(folder), "place": "local", "host": "den"},
    }
    return stage.app.session(f"den-{uuid.uuid4().hex[:6]}", agent=AgentSpec.model_validate(spec))


@pytest.mark.proves("E12")
async def test_a_build_without_workers_on_a_host_is_promoted_by_force_alone_and_the_session_parks(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    builds = Builds(stage, f"hosts-{uuid.uuid4().hex[:6]}")
    client, deployment = stage.app.client, builds.deployment
    session = at_den(stage, tmp_path)

    async with worker(builds.of("one", LONGHAUL_HOST="den")):
        await builds.is_known("one")
        await set_current(client, deployment, "one")
        assert (await session.reply("Go")).get_tool_results()[0].get_text() == "here"
        async with worker(builds.of("two")):
            await builds.is_known("two")
            code, _ = await builds.rollout(builds.of("two"), "promote", "two")
            assert (code, await hosts_without(client, deployment, "two")) == (2, ["den"])
            await set_current(client, deployment, "two", without_hosts=True)
            reply = await session.submit("Go on")

            async def parked() -> bool:
                return "host 'den', which is unavailable" in (await session.status()).host_unavailable

            await until(parked, "the session says that its host is away")
            async with worker(builds.of("two", LONGHAUL_HOST="den")):
                assert (await session.wait(reply)).get_text_content() == "Again."


async def test_a_worker_that_keeps_a_server_for_a_session_holds_up_no_promotion(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    builds = Builds(stage, f"keeps-{uuid.uuid4().hex[:6]}")
    served = json.dumps({"harbour": {"mcp_config": small(), "is_stateful": True}})
    session = at_harbour(stage, tmp_path, "fog", "rain", "sun")

    async with worker(builds.of("one", LONGHAUL_MCP=served)):
        await builds.is_known("one")
        await set_current(stage.app.client, builds.deployment, "one")
        noted = (await session.reply("Note three things.")).get_tool_results()
        async with worker(builds.of("two", LONGHAUL_MCP=served)):
            await builds.is_known("two")
            code, _ = await builds.rollout(builds.of("two"), "promote", "two")

    assert noted[2].get_text().endswith(": fog, rain, sun")
    assert code == 0


def at_harbour(stage: Stage, folder: Path, *words: str) -> Session:
    """A session that has a server keep these words, each by a call of its own."""
    notes = [{"tool_calls": [{"name": "mcp__harbour__note", "input": {"text": word}}]} for word in words]
    script = folder / "harbour.jsonl"
    script.write_text("".join(f"{json.dumps(line)}\n" for line in [*notes, {"text": "Noted."}]))
    spec = {
        "name": "harbour",
        "model": f"scripted:{script}",
        "tools": [],
        "mcps": [{"name": "harbour"}],
        "permission": {"mode": "bypass"},
    }
    return stage.app.session(f"harbour-{uuid.uuid4().hex[:6]}", agent=AgentSpec.model_validate(spec))
