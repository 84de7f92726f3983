"""The tool Skill: texts and files by name, and nothing outside of the skills' folders."""

from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.tool import ToolError
from longhaul.activities.tools.skills import LoadSkill, text_of, wanted
from longhaul.agent.values.conversation.tools import Effect


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a skill of two files, and one skill beside it on the worker."""
    write(tmp_path / "root/skills/mortar/SKILL.md", "---\nname: mortar\ndescription: Mix.\n---\nThree parts of sand.\n")
    write(tmp_path / "root/skills/mortar/tables/lime.md", "Lime: one part.\n")
    write(tmp_path / "root/skills/mortar/.notes", "hidden")
    write(tmp_path / "srv/roof/SKILL.md", "---\nname: roof\ndescription: Cover.\n---\nTiles.")
    write(tmp_path / "root/secret.txt", "4711")
    return (tmp_path / "root").resolve()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def load(root: Path, **arguments: Any) -> str:
    return text_of(wanted(("skills", str(root.parent / "srv")), root, arguments))


@pytest.mark.proves("A7")
def test_a_skill_is_its_text_and_the_names_of_its_files(root: Path) -> None:
    folder = root / "skills" / "mortar"

    assert load(root, skill="mortar") == (
        f"Three parts of sand.\n\nFiles of this skill, in {folder}:\n- tables/lime.md"
    )
    assert load(root, skill="roof") == "Tiles."
    assert load(root, skill="mortar", file="tables/lime.md") == "Lime: one part.\n"


def test_an_unknown_name_is_answered_with_the_nearest(root: Path) -> None:
    with pytest.raises(ToolError, match=r"no skill 'mortal'; the nearest is 'mortar', and all are: mortar, roof"):
        load(root, skill="mortal")
    with pytest.raises(ToolError, match="this agent has no skills"):
        wanted((), root, {"skill": "mortar"})


@pytest.mark.parametrize(
    "file", ["../../secret.txt", "/etc/passwd", ".notes", "tables/../../../secret.txt", "out", "a\0b", "nowhere.md"]
)
def test_nothing_outside_of_a_skill_is_read(root: Path, file: str) -> None:
    (root / "skills" / "mortar" / "out").symlink_to(root / "secret.txt")

    with pytest.raises(ToolError) as refused:
        load(root, skill="mortar", file=file)

    assert "4711" not in str(refused.value)


def test_a_link_is_no_file_of_a_skill_and_no_skill(root: Path) -> None:
    (root / "skills" / "mortar" / "out").symlink_to(root / "secret.txt")
    (root / "skills" / "false").mkdir()
    (root / "skills" / "false" / "SKILL.md").symlink_to(root / "secret.txt")

    assert "out" not in load(root, skill="mortar")
    with pytest.raises(ToolError, match="all are: mortar, roof"):
        load(root, skill="false")


def test_it_may_run_beside_others_and_asks_nobody() -> None:
    tool = LoadSkill()

    assert (tool.effect, tool.read_only, tool.concurrency_safe) == (Effect.READ, True, True)
