"""Agent files: what they may say about the prompt."""

from pathlib import Path

import pytest

from agent.settings import AgentContext
from starter.agents import BadAgent, load_agent


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[agent_context]\nprompt_template = "{tools}"', r"there is no placeholder 'tools'; there are \{prefix\}"),
        ("[agent_context]\nsystem_sufix = 'x'", "system_sufix"),
        ("skils = ['x']", "did you mean 'skills'"),
        (f"skills = {[str(n) for n in range(21)]}", "at most 20 items"),
    ],
)
def test_a_mistake_in_it_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadAgent, match=complaint):
        load_agent(write(tmp_path, text))
