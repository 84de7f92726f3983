"""What an MCP server asks, answered at a terminal field by field: a real server behind a real worker."""

import pytest

from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal, at_a_terminal

pytestmark = pytest.mark.server

MOORS = {"tool_calls": [{"id": "moor-1", "name": "mcp__quay__moor", "input": {}}]}


async def waiting(cli: Cli, app: Longhaul, name: str) -> tuple[Session, str]:
    said = {"text": "Moored.", "expect": {"last_contains": "moored at north"}}
    spec = AgentSpec(
        model=cli.script(MOORS, said),
        tools=(),
        mcps=(MCPClient(name="quay"),),
        permission=PermissionContext(rules=(PermissionRule(tool_name="mcp__quay"),)),
    )
    session = app.session(name, agent=spec)
    return session, (await session.reply("Moor")).id


@pytest.mark.proves("X19")
async def test_a_server_is_answered_at_the_terminal_field_by_field(cli: Cli, app: Longhaul) -> None:
    session, reply = await waiting(cli, app, "quay-by-hand")

    seen = at_a_terminal(
        cli,
        *("result", "quay-by-hand", "moor-1"),
        answers=[
            ("accept, decline or cancel? ", "perhaps\r"),
            ("is none of accept, decline, cancel\r\naccept, decline or cancel? ", "a\r"),
            ("name (text): ", "north\r"),
            ("nights (number; leave empty to leave it out): ", "many\r"),
            ("type it as in JSON\x1b[0m\r\nnights (number; leave empty to leave it out): ", "3\r"),
        ],
    )
    done = await session.wait(reply)

    assert seen.code == 0, seen.shown
    assert "The MCP server 'quay' asks: Which berth?" in seen.shown
    assert "give no passwords" in seen.shown
    assert done.get_text_content() == "Moored."


async def test_a_narrow_terminal_breaks_no_word_of_what_a_server_asks_and_of_what_can_t_be_read(
    cli: Cli, app: Longhaul
) -> None:
    """As where somebody types the arguments of a call again: the rows are ours, and what can't be read is red."""
    session, reply = await waiting(cli, app, "quay-by-narrow-hand")

    with Terminal(cli, "result", "quay-by-narrow-hand", "moor-1", columns=38) as terminal:
        terminal.steps(
            ("", asked := "accept, decline or cancel?"),
            ("what do you mean by that, I wonder\r", f"\n  is none of accept, decline, cancel\n{asked}"),
            ("a\r", "name (text):"),
            ("north\r", "it out):"),
            ("many\r", "type it\n  as in JSON"),
            ("3\r", "handed in"),
        )
        seen = terminal.end()
    done = await session.wait(reply)

    assert seen.code == 0, seen.shown
    assert "\x1b[31m" in seen.text
    assert done.get_text_content() == "Moored."
