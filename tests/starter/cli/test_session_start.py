"""What the flags make of an agent."""

from pathlib import Path

import pytest

from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_start import Wishes, fresh_name, spec_of, workspace
from longhaul.starter.client.agent_files import BadAgent
from longhaul.starter.connection.storage_places import root_mark


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


def test_the_priority_of_the_flag_stands_in_place_of_the_files(folder: Path) -> None:
    agent = agent_file(folder, "priority = 5")

    assert [spec_of(Wishes(agent=agent, priority=given), "").priority for given in (1, None)] == [1, 5]


def test_a_script_is_made_absolute(folder: Path) -> None:
    assert spec_of(Wishes(model="scripted:s.jsonl"), "").model == f"scripted:{folder}/s.jsonl"


def test_the_workspace_of_the_file_stands_in_the_agent(folder: Path) -> None:
    of_the_file = spec_of(Wishes(agent=agent_file(folder, "[workspace]", 'root = "/srv/shop"')), "").workspace

    assert spec_of(Wishes(), "").workspace is None
    assert of_the_file is not None
    assert of_the_file.root == "/srv/shop"


HERE, ELSEWHERE, NOBODY = frozenset({root_mark(), "away"}), frozenset({"away"}), frozenset[str]()


@pytest.mark.parametrize("roots", [HERE, NOBODY])
def test_workers_on_this_machine_work_in_this_folder(
    folder: Path, roots: frozenset[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for project in ("", "/srv"):
        assert workspace(None, roots, project) == Workspace(root=str(folder))
        assert workspace("src", roots, project) == Workspace(root=f"{folder}/src")
        with pytest.raises(Misuse, match=r"--workspace: there is no directory '.*missing'; make it first"):
            workspace("missing", roots, project)
    assert capsys.readouterr().err == ""


def test_workers_elsewhere_give_a_session_a_folder_of_its_own_and_it_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert workspace(None, ELSEWHERE, "") is None

    said = capsys.readouterr().err
    assert f"don't see '{folder}': a new session works in an empty folder of its own there" in said
    assert "LONGHAUL_PROJECT" in said
    assert said.count("\n") == 1


def test_a_mounted_project_is_worked_in_by_the_path_that_both_have(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path_factory.mktemp("links") / "shop"
    link.symlink_to(folder)

    assert workspace(None, ELSEWHERE, str(folder)) == Workspace(root=str(folder))
    assert workspace("src", ELSEWHERE, str(folder)) == Workspace(root=f"{folder}/src")
    assert workspace("src", ELSEWHERE, str(link)) == Workspace(root=f"{link}/src"), "by the name of the mount"
    assert capsys.readouterr().err == ""
    assert workspace(None, ELSEWHERE, f"{folder}/src") is None, "what lies above the mount is not seen"
    with pytest.raises(Misuse, match="make it first"):
        workspace("missing", ELSEWHERE, str(folder))


def test_a_folder_that_is_named_may_be_of_the_workers_alone(folder: Path) -> None:
    assert not (folder / "data").exists()
    assert workspace("/data/shop", ELSEWHERE, "") == Workspace(root="/data/shop")
    assert workspace("/data/shop", ELSEWHERE, str(folder)) == Workspace(root="/data/shop")


def test_the_mode_leaves_the_files_rules_alone(folder: Path) -> None:
    agent = agent_file(folder, "[[permission.rules]]", 'tool_name = "Bash"', 'rule_content = "ls"')

    permission = spec_of(Wishes(agent=agent, mode="accept_edits"), "").permission

    assert permission.mode is PermissionMode.ACCEPT_EDITS
    assert [rule.rule_content for rule in permission.rules] == ["ls"]


def test_how_models_are_called_is_set_beside_the_file(folder: Path) -> None:
    agent = agent_file(folder, "[model_config]", "temperature = 0.5", "max_output_tokens = 900")
    called = ("reasoning_effort=high", "max_output_tokens=", "fallback_model=anthropic:claude-haiku-4-5")

    config = spec_of(Wishes(agent=agent, called=called), "").llm_config

    assert config == ModelConfig(temperature=0.5, reasoning_effort="high", fallback_model="anthropic:claude-haiku-4-5")


@pytest.mark.parametrize(
    ("wishes", "complaint", "sentence"),
    [
        (Wishes(mode="wild"), Misuse, "--mode: there is no mode 'wild'; there are: default, "),
        (Wishes(called=("max_output_tokens",)), Misuse, "--set: 'max_output_tokens' is no KEY=VALUE"),
        (Wishes(called=("max_output_tokens=many",)), Misuse, "--set: max_output_tokens: "),
        (
            Wishes(called=("reasoning_effrt=low",)),
            Misuse,
            "--set: model_config has no 'reasoning_effrt'; did you mean 'reasoning_effort'",
        ),
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
    page = (Path(__file__).parents[3] / "docs" / "people" / "state.md").read_text(encoding="utf-8")
    notebook, whole = (
        spec_of(Wishes(agent=agent_file(folder, _example(page, heading))), "openai:x")
        for heading in ("### The plan notebook", "## In agent files")
    )

    assert (whole.idle_close_seconds, whole.llm_config.context_length) == (604_800, 200_000)
    assert "create_plan" in notebook.tool_groups["plan_related"].tools


def _example(page: str, heading: str) -> str:
    return page.partition(heading)[2].partition("```toml")[2].partition("```")[0]


@pytest.mark.proves("A6")
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
