"""An agent with nine MCP servers: it has most tools by name alone, finds one, and calls it as anybody would."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolResultState
from longhaul.agent.values.tool_index import CALL_TOOL, FIND_TOOLS
from tests.activities.mcp import nine_servers
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server

NAMES = ("everything", "filesystem", "memory", "github", "gitlab", "slack", "playwright", "notion", "mongodb")


def program(name: str) -> dict[str, Any]:
    root = str(Path(__file__).parents[3])
    return {"command": sys.executable, "args": ["-S", nine_servers.__file__, name], "cwd": root}


@pytest.mark.timeout(120)
async def test_a_tool_is_found_and_its_call_is_judged_and_recorded_as_its_own(unserved: Stage) -> None:
    offered = {name: {"mcp_config": program(name)} for name in NAMES}
    unserved.settings = unserved.settings.model_copy(update={"mcp": offered})
    issue = {"owner": "ana", "repo": "tides", "title": "Fog"}
    session = unserved.session(
        {
            **calls(FIND_TOOLS, query="report a bug in a GitHub repository"),
            "expect": {"tools": [FIND_TOOLS, CALL_TOOL]},
        },
        {
            **calls(CALL_TOOL, tool="mcp__github__create_issue", arguments=issue),
            "expect": {"last_contains": '{"name": "mcp__github__create_issue"'},
        },
        calls(CALL_TOOL, tool="mcp__github__fly", arguments={}),
        calls(CALL_TOOL, tool="mcp__github__create_issue", arguments={"owner": 7}),
        {"text": "Reported.", "usage": {"input_tokens": 10}},
        tools=(),
        mcps=[{"name": name} for name in NAMES],
        permission={"rules": [{"tool_name": "mcp__gitlab", "behavior": "allow"}]},
    )
    async with unserved.another_worker():
        told = [event async for event in session.reply_stream("Report the fog")]
        (call,) = await session.pending()
        await session.confirm(call, allow=True, approver="ana")
        done = await session.wait(told[-1].reply_id)
        state = await session.state()
        prepared = await unserved.handle(session).query("entries", args=[5])

    assert (call.tool, json.loads(call.input)) == ("mcp__github__create_issue", issue)
    (found, _), (created, text), (unknown, why), (unfit, wrong) = results(done)
    assert (found, created) == (ToolResultState.SUCCESS, ToolResultState.SUCCESS)
    assert text == f"create_issue was called with {json.dumps(issue, sort_keys=True)}"
    assert (unknown, why) == (
        ToolResultState.ERROR,
        f"tool: there is no tool 'mcp__github__fly' to call; look it up by {FIND_TOOLS}",
    )
    assert unfit is ToolResultState.ERROR
    assert "'repo' is missing" in wrong
    made = [block for message in state.context for block in message.content if isinstance(block, ToolCallBlock)]
    assert [block.name for block in made] == [FIND_TOOLS, call.tool, CALL_TOOL, call.tool]
    assert "mcp__github__create_issue" in state.tool_context.found
    assert [event.tool_call_name for event in told if event.type == "TOOL_CALL_START"] == [FIND_TOOLS, call.tool]
    (first,) = (entry for entry in prepared["entries"] if entry["kind"] == "prepared" and entry["tools"])
    assert len(first["tools"]) == 225
    assert first["fixed_tokens"] < 8_000, "of some 70,000"
