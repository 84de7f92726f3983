"""Calls of the file tools that must never pass unasked, and files that change between the look and the act."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolError
from longhaul.activities.tools.file_changes import Write
from longhaul.activities.tools.read import Read
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from tests.activities.corpora.stage import HERE, SECRET, Stage, build
from tests.activities.tools.calls import called

CALLS = [json.loads(line) for line in (HERE / "file_calls.jsonl").read_text().splitlines()]
ASKING = [mode for mode in PermissionMode if mode is not PermissionMode.BYPASS]
TOOLBOX = Toolbox(default_tools())


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = build(tmp_path_factory.mktemp("files"))
    (stage.root / "chain").symlink_to("link-to-secret")
    (stage.root / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(stage.root)  # the path of a socket may have 108 bytes
        server.bind("socket")
        os.chdir(here)
        yield stage


def _written_out(given: object, stage: Stage) -> str:
    text = json.dumps(given)
    for mark, folder in (("@ROOT@", stage.root), ("@OUT@", stage.outside), ("@HOME@", stage.home)):
        text = text.replace(mark, str(folder))
    return text


@pytest.mark.parametrize("mode", ASKING)
@pytest.mark.parametrize("family", dict.fromkeys(call["family"] for call in CALLS))
async def test_a_hostile_call_of_a_file_tool_never_passes_unasked(
    family: str, mode: PermissionMode, stage: Stage
) -> None:
    rehearsal = Rehearsal(TOOLBOX, PermissionContext(mode=mode), stage.root)
    passing = []

    for call in CALLS:
        if call["family"] == family:
            verdict = await rehearsal.decide(call["tool"], _written_out(call["input"], stage))
            passing += [call] if verdict.behavior not in ("ask", "deny", "invalid") else []

    assert passing == []


@pytest.mark.parametrize(
    "name",
    [
        "$HOME/x",
        "file:x",
        "file:/x",
        "%2e%2e/x",
        "src/app.py ",
        "src/app.py.",
        "line\nbreak",
        "caf\u00e9",
        "cafe\u0301",
    ],
)
async def test_an_odd_name_is_taken_as_it_stands(name: str, stage: Stage) -> None:
    analysis = await TOOLBOX.get("Read").examine({"file_path": name}, stage.place)  # type: ignore[union-attr]

    assert [fact.path for fact in analysis.paths] == [f"{stage.root}/{name}"]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "src/app.py"}),
        ("Read", {"file_path": ".env.example"}),
        ("Read", {"file_path": "node_modules/tea/index.js"}),
        ("Grep", {"pattern": "main"}),
        ("Grep", {"pattern": "main", "path": "src", "output_mode": "content"}),
        ("Glob", {"pattern": "**/*.py"}),
        ("Read", {"file_path": "Makefile"}),
    ],
)
async def test_everyday_reading_passes(tool: str, given: dict[str, str], stage: Stage) -> None:
    verdict = await Rehearsal(TOOLBOX, PermissionContext(), stage.root).decide(tool, json.dumps(given))

    assert verdict.behavior == "allow"


async def test_a_search_by_the_tool_leaves_secrets_out(stage: Stage) -> None:
    grep = TOOLBOX.get("Grep")
    assert grep is not None
    arguments = {"pattern": "[A-Za-z]", "output_mode": "content"}

    output = await grep.run(called(arguments, stage.place, await grep.examine(arguments, stage.place)))

    # The hard link is a plain file to every program that walks a folder.
    lines = [line for line in str(output.output).splitlines() if not line.startswith("hard-link-to-secret")]
    assert lines
    assert [line for line in lines if SECRET in line] == []


FLIP = """
import os, sys
link, draft, *targets = sys.argv[1:]
while True:
    for target in targets:
        os.symlink(target, draft)
        os.rename(draft, link)
"""


@contextlib.contextmanager
def flipping(link: Path, inside: Path, outside: Path) -> Iterator[None]:
    """A link that leads in and out of the workspace in turn, as fast as another process can change it."""
    link.symlink_to(inside)
    process = subprocess.Popen([sys.executable, "-c", FLIP, link, link.with_name("draft"), outside, inside])
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def _tried(tool: Tool, arguments: dict[str, str], place: Place) -> str:
    """What a call came to that was only let run when its findings were open."""
    analysis = await tool.examine(arguments, place)
    if not analysis.paths or not all(fact.inside and not fact.danger for fact in analysis.paths):
        return "asked"
    try:
        return str((await tool.run(called(arguments, place, analysis))).output)
    except (NeedsDecision, ToolError):
        return "refused"


async def test_a_link_that_is_swapped_between_look_and_act_shows_nothing_from_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root, "harmless"), (outside, SECRET)):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "file").write_text(text)

    with flipping(root / "link", root / "inner", outside / "inner"):
        place = Place(root, root)
        came_to = [await _tried(Read(), {"file_path": "link/file"}, place) for _ in range(400)]

    assert [text for text in came_to if SECRET in text] == []
    assert len({text if text in ("asked", "refused") else "read" for text in came_to}) >= 2


async def test_a_link_that_is_swapped_between_look_and_act_lets_nothing_be_written_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        (folder / "inner").mkdir(parents=True)

    with flipping(root / "link", root / "inner", outside / "inner"):
        place = Place(root, root)
        calls = ({"file_path": "link/file", "content": f"{number}\n"} for number in range(200))
        for arguments in calls:
            await _tried(Write(), arguments, place)

    assert list((outside / "inner").iterdir()) == []
    assert (root / "inner" / "file").exists()
