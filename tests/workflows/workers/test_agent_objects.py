"""Agents made of objects in live sessions: code by its name on workers, the rest as it was given."""

import pytest

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.agent.values.tool_groups import ToolGroup
from longhaul.starter.client.agent_files import Agent, Toolkit
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results
from tests.workflows.shop_parts import broken, list_berths, runbooks, shelf, stamp, weigh

pytestmark = pytest.mark.server

PARTS = "tests.workflows.shop_parts"


def serve(stage: Stage) -> Stage:
    """What the operator says of these parts."""
    stage.settings.tools = PARTS
    stage.settings.middlewares = f"?{PARTS}:Stamp"
    stage.settings.offloaders = f"{PARTS}:shelf"
    return stage


@pytest.mark.proves("A6", "A7")
async def test_an_agent_of_objects_works_and_a_worker_that_comes_later_has_them_too(unserved: Stage) -> None:
    stage = serve(unserved)
    shown = {"system_contains": "- mooring: How a ship is moored."}
    agent = Agent(
        "harbour-master",
        "Keep the harbour.",
        stage.script(
            {**calls("weigh", crates=3), "expect": shown},
            {**calls("Skill", skill="mooring"), "expect": {"last_contains": "stamped: 21 kg", **shown}},
            {**calls("list_berths"), "expect": {"last_contains": "Two lines fore"}},
            {"text": "Moored.", "expect": {"last_contains": "shelf://"}},
            {"text": "Doubled.", "expect": {"last_contains": "Double all lines."}},
        ),
        toolkit=Toolkit(
            tools=[weigh],
            skills_or_loaders=[runbooks, broken],
            groups={"berths": ToolGroup(tools=[list_berths], description="Of berths", active=True)},
        ),
        offloader=shelf,
        middlewares=[stamp],
        context_config={"tool_result_limit": 500},
        workspace=Workspace(root=str(stage.workspace)),
    )
    session = stage.app.session(f"{stage.name}-moor", user="ana", agent=agent)
    async with stage.another_worker():
        moored = await session.reply("Moor her")
    async with stage.another_worker():
        doubled = await session.reply("A storm is coming")
        told = str((await session.state()).context)

    assert (moored.error, moored.get_text_content()) == (None, "Moored.")
    assert results(moored)[0][1] == "stamped: 21 kg"
    assert (doubled.error, doubled.get_text_content()) == (None, "Doubled.")
    assert "The skills of 'broken' are missing: their loader failed (RuntimeError)." in told
    assert "the words of the error are for the log" not in told


@pytest.mark.proves("A6")
async def test_a_new_session_begins_in_the_state_of_its_agent_and_one_that_there_is_keeps_its_own(stage: Stage) -> None:
    state = AgentState(context=[UserMsg("ana", "The Grauwal lies in berth 14.")], summary="We were in Kiel.")
    named = {"name": "remembering", "workspace": Workspace(root=str(stage.workspace))}
    model = stage.script({"text": "In berth 14.", "expect": {"last_contains": "Where is she?"}}, {"text": "Again."})
    agent = Agent(**named, model=model, state=state)  # type: ignore[arg-type]  # two kinds in one dictionary
    first = stage.app.session(f"{stage.name}-state", agent=agent)
    one = await first.reply("Where is she?")
    second = stage.app.session(f"{stage.name}-state", agent=agent)
    two = await second.reply("And now?")
    kept = await first.state()

    assert [one.get_text_content(), two.get_text_content()] == ["In berth 14.", "Again."]
    assert kept.summary == "We were in Kiel."
    assert [message.get_text_content() for message in kept.context] == [
        *("The Grauwal lies in berth 14.", "Where is she?", "In berth 14.", "And now?", "Again."),
    ]
