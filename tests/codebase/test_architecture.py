"""The picture of the rooms shows the layers that import-linter holds the imports to."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import longhaul.agent
from longhaul.agent.steps import Step

ROOT = Path(__file__).parents[2]
PICTURE = re.findall(r"(?ms)^```text\n(.*?)^```", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
Layers = list[set[str]]


def contracts() -> dict[str, Layers]:
    """The layers of each package from above, by the package's name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layered = [contract for contract in settings["contracts"] if contract["type"] == "layers"]
    return {
        contract["containers"][0].removeprefix("longhaul.") or "longhaul": [
            {name.strip() for name in layer.split("|")} for layer in contract["layers"]
        ]
        for contract in layered
    }


def drawn() -> dict[str, Layers]:
    """The same as the picture has it: rooms at the margin, their layers below them, words behind two blanks."""
    rooms: dict[str, Layers] = {"longhaul": []}
    for line in filter(None, PICTURE[0].splitlines()):
        names = {name.strip() for name in re.split(r"\s{2,}", line.strip())[0].split(",")}
        if line.startswith(" "):
            rooms[[*rooms][-1]].append(names)
        else:
            room = names.pop().rstrip("/")
            rooms["longhaul"].append({room})
            rooms[room] = []
    return {room: layers for room, layers in rooms.items() if layers}


def test_there_is_one_picture() -> None:
    assert len(PICTURE) == 1


def test_the_picture_shows_the_layers_of_each_room() -> None:
    assert drawn() == contracts()


def test_every_room_of_the_picture_is_there() -> None:
    there = {f"{room}/" if (ROOT / "longhaul" / room).is_dir() else room for (room,) in drawn()["longhaul"]}

    assert there == {
        "pytest_plugin",
        "testing",
        "plugin",
        "nexus",
        "worker",
        "starter/",
        "workflow",
        "workflows/",
        "activities/",
        "stores/",
        "agent/",
    }


def test_the_theory_of_operation_names_every_step_once() -> None:
    theory = longhaul.agent.__doc__ or ""

    named = re.findall(r"(?m)^    ([A-Z]\w+)(?: |$)", theory)

    assert sorted(named) == sorted(step.__name__ for step in get_args(Step))
