"""Read, Grep and Glob reach what was offloaded for their session, unasked in every mode, and nothing above it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.contract import RecordedPlace
from longhaul.activities.tool import NeedsDecision, Place, Tool
from longhaul.activities.tools.bash import Bash
from longhaul.activities.tools.file_changes import Edit, Write
from longhaul.activities.tools.file_search import Glob, Grep
from longhaul.activities.tools.read import Read
from longhaul.activities.tools.registry import Toolbox
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.stores.names import owner_name, workdir_of
from longhaul.stores.offload.local_workspace import LocalWorkspace
from tests.activities.tools.calls import RIPGREP, called, text_of
from tests.stores.offload.samples import PIXEL_NAME, picture, result

TOOLBOX = Toolbox([Read(), Grep(RIPGREP), Glob(), Write(), Edit(), Bash()])
ASKED = {Behavior.ASK, Behavior.DENY}


@dataclass
class Scene:
    workdir: Path
    place: Place
    session: Path
    text: Path
    """The session's own result."""
    other: Path
    """A result of the owner's other session."""

    async def action(self, name: str, mode: PermissionMode = PermissionMode.DEFAULT, **arguments: Any) -> Behavior:
        analysis = await self.tool(name).examine(arguments, self.place)
        return self.decided(name, analysis, PermissionContext(mode=mode))

    def decided(self, name: str, analysis: CallAnalysis, context: PermissionContext) -> Behavior:
        descriptor = TOOLBOX.descriptor(name)
        assert descriptor is not None
        return decide_call(descriptor, "{}", analysis, context, str(self.place.root)).behavior

    def tool(self, name: str) -> Tool:
        tool = TOOLBOX.get(name)
        assert tool is not None
        return tool


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    (tmp_path / "project").mkdir()
    (tmp_path / "really").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "really")
    workspaces = Workspaces(tmp_path / "data")
    root, nonce = workspaces.bind(Workspace(root=str(tmp_path / "project")), "key")
    recorded = RecordedPlace(root=str(root), nonce=nonce, agent="lamp", session_id="kettle")
    workdir = workdir_of((tmp_path / "data").resolve(), owner_name("lamp", None))
    kept = LocalWorkspace(workdir)
    text = await kept.offload_tool_result("kettle", result("call_7", "alpha\nneedle\nomega\n"))
    await kept.offload_context("kettle", [UserMsg("ana", [picture()])])
    other = await kept.offload_tool_result("pot", result("call_8", "needle of another session"))
    place = await workspaces.find(recorded)
    return Scene(workdir, place, Path(text).parent, Path(text), Path(other))


@pytest.mark.proves("B5")
@pytest.mark.parametrize("mode", list(PermissionMode))
async def test_the_sessions_own_files_are_read_unasked_in_every_mode(scene: Scene, mode: PermissionMode) -> None:
    session, data = str(scene.session), scene.workdir / "data"

    actions = [
        await scene.action("Read", mode, file_path=str(scene.text)),
        await scene.action("Read", mode, file_path=str(data / PIXEL_NAME)),
        await scene.action("Read", mode, file_path=f"{session}/../kettle/context.jsonl"),
        await scene.action("Grep", mode, pattern="needle", path=session),
        await scene.action("Grep", mode, pattern="needle", path=str(scene.text)),
        await scene.action("Glob", mode, pattern="**/*", path=session),
        await scene.action("Glob", mode, pattern=f"{data}/*.png"),
    ]

    assert set(actions) == {Behavior.ALLOW}


@pytest.mark.proves("B5")
async def test_what_was_kept_is_found_and_read(scene: Scene) -> None:
    name = str(scene.text)

    assert await text_of(Read(), scene.place, file_path=name, offset=2, limit=1) == (
        "     2\tneedle\n[more lines follow; go on with offset=3]"
    )
    assert await text_of(Grep(RIPGREP), scene.place, pattern="needle", path=str(scene.session)) == name
    found = await text_of(Glob(), scene.place, pattern="*.*", path=str(scene.session))
    assert name in found.splitlines()


async def test_a_search_finds_what_was_kept_below_a_folder_that_git_ignores(scene: Scene) -> None:
    (scene.workdir / ".gitignore").write_text("*\n")
    (scene.workdir / ".git").mkdir()

    assert await text_of(Grep(RIPGREP), scene.place, pattern="needle", path=str(scene.session)) == str(scene.text)


@pytest.mark.parametrize("mode", [PermissionMode.DEFAULT, PermissionMode.EXPLORE, PermissionMode.DONT_ASK])
async def test_nothing_above_or_beside_is_open(scene: Scene, mode: PermissionMode) -> None:
    session, above = str(scene.session), str(scene.workdir)
    (scene.session.parent / "kettle-2").mkdir()

    actions = [
        await scene.action("Read", mode, file_path=str(scene.other)),
        await scene.action("Read", mode, file_path=f"{session}/../pot/{scene.other.name}"),
        await scene.action("Read", mode, file_path=f"{session}-2/x"),
        await scene.action("Read", mode, file_path=f"{above}/skills/x"),
        await scene.action("Grep", mode, pattern="needle", path=above),
        await scene.action("Grep", mode, pattern="needle", path=f"{session}/.."),
        await scene.action("Glob", mode, pattern="**/*", path=f"{above}/sessions"),
        await scene.action("Glob", mode, pattern=f"{above}/sessions/*/*"),
        await scene.action("Glob", mode, pattern="../**"),
    ]

    assert set(actions) <= ASKED


