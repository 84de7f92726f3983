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


def test_an_agent_file_says_how_contexts_are_kept_short_and_where_dropped_text_goes(folder: Path) -> None:
    agent = agent_file(
        folder,
        'offloader = "redis"',
        "idle_close_seconds = 3600",
        "[context_config]",
        "trigger_ratio = 0.6",
        "reserve_ratio = 0.2",
        "tool_result_limit = 1500",
        'condensers = ["mask_observations", "summary"]',
        "[model_config]",
        "context_length = 32000",
    )

    spec = spec_of(Wishes(agent=agent), "openai:x")

    assert (spec.offloader, spec.idle_close_seconds, spec.llm_config.context_length) == ("redis", 3600, 32_000)
    assert (spec.context_config.trigger_ratio, spec.context_config.reserve_ratio) == (0.6, 0.2)
    assert spec.context_config.condensers == ("mask_observations", "summary")


def test_the_agent_file_of_the_documentation_can_be_used(folder: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "state.md").read_text(encoding="utf-8")

    spec = spec_of(Wishes(agent=agent_file(folder, page.partition("```toml")[2].partition("```")[0])), "openai:x")

    assert (spec.idle_close_seconds, spec.llm_config.context_length) == (604_800, 200_000)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("idle_close_second = 5", "did you mean 'idle_close_seconds'"),
        ("context_config = { trigger_ratio = 0.95 }", "context_config.trigger_ratio"),
        ("context_config = { triger_ratio = 0.5 }", "context_config.triger_ratio"),
        ("context_config = { reserve_ratio = 0.8 }", "must be below trigger_ratio"),
    ],
)
def test_a_setting_of_the_context_that_is_wrong_is_named(folder: Path, line: str, sentence: str) -> None:
    with pytest.raises(BadAgent, match=sentence):
        spec_of(Wishes(agent=agent_file(folder, line)), "openai:x")
