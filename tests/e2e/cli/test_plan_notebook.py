"""A plan of the plan notebook, as the command line shows it."""

import pytest

from longhaul.agent.values.plans import PlanNotebook
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.server

SAIL = {"name": "Sail\x1b[31m", "description": "", "expected_outcome": "a sail"}
MAKES = {"id": "boat-1", "name": "create_plan", "input": {**SAIL, "name": "Boat", "subtasks": [SAIL, SAIL]}}
ENDS = {"id": "boat-2", "name": "finish_subtask", "input": {"subtask_idx": 0, "subtask_outcome": "of linen"}}


async def test_a_plan_is_shown_to_people_and_programs(cli: Cli, app: Longhaul) -> None:
    model = cli.script({"tool_calls": [MAKES]}, {"tool_calls": [ENDS]}, {"text": "Half of it."})
    spec = AgentSpec(model=model, tool_groups={"plan_related": PlanNotebook(active=True)})
    await app.session("shipyard", agent=spec).reply("Build a boat")

    shown = cli("show", "shipyard")
    plan = cli("show", "shipyard", "--json").document["status"]["plan"]
    with Terminal(cli, "chat", "--session", "shipyard") as terminal:
        terminal.steps(("", "Half of it."), ("", "> "), ("/tasks\r", "plan Boat\n  [x] Sail"))
        terminal.presses("/quit\r")
        chat = terminal.end()

    assert "\ntasks 1/2: Sail" in shown.out
    assert "\nplan Boat\n  [x] Sail" in shown.out
    assert ": of linen\n  [>] Sail" in shown.out
    assert "\x1b[31m" not in shown.out
    assert (chat.code, "[>] Sail" in chat.shown, "Sail\x1b[31m" in chat.text) == (0, True, False), chat.shown
    assert (plan["name"], plan["state"], plan["created_at"][:2]) == ("Boat", "in_progress", "20")
    assert [(one["state"], one.get("outcome", "")) for one in plan["subtasks"]] == [
        ("completed", "of linen"),
        ("in_progress", ""),
    ]