async def test_links_that_were_planted_lead_nowhere(scene: Scene) -> None:
    secret = scene.workdir.parent / "secret.txt"
    secret.write_text("needle in marmalade")
    (scene.session / "soft").symlink_to(secret)
    (scene.session / "up").symlink_to(scene.workdir.parent)

    actions = [
        await scene.action("Read", file_path=str(scene.session / "soft")),
        await scene.action("Read", file_path=str(scene.session / "up" / "secret.txt")),
        await scene.action("Grep", pattern="needle", path=str(scene.session / "up")),
        await scene.action("Glob", pattern="*", path=str(scene.session / "up")),
    ]

    assert set(actions) == {Behavior.ASK}
    assert await text_of(Grep(RIPGREP), scene.place, pattern="needle", path=str(scene.session)) == str(scene.text)
    assert "secret" not in await text_of(Glob(), scene.place, pattern="**/*", path=str(scene.session))


async def test_a_second_name_of_a_file_elsewhere_is_asked_for_and_so_is_its_folder(scene: Scene) -> None:
    secret = scene.workdir.parent / "secret.txt"
    secret.write_text("needle in marmalade")
    (scene.session / "hard.txt").hardlink_to(secret)

    assert await scene.action("Read", file_path=str(scene.session / "hard.txt")) is Behavior.ASK
    assert await scene.action("Grep", pattern="needle", path=str(scene.session)) is Behavior.ASK
    assert await scene.action("Read", file_path=str(scene.text)) is Behavior.ALLOW


async def test_a_folder_that_was_planted_is_asked_for(scene: Scene) -> None:
    (scene.session / "deeper").mkdir()
    (scene.session / "deeper" / "x").write_text("needle")

    assert await scene.action("Read", file_path=str(scene.session / "deeper" / "x")) is Behavior.ASK
    assert await scene.action("Grep", pattern="needle", path=str(scene.session)) is Behavior.ASK


async def test_a_folder_that_became_a_link_is_not_open(scene: Scene) -> None:
    elsewhere = scene.workdir.parent / "elsewhere"
    scene.session.rename(elsewhere)
    scene.session.symlink_to(elsewhere)

    assert await scene.action("Read", file_path=str(scene.text)) is Behavior.ASK


@pytest.mark.parametrize(
    ("tool", "more"),
    [(Read(), {}), (Grep(RIPGREP), {"pattern": "needle"}), (Glob(), {"pattern": "*"})],
    ids=["Read", "Grep", "Glob"],
)
async def test_what_is_planted_after_the_decision_is_decided_again(
    scene: Scene, tool: Tool, more: dict[str, str]
) -> None:
    path = scene.text if tool.name == "Read" else scene.session
    arguments = {"file_path" if tool.name == "Read" else "path": str(path), **more}
    analysis = await tool.examine(arguments, scene.place)
    secret = scene.workdir.parent / "secret.txt"
    secret.write_text("needle in marmalade")
    scene.text.unlink()
    scene.text.hardlink_to(secret)

    with pytest.raises(NeedsDecision) as again:
        await tool.run(called(arguments, scene.place, analysis))

    assert scene.decided(tool.name, again.value.analysis, PermissionContext()) is Behavior.ASK


async def test_writing_and_commands_there_are_judged_as_outside(scene: Scene) -> None:
    path = str(scene.text)
    mode = PermissionMode.ACCEPT_EDITS

    actions = [
        await scene.action("Write", mode, file_path=path, content="x"),
        await scene.action("Edit", mode, file_path=path, old_string="needle", new_string="x"),
        await scene.action("Bash", mode, command=f"cat {path}"),
    ]

    assert set(actions) == {Behavior.ASK}


async def test_a_deny_rule_holds_there_too(scene: Scene) -> None:
    analysis = await Read().examine({"file_path": str(scene.text)}, scene.place)
    rule = PermissionRule(tool_name="Read", rule_content=f"{scene.session}/**", behavior=Behavior.DENY)

    assert scene.decided("Read", analysis, PermissionContext(rules=(rule,))) is Behavior.DENY


async def test_a_place_of_nobody_has_no_offloaded_folders(scene: Scene, tmp_path: Path) -> None:
    root, nonce = Workspaces(tmp_path / "data").bind(Workspace(root=str(scene.place.root)), "key")

    place = await Workspaces(tmp_path / "data").find(RecordedPlace(root=str(root), nonce=nonce))

    assert place.offloaded == ()
    assert os.fspath(scene.session) in map(os.fspath, scene.place.offloaded)
