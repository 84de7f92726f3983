"""What the flags make of an agent."""

from pathlib import Path

import pytest

from agent.permission.rules import PermissionMode
from starter.agents import BadAgent
from starter.cli.leaving import Misuse
from starter.cli.opening import Wishes, fresh_name, spec_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a folder `src` in it."""
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def agent_file(folder: Path, *lines: str) -> str:
    (folder / "coder.toml").write_text("\n".join(lines))
    return str(folder / "coder.toml")


def test_a_flag_wins_over_the_agent_file_and_that_over_the_settings(folder: Path) -> None:
    agent = agent_file(folder, 'model = "openai:from-file"')

    assert spec_of(Wishes(agent=agent, model="openai:from-flag"), "openai:from-settings").model == "openai:from-flag"
    assert spec_of(Wishes(agent=agent), "openai:from-settings").model == "openai:from-file"
    assert spec_of(Wishes(), "openai:from-settings").model == "openai:from-settings"


def test_a_script_and_a_workspace_are_made_absolute(folder: Path) -> None:
    spec = spec_of(Wishes(model="scripted:s.jsonl", workspace="src"), "")

    assert spec.model == f"scripted:{folder}/s.jsonl"
    assert spec.workspace is not None
    assert spec.workspace.root == f"{folder}/src"


def test_the_workspace_is_the_current_directory_where_nobody_names_one(folder: Path) -> None:
    unnamed = spec_of(Wishes(), "").workspace
    of_the_file = spec_of(Wishes(agent=agent_file(folder, "[workspace]", 'root = "/srv/shop"')), "").workspace

    assert unnamed is not None
    assert unnamed.root == str(folder)
    assert of_the_file is not None
    assert of_the_file.root == "/srv/shop"


def test_the_mode_leaves_the_files_rules_alone(folder: Path) -> None:
    agent = agent_file(folder, "[[permission.rules]]", 'tool_name = "Bash"', 'rule_content = "ls"')

    permission = spec_of(Wishes(agent=agent, mode="accept_edits"), "").permission

    assert permission.mode is PermissionMode.ACCEPT_EDITS
    assert [rule.rule_content for rule in permission.rules] == ["ls"]


@pytest.mark.parametrize(
    ("wishes", "complaint", "sentence"),
    [
        (Wishes(mode="wild"), Misuse, "--mode: there is no mode 'wild'; there are: default, "),
        (Wishes(workspace="missing"), Misuse, "--workspace: there is no directory '"),
        (Wishes(agent="missing.toml"), BadAgent, "there is no agent file 'missing.toml'"),
    ],
)
def test_what_can_not_be_meant_is_a_sentence(
    folder: Path, wishes: Wishes, complaint: type[Exception], sentence: str
) -> None:
    assert folder.is_dir()
    with pytest.raises(complaint, match=sentence):
        spec_of(wishes, "")


def test_fresh_names_differ() -> None:
    assert len({fresh_name() for _ in range(50)}) == 50
