"""What an MCP server asks, answered at a terminal field by field: a real server behind a real worker."""

import pytest

from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.e2e.terminal import at_a_terminal

pytestmark = pytest.mark.server

MOORS = {"tool_calls": [{"id": "moor-1", "name": "mcp__quay__moor", "input": {}}]}


async def test_a_server_is_answered_at_the_terminal_field_by_field(cli: Cli, app: Longhaul) -> None:
    said = {"text": "Moored.", "expect": {"last_contains": "moored at north"}}
    spec = AgentSpec(
        model=cli.script(MOORS, said),
        tools=(),
        mcps=(MCPClient(name="quay"),),
        permission=PermissionContext(rules=(PermissionRule(tool_name="mcp__quay"),)),
    )
    session = app.session("quay-by-hand", agent=spec)
    waiting = await session.reply("Moor")

    seen = at_a_terminal(
        cli,
        *("result", "quay-by-hand", "moor-1"),
        answers=[
            ("accept, decline or cancel? ", "perhaps\r"),
            ("is none of accept, decline, cancel\r\naccept, decline or cancel? ", "a\r"),
            ("name (text): ", "north\r"),
            ("nights (number; leave empty to leave it out): ", "many\r"),
            ("type it as in JSON\r\nnights (number; leave empty to leave it out): ", "3\r"),
        ],
    )
    done = await session.wait(waiting.id)

    assert seen.code == 0, seen.shown
    assert "The MCP server 'quay' asks: Which berth?" in seen.shown
    assert "give no passwords" in seen.shown
    assert done.get_text_content() == "Moored."
