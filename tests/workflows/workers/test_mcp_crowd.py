"""Many sessions with servers that keep state, on one worker: the processes stay few, and none outlives the worker."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from longhaul.activities.mcp.servers import MOST_KEPT
from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.mcp.serving import small
from tests.activities.process.pids import until
from tests.e2e.processes import running_with, worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server

SESSIONS = 50


def servers(mark: str) -> dict[str, Any]:
    """Two, whose processes bear the mark in their command lines."""
    keeping: dict[str, Any] = small()
    keeping["args"] = [*keeping["args"], mark]
    return {name: {"mcp_config": keeping, "is_stateful": True} for name in ("harbour", "quay")}


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_fifty_sessions_with_two_servers_each_keep_few_processes_and_leave_none(unserved: Stage) -> None:
    mark = f"crowd-{unserved.name}"
    offered = servers(mark)
    unserved.settings = unserved.settings.model_copy(update={"mcp": offered})
    settings = replace(unserved.worker_settings, further={"LONGHAUL_MCP": json.dumps(offered)})

    async def one() -> list[tuple[ToolResultState, str]]:
        session = unserved.session(
            calls("mcp__harbour__note", text="fog"),
            calls("mcp__quay__note", text="rain"),
            {"text": "Kept."},
            tools=(),
            mcps=[{"name": name} for name in offered],
            permission={"rules": [{"tool_name": f"mcp__{name}"} for name in offered]},
        )
        return results(await session.reply("Note the weather."))

    async with worker(settings) as running:
        came = await asyncio.gather(*(one() for _ in range(SESSIONS)))
        kept = len(running_with(mark))
        await running.kill()
        await until(lambda: not running_with(mark))

    assert all([state for state, _ in both] == [ToolResultState.SUCCESS] * 2 for both in came)
    assert [text.partition(": ")[2] for _, text in came[0]] == ["fog", "rain"]
    assert 0 < kept <= 2 * MOST_KEPT, "a program and its leash each"
