"""What a folder says of itself counts when somebody has said so, and for as long as it stays as it was."""

import os
from pathlib import Path

import pytest

from longhaul.starter import folder_trust
from longhaul.starter.client.agent_files import BadAgent, agent_names, find_agent
from longhaul.starter.folder_trust import BadSettingsFile, FolderFiles, Untrusted, look, trusted

CODER = 'system_prompt_file = "prompt.md"\n[permission]\nmode = "bypass"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one, somebody else's: settings, an agent, and the prompt of that."""
    here = tmp_path / "cloned"
    (here / "agents").mkdir(parents=True)
    (here / "longhaul.toml").write_text('model = "openai:theirs"\n')
    (here / "agents" / "coder.toml").write_text(CODER)
    (here / "agents" / "prompt.md").write_text("Mend the roof.")
    monkeypatch.chdir(here)
    monkeypatch.delenv("LONGHAUL_TRUST")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of-the-user"))
    return here


def test_a_name_that_is_looked_up_in_an_untrusted_folder_is_refused_with_the_command(folder: Path) -> None:
    with pytest.raises(Untrusted, match=rf"is not trusted, and .* would be used here; .*`longhaul trust {folder}`"):
        find_agent("coder")


def test_a_trusted_folders_agent_is_the_one_of_its_file(folder: Path) -> None:
    look(folder).remember()

    spec = find_agent("coder")

    assert (spec.permission.mode, spec.system_prompt) == ("bypass", "Mend the roof.")


def test_an_agent_by_its_path_was_chosen_by_who_typed_it(folder: Path) -> None:
    assert folder.is_dir()

    assert find_agent("./agents/coder.toml").system_prompt == "Mend the roof."


def test_a_name_that_the_folder_does_not_have_asks_nothing(folder: Path) -> None:
    assert folder.is_dir()

    assert find_agent("longhaul").permission.mode == "default"
    assert find_agent("mason").name == "mason"


@pytest.mark.parametrize("changed", ["longhaul.toml", "agents/coder.toml", "agents/prompt.md"])
def test_changed_content_is_not_trusted_any_more(folder: Path, changed: str) -> None:
    look(folder).remember()
    with (folder / changed).open("a") as file:
        file.write("\n# more\n")

    with pytest.raises(Untrusted, match="has changed since it was trusted"):
        find_agent("coder")


@pytest.mark.parametrize("name", ["longhaul", "zebra"])
def test_a_further_agent_is_changed_content_too(folder: Path, name: str) -> None:
    look(folder).remember()
    (folder / "agents" / f"{name}.toml").write_text('[permission]\nmode = "bypass"\n')

    with pytest.raises(Untrusted, match="has changed"):
        find_agent(name)


def test_content_that_moves_from_one_file_to_another_is_another_content(folder: Path) -> None:
    files = dict(look(folder).files)
    swapped = {**files, "longhaul.toml": files["agents/coder.toml"], "agents/coder.toml": files["longhaul.toml"]}

    assert FolderFiles(folder, swapped).digest != FolderFiles(folder, files).digest


def test_the_same_content_elsewhere_is_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look(folder).remember()
    moved = folder.rename(folder.parent / "moved")
    monkeypatch.chdir(moved)

    with pytest.raises(Untrusted, match="is not trusted"):
        find_agent("coder")


def test_what_was_read_is_what_counts_whatever_is_written_behind_the_question(folder: Path) -> None:
    look(folder).remember()
    found = trusted(folder)
    (folder / "agents" / "coder.toml").write_text("tools = []")

    assert found.text(Path("agents/coder.toml")) == CODER


def test_what_is_forgotten_is_asked_again(folder: Path) -> None:
    look(folder).remember()
    folder_trust.forget(folder)

    assert not look(folder).is_trusted
    assert not look(folder).was_trusted


@pytest.mark.parametrize("word", ["1", "true", "Yes", "on"])
def test_the_variable_trusts_where_nobody_can_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    assert folder.is_dir()
    monkeypatch.setenv("LONGHAUL_TRUST", word)

    assert find_agent("coder").permission.mode == "bypass"


@pytest.mark.parametrize("word", ["0", "false", "No", "off"])
def test_or_leaves_the_folder_out(folder: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    look(folder).remember()
    monkeypatch.setenv("LONGHAUL_TRUST", word)

    assert find_agent("coder").permission.mode == "default"
    assert agent_names() == set()


def test_another_word_is_neither(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder.is_dir()
    monkeypatch.setenv("LONGHAUL_TRUST", "sure")

    with pytest.raises(BadSettingsFile, match="LONGHAUL_TRUST is 'sure'; set it to 1"):
        find_agent("coder")


@pytest.mark.parametrize("written", [b"", b"no digest", b"\xff\xfe\n", None])
def test_a_memory_that_can_not_be_read_trusts_nothing(folder: Path, written: bytes | None) -> None:
    look(folder).remember()
    (place,) = (folder.parent / "of-the-user" / "longhaul" / "trusted").iterdir()
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    place.unlink()
    if written is None:
        place.mkdir()
    else:
        place.write_bytes(written)

    assert not look(folder).is_trusted


def test_each_setting_is_shown_on_a_line_of_its_own(folder: Path) -> None:
    (folder / "agents" / "coder.toml").write_text(
        f'{CODER}[[permission.rules]]\ntool_name = "Bash"\nrule_content = "{"x" * 300}"\n'
    )
    (folder / "agents" / "odd.toml").write_text("= 5")

    lines = list(look(folder).says())

    assert lines[:7] == [
        "longhaul.toml",
        '  model = "openai:theirs"',
        "agents/coder.toml",
        '  system_prompt_file = "prompt.md"',
        '  permission.mode = "bypass"',
        '  permission.rules[0].tool_name = "Bash"',
        f'  permission.rules[0].rule_content = "{"x" * 199}… (302 characters)',
    ]
    assert lines[7] == "agents/odd.toml"
    assert lines[8].startswith("  can't be read: ")
    assert lines[9:] == ["agents/prompt.md", "  14 bytes of a system prompt"]


def test_what_is_no_file_is_nothing_and_what_is_too_large_is_named(folder: Path) -> None:
    os.mkfifo(folder / "agents" / "pipe.toml")
    assert agent_names() == {"coder"}
    assert sorted(look(folder).files) == ["agents/coder.toml", "agents/prompt.md", "longhaul.toml"]

    (folder / "agents" / "prompt.md").write_bytes(b"x" * 1_000_001)

    with pytest.raises(BadSettingsFile, match=r"agents/prompt.md' has more than 1,000,000 bytes"):
        look(folder)


def test_a_trusted_agents_mistakes_are_named_as_ever(folder: Path) -> None:
    (folder / "agents" / "coder.toml").write_text('tols = []\nsystem_prompt_file = "prompt.md"')
    look(folder).remember()

    with pytest.raises(BadAgent, match=r"agents/coder.toml: there is no key 'tols'; did you mean 'tools'"):
        find_agent("coder")
