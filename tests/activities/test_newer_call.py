"""A call that is for one worker alone, which may be of an older release than the session that asks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.contract import NOT_HERE, RecordedPlace, RunTool
from longhaul.activities.mcp.servers import McpServers
from longhaul.activities.run_tool import Acting
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.tools import Effect

HERE = "0d1eca5e2b17"
NOBODY: Any = cast(Any, None)
"""What a call that is not started does not come to."""


async def why_not_here(tmp_path: Path, connection: str = f"{HERE}.7", **further: Any) -> str:
    mcp, workspaces = McpServers(worker=HERE), Workspaces(tmp_path)
    acting = Acting(WorkerParts(workspaces=workspaces, mcp=mcp), NOBODY, NOBODY, NOBODY)
    ask = RunTool(
        call_id="call-1",
        arguments="{}",
        tool_digest="moss",
        effect=Effect.IDEMPOTENT,
        analysis=CallAnalysis(),
        place=RecordedPlace(root=str(tmp_path), nonce="tide"),
        agent="a",
        connection=connection,
        held=True,
    )
    said = {**ask.model_dump(mode="json"), **further}
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, activity_type="mcp__harbour__note", activity_id="7")
    with pytest.raises(ApplicationError) as raised:
        await environment.run(acting.run_tool, [RawValue(Payload(data=json.dumps(said).encode()))])
    assert raised.value.type == NOT_HERE
    return str(raised.value.message)


@pytest.mark.parametrize("further", [{"most_bytes": 9}, {"analysis": {"cwd": "/", "may_write": False}}])
async def test_a_call_with_a_field_that_this_release_does_not_know_is_not_started(
    further: dict[str, Any], tmp_path: Path
) -> None:
    """What it would leave out may be a bound."""
    assert "a newer release asks for mcp__harbour__note" in await why_not_here(tmp_path, **further)


async def test_a_call_that_is_understood_is_looked_at_further(tmp_path: Path) -> None:
    assert "another worker keeps the MCP server" in await why_not_here(tmp_path, connection="c0ffee123456.7")
    assert "this worker has no tool 'mcp__harbour__note'" in await why_not_here(tmp_path)
