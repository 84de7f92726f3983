"""The tool classes that programs import from `longhaul`: each is made as docs/making/names.md and the seed write it."""

import inspect
import re
from pathlib import Path

import pytest

import longhaul
from longhaul import Agent, Bash, Edit, Glob, Grep, Read, Tool, Toolkit, Write
from tests.activities.tools.calls import place_at, text_of
from tests.codebase.test_names import PAGE

MADE_WITHOUT_ARGUMENTS: dict[type[Tool], str] = {
    Bash: "Bash",
    Read: "Read",
    Write: "Write",
    Edit: "Edit",
    Grep: "Grep",
    Glob: "Glob",
}
"""Our own tools, by the names that agents have of them."""
NEVER_MADE_AS_THEY_ARE = {
    "Tool": "programs subclass it",
    "FunctionTool": "`@tool` makes it of a function",
    "TargetTool": "`activity_tool()` and `workflow_tool()` make it of a target",
}


def test_every_tool_class_of_longhaul_stands_in_one_of_the_tables() -> None:
    public = {name: getattr(longhaul, name) for name in longhaul.__all__}
    classes = {name for name, thing in public.items() if inspect.isclass(thing) and issubclass(thing, Tool)}

    assert classes == {kind.__name__ for kind in MADE_WITHOUT_ARGUMENTS} | {*NEVER_MADE_AS_THEY_ARE}


def test_the_page_lists_the_same_tools_as_ours() -> None:
    section = PAGE.read_text("utf-8").partition("### Built-in tools\n")[2].partition("\n### ")[0]

    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [kind.__name__ for kind in MADE_WITHOUT_ARGUMENTS]


@pytest.mark.parametrize("kind", MADE_WITHOUT_ARGUMENTS, ids=lambda kind: kind.__name__)
def test_each_of_our_own_tools_is_made_without_arguments(kind: type[Tool]) -> None:
    made = kind()

    assert made.name == MADE_WITHOUT_ARGUMENTS[kind]


def test_a_toolkit_takes_the_seeds_five_tools() -> None:
    agent = Agent("my_agent", toolkit=Toolkit(tools=[Bash(), Edit(), Grep(), Read(), Write()]))

    assert agent.spec.tools == ("Bash", "Edit", "Grep", "Read", "Write")


async def test_grep_finds_its_program_when_it_runs(tmp_path: Path) -> None:
    (tmp_path / "tides.txt").write_text("high water at six\n")

    assert await text_of(Grep(), place_at(tmp_path), pattern="water") == "tides.txt"
