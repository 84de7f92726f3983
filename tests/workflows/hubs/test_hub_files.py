"""Hubs of agent files: begun once, and brought up to a file that has changed."""

from pathlib import Path

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent, agent_beside, find_sections
from longhaul.starter.client.file_sections import AppliedHub, apply_hubs
from tests.workflows.conftest import Stage
from tests.workflows.hubs.rooms import heard

pytestmark = pytest.mark.server


def write(stage: Stage, name: str, members: str) -> Path:
    path = stage.folder / "jury.toml"
    model = stage.script({"text": "It holds."})
    path.write_text(
        f'[hubs.{name}]\nannouncement = "Is the bridge safe?"\nmembers = {members}\n'
        f'[agents.engineer]\nmodel = "{model}"\ntools = []\n',
        encoding="utf-8",
    )
    (path.parent / "sceptic.toml").write_text(f'model = "{model}"\ntools = []\n', encoding="utf-8")
    return path


async def test_a_hub_of_a_file_is_started_once_and_follows_it(stage: Stage) -> None:
    name = f"jury-{stage.name}"
    path = write(stage, name, '{ ana = "engineer", ben = "sceptic" }')

    async def agent_of(named: str) -> AgentSpec:
        return agent_beside(str(path), named).model_copy(update={"workspace": stage.agent().workspace})

    async def apply(*, remove: bool = False) -> list[AppliedHub]:
        return await apply_hubs(stage.app, find_sections(str(path)).hubs, agent_of, remove=remove)

    started, again = await apply(), await apply()
    write(stage, name, '{ ana = "engineer" }')
    told, gone = await apply(), await apply(remove=True)

    assert started == again == [AppliedHub(name, ("ana", "ben"))]
    assert told == [AppliedHub(name, ("ana", "ben"), gone_from_the_file=("ben",))]
    assert gone == [AppliedHub(name, ("ana",), removed=("ben",))]
    hub = stage.app.hub(name)
    ana = stage.app.session(f"{name}-ana", agent=await agent_of("engineer"))
    await hub.heard(await ana.reply("Speak"))
    assert await heard(ana) == ["user: Is the bridge safe?", "user: Speak"]
    await hub.end()


def test_a_member_is_an_agent_of_the_file_or_of_one_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "jury.toml"
    path.write_text(
        'model = "openai:gpt-7"\n[model_config]\ntemperature = 0.3\n'
        '[agents.engineer]\nmax_children = 3\n[agents.clerk]\nmodel = "qwen:qwen-9"\n',
        encoding="utf-8",
    )
    (tmp_path / "sceptic.toml").write_text("max_children = 4\n", encoding="utf-8")

    engineer, clerk = (agent_beside(str(path), name) for name in ("engineer", "clerk"))
    assert (engineer.max_children, engineer.model, engineer.llm_config.temperature) == (3, "openai:gpt-7", 0.3)
    assert (clerk.model, clerk.llm_config.temperature) == ("qwen:qwen-9", None)
    assert agent_beside(str(path), "sceptic").max_children == 4
    with pytest.raises(BadAgent, match="there is no agent file"):
        agent_beside(str(path), "nobody")
    with pytest.raises(BadAgent, match="is no name of an agent file next to this one"):
        agent_beside(str(path), "../sceptic")
