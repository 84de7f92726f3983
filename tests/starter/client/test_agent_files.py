"""Agent files: what they may say about the prompt."""

import re
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.spec.agent_spec import AgentContext, AgentSpec
from longhaul.starter.client.agent_files import BadAgent, Sections, find_sections, load_agent

DOCS = Path(__file__).parents[3] / "docs"
TABLE = r"```toml[^\n]*\n(.*?)```"
OF_OTHER_FILES = {
    "agents/budgets.md": '["claude-sonnet-4"]',  # prices
    "agents/mcp.md": "[mcp.",
    "agents/memory.md": "embeddings =",
    "agents/web.md": "web_private =",
    "operating/monitoring.md": '["claude-sonnet-4"]',
}
"""Examples of the operator's files, by how they begin."""


def examples() -> list[tuple[str, str]]:
    """What the pages show of agent files, by page and number."""
    found = [
        (page.relative_to(DOCS).as_posix(), number, text)
        for page in sorted(DOCS.rglob("*.md"))
        for number, text in enumerate(re.findall(TABLE, page.read_text(encoding="utf-8"), re.DOTALL))
    ]
    return [
        (f"{page} {number}", text)
        for page, number, text in found
        if page not in OF_OTHER_FILES or OF_OTHER_FILES[page] not in text
    ]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mason.toml"
    path.write_text(text)
    return path


def test_an_agent_file_sets_skills_and_what_stands_around_the_prompt(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'skills = ["/srv/skills", "docs"]\ninject_runtime_state = true\n'
        '[agent_context]\nsystem_prefix = "You work for Ana."\nprompt_template = "terse"\nrepo_skills = true\n',
    )

    spec = load_agent(path)

    assert (spec.skills, spec.inject_runtime_state) == (("/srv/skills", "docs"), True)
    assert spec.agent_context == AgentContext(
        system_prefix="You work for Ana.", prompt_template="terse", repo_skills=True
    )


def test_an_agent_file_names_the_files_of_its_sub_agents_or_has_them_in_tables(tmp_path: Path) -> None:
    (tmp_path / "scout.toml").write_text('description = "looks"\nagents = ["digger"]\n')
    (tmp_path / "digger.toml").write_text('system_prompt_file = "digging.txt"\n')
    (tmp_path / "digging.txt").write_text("Dig.")

    named = load_agent(write(tmp_path, 'agents = ["scout"]'))
    inline = load_agent(
        write(tmp_path, '[agents.scout]\ndescription = "looks"\n[agents.scout.permission]\nmode = "plan"')
    )

    scout = named.agents["scout"]
    assert (scout.name, scout.description) == ("scout", "looks")
    assert scout.agents["digger"].system_prompt == "Dig."
    assert inline.agents["scout"].permission.mode.value == "plan"


@pytest.mark.parametrize(("where", "text"), examples(), ids=[where for where, _ in examples()])
def test_every_example_of_an_agent_file_can_be_read(tmp_path: Path, where: str, text: str) -> None:
    file = write(tmp_path, text)

    assert isinstance(load_agent(file), AgentSpec), where
    assert isinstance(find_sections(str(file)), Sections), where


def test_the_agents_of_the_page_can_be_read_and_start_what_they_name(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents" / "subagents.md").read_text(encoding="utf-8")
    written, *_of_a_part = re.findall(TABLE, page, re.DOTALL)
    program, _listing = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    made: dict[str, Any] = {}

    lead = load_agent(write(tmp_path, written))
    exec(program.replace('AgentSpec(name="lead"', 'lead = AgentSpec(name="lead"'), made)  # noqa: S102  the page's own

    assert lead.all_tools == ("Read", "Agent", "AgentList", "AgentSend", "AgentStop")
    assert {name: agent.all_tools for name, agent in lead.agents.items()} == {
        "scout": ("Read", "Grep", "Glob"),
        "fixer": ("Read", "Edit", "Bash"),
    }
    assert lead.max_children == 10
    assert made["lead"].agents["scout"].description == "reads code"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('agents = ["mason"]', "mason → mason: an agent cannot be its own sub-agent"),
        ('agents = ["roofer"]', "there is no agent file '.*roofer.toml'"),
        ('agents = ["../roofer"]', "'../roofer' is no name of an agent file next to this one"),
        ("agents = [7]", "'7' is no name of an agent file"),
        ("[agents.scout]\ntoolz = []", "agents.scout.toolz"),
        ('[agent_context]\nprompt_template = "{tools}"', r"there is no placeholder 'tools'; there are \{prefix\}"),
        ("[agent_context]\nsystem_sufix = 'x'", "system_sufix"),
        ("skils = ['x']", "did you mean 'skills'"),
        (f"skills = {[str(n) for n in range(21)]}", "at most 20 items"),
    ],
)
def test_a_mistake_in_it_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadAgent, match=complaint):
        load_agent(write(tmp_path, text))
