"""`longhaul stop`, `/stop` of a chat and the route: what works in the background of an idle session is dead by then."""

from pathlib import Path

import pytest

from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.cli.test_subagents import script
from tests.e2e.conftest import Cli
from tests.e2e.processes import a_while, running_with
from tests.e2e.serve.test_sessions import agent, desk, served
from tests.e2e.serving import Serving
from tests.e2e.terminal import Terminal
from tests.workflows.operations import until

pytestmark = pytest.mark.server

__all__ = ["desk", "served"]  # fixtures


def stubborn(number: str, call_id: str = "b1") -> dict[str, object]:
    """A call of Bash in the background that ignores SIGTERM, and has a child in a session of its own."""
    command = f"echo up; trap '' TERM; (trap '' TERM; setsid sleep {number} & wait) & sleep {number}"
    return {"id": call_id, "name": "Bash", "input": {"command": command, "run_in_background": True}}


async def runs(number: str) -> None:
    async def both() -> bool:
        return len(running_with(f"sleep\0{number}")) >= 2

    await until(both)


@pytest.mark.proves("C3")
async def test_a_command_and_a_sub_agent_are_stopped_by_their_ids_and_once(
    cli: Cli, app: Longhaul, tmp_path: Path
) -> None:
    mark = a_while()
    task = {"agent": "scribe", "task": "write", "run_in_background": True}
    naps = {"id": "n1", "name": "sleep", "input": {"for": "1h"}}
    scribe = AgentSpec(name="scribe", model=script(tmp_path / "scribe.jsonl", {"tool_calls": [naps]}), tools=["sleep"])
    lead = AgentSpec(
        model=cli.script(
            {"tool_calls": [stubborn(mark), {"id": "t1", "name": "Agent", "input": task}]},
            {"text": "I wait."},
            {"text": "I see."},
        ),
        tools=["Bash"],
        agents={"scribe": scribe},
        permission=PermissionContext(mode=PermissionMode.BYPASS),
    )
    session = app.session("reef", user="ute", agent=lead)
    await session.reply("Go")
    await runs(mark)

    unknown = cli("stop", "reef", "b9")
    refused = cli("interrupt", "reef").err
    first = cli("stop", "reef", "b1", "--as", "ana")
    left = running_with(mark)
    both = cli("stop", "reef", "--as", "ben", "--json")
    again = cli("stop", "reef", "b1")
    none = cli("stop", "reef")
    shown = cli("show", "reef").out

    assert unknown.code == 2
    assert "has the id 'b9'; at work there: 'b1' (command), 't1' (sub-agent 'scribe')" in " ".join(unknown.err.split())
    assert "is for what works in the background: 'b1' (command), 't1'" in " ".join(refused.split())
    assert (first.code, first.out) == (0, "b1 is over: stopped\n")
    assert left == []
    assert both.document["ends"] == {"t1": "interrupted"}
    assert (again.code, again.out) == (0, "b1 is over: stopped\n")
    assert (none.code, none.out) == (0, "there is no background work\n")
    assert "command b1: stopped (stopped by ana): " in shown
    assert "(stopped by ben)\n  longhaul show reef.t1 --user ute --agent scribe\n" in shown
    assert (await session.reply("And?")).get_text_content() == "I see."


def test_a_chat_lists_what_works_beside_it_and_stops_it(cli: Cli) -> None:
    mark = a_while()
    model = cli.script({"tool_calls": [stubborn(mark)]}, {"text": "I wait."})
    with Terminal(cli, "chat", "--model", model, "--mode", "bypass", "--session", "kelp") as terminal:
        terminal.until(">")
        terminal.types("count\n")
        terminal.until("I wait.")
        terminal.types("/tasks\n")
        terminal.until("in the background b1: echo up; trap")
        terminal.types("/stop b9\n")
        terminal.until("has the id 'b9'; at work there: 'b1'")
        terminal.types("/stop\n")
        terminal.until("b1 is over: stopped")
        left = running_with(mark)
        terminal.types("/quit\n")
        seen = terminal.end()

    assert left == []
    assert seen.code == 0, seen.shown


async def test_whoever_may_answer_stops_it_over_http(tmp_path: Path, served: Serving) -> None:
    mark = a_while()
    said = ({"tool_calls": [stubborn(mark)]}, {"text": "I wait."})
    session = agent(tmp_path, *said, more='tools = ["Bash"]\n[permission]\nmode = "bypass"')
    async with served.client() as client:
        await client.post(f"{session}/messages?wait=30", json={"messages": "Go"})
        await runs(mark)
        unknown = await client.post(f"{session}/stop-background", json={"call_id": "b9"})
        first = await client.post(f"{session}/stop-background", json={"call_id": "b1"})
        again = await client.post(f"{session}/stop-background", json={"call_id": "b1"})
        (command,) = (await client.get(f"{session}/status")).json()["commands"]

    assert (unknown.status_code, "at work there: 'b1'" in unknown.text) == (409, True)
    assert first.json() == again.json() == {"ends": {"b1": "stopped"}}
    assert (command["fate"], command["stopped_by"]) == ("stopped", "ana")
    assert running_with(mark) == []
