"""An agent made of objects: what is recorded of each, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.spec.agent_spec import AgentSpec, ReActConfig
from longhaul.agent.values.spec.mcp import MCPClient
from longhaul.agent.values.tool_groups import ToolGroup
from longhaul.starter.client.agent_files import Agent, BadAgent, Toolkit
from longhaul.stores.loading import found_at, places_of
from longhaul.stores.offload.local_workspace import LocalWorkspace
from tests.workflows import shop_parts
from tests.workflows.shop_parts import Shelf, list_berths, runbooks, shelf, stamp, weigh

PARTS = "tests.workflows.shop_parts"
nameless: Any = lambda: 1  # noqa: E731  a function that nobody put under @tool


@pytest.mark.proves("A6")
def test_of_code_the_name_is_recorded_and_of_values_the_value() -> None:
    agent = Agent(
        "harbour",
        "Keep the harbour.",
        "scripted:none.jsonl",
        toolkit=Toolkit(
            tools=[weigh, "Read"],
            mcps=[MCPClient(name="files")],
            skills_or_loaders=["./skills", Path("/srv/skills"), runbooks],
            groups={"berths": ToolGroup(tools=[list_berths], description="Of berths")},
        ),
        offloader=shelf,
        middlewares=[stamp],
        react_config=ReActConfig(max_iters=7),
    )

    assert agent.spec == AgentSpec(
        name="harbour",
        system_prompt="Keep the harbour.",
        model="scripted:none.jsonl",
        tools=["weigh", "Read"],
        mcps=[MCPClient(name="files")],
        skills=["./skills", "/srv/skills", "loader:runbooks"],
        tool_groups={"berths": ToolGroup(tools=["list_berths"], description="Of berths")},
        offloader=f"{PARTS}:shelf",
        middlewares=["Stamp"],
        react_config=ReActConfig(max_iters=7),
    )
    assert AgentSpec.model_validate_json(agent.spec.model_dump_json()) == agent.spec
    assert "Skill" in agent.spec.all_tools


def test_what_is_not_said_is_as_in_a_spec_and_no_offloader_is_none() -> None:
    assert Agent("harbour").spec == AgentSpec(name="harbour")
    assert Agent("harbour", offloader=None).spec.offloader == "none"
    assert Agent("harbour", toolkit=Toolkit()).spec.all_tools == ()


def test_a_spec_takes_objects_where_it_takes_names() -> None:
    assert AgentSpec(tools=[weigh, "Read"], middlewares=[stamp]) == AgentSpec(
        tools=["weigh", "Read"], middlewares=["Stamp"]
    )


def test_an_offloader_is_named_by_where_it_stands() -> None:
    assert found_at(Agent("harbour", offloader=shelf).spec.offloader, "offloader", ValueError) is shelf
    with pytest.raises(BadAgent, match="under the same name, and it is at the top of no module"):
        Agent("harbour", offloader=LocalWorkspace("/tmp/nowhere"))


def test_of_what_several_modules_have_all_places_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop_parts, "stored", stored := LocalWorkspace("/tmp/nowhere"), raising=False)
    assert places_of(stored) == [f"{PARTS}:stored"]
    monkeypatch.setattr("tests.workflows.tools.stored", stored, raising=False)
    with pytest.raises(BadAgent, match=r"it is in .*:stored, .*:stored; put it into a module"):
        Agent("harbour", offloader=stored)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"toolkit": Toolkit(tools=[nameless])}, "tools: a function has no name under which workers could load it"),
        ({"toolkit": Toolkit(tools=["Read"]), "tools": ["Bash"]}, "tools is in the toolkit too"),
        ({"toolkit": Toolkit(tools=["Read", "Read"])}, "names a tool twice"),
        ({"react_config": {"max_iters": 0}}, "react_config.max_iters"),
        ({"max_iterations": 3}, "max_iterations"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_a_sentence(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(BadAgent, match=why):
        Agent("harbour", **wrong)  # type: ignore[arg-type]  # as people write it


def test_a_state_is_no_part_of_the_spec() -> None:
    agent = Agent("harbour", state=AgentState(summary="We were in Kiel."))

    assert agent.state is not None
    assert "Kiel" not in agent.spec.model_dump_json()
    assert places_of(Shelf) == [f"{PARTS}:Shelf"]
