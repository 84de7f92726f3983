"""Each parameter of each built-in tool that can name a path is held against deny and ask rules and against the names of
secrets: nothing that Read would not show comes by another tool."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.memory import memory_tools
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall
from longhaul.activities.tools.file_search import Glob, Grep
from longhaul.activities.tools.recall import Recall
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.activities.tools.session_tools import RunProgram, StartAgent, in_workflow_tools
from longhaul.activities.tools.skills import LoadSkill
from longhaul.activities.tools.web import web_tools
from longhaul.agent.permission.rule_matching import ruled_folders, ruled_paths
from longhaul.agent.plain.text import names
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.spec.known_names import TOOLS
from longhaul.stores.memories.open_memories import LongTerm
from tests.activities.tools.calls import RIPGREP

FILE = "skills/a/secret.txt"
NAMING: dict[tuple[str, str], dict[str, Any]] = {
    ("Bash", "command"): {"command": f"cat {FILE}"},
    ("Read", "file_path"): {"file_path": FILE},
    ("Edit", "file_path"): {"file_path": FILE, "old_string": "x", "new_string": "y"},
    ("Grep", "path"): {"pattern": "x", "path": FILE},
    ("Skill", "file"): {"skill": "a", "file": "secret.txt"},
    ("Skill", "skill"): {"skill": "b"},
}
"""Calls that read the file, or for the last one SKILL.md of another folder, which the same rules close."""
SEARCHING: dict[tuple[str, str], dict[str, Any]] = {
    ("Grep", "glob"): {"pattern": "x", "glob": "secret.*"},
    ("Glob", "pattern"): {"pattern": "**/secret.txt"},
    ("Glob", "path"): {"pattern": "secret.txt", "path": "skills/a"},
}
"""They leave out what a rule speaks of."""
WRITING = {("Write", "file_path")}
"""It shows nothing of what it replaces: rules about writing are for it."""
OF_NO_FILE = {
    "Bash": "description run_in_background timeout",
    "BashOutput": "bash_id",
    "Read": "column limit offset",
    "Write": "content",
    "Edit": "new_string old_string replace_all",
    "Grep": "-A -B -C -i -n head_limit multiline offset output_mode pattern type",
    "AgentSend": "id message",
    "AgentStop": "id",
    "KillShell": "shell_id",
    "todo_write": "todos",
    "plan_exit": "plan",
    "reset_equipped_tools": "to_activate",
    "sleep": "for until",
    "wait_for": "event timeout",
    "create_plan": "description expected_outcome name subtasks",
    "revise_current_plan": "action subtask subtask_idx",
    "update_subtask_state": "state subtask_idx",
    "finish_subtask": "subtask_idx subtask_outcome",
    "view_subtasks": "subtask_idx",
    "finish_plan": "outcome state",
    "recover_historical_plan": "plan_id",
    "Agent": "agent answer_schema run_in_background task",
    "recall": "from_message limit offset output text to_message",
    "record_to_memory": "content thinking",
    "retrieve_from_memory": "keywords limit",
    "retrieve_knowledge": "limit query",
    "find_tools": "query",
    "call_tool": "arguments tool",
    "RunProgram": "program",
    "WebFetch": "url",
    "WebSearch": "limit query",
    "AgentList": "",
    "plan_enter": "",
    "view_historical_plans": "",
}
"""Ids of the session's own things, numbers, and texts that no tool opens as a file."""
RULES = (FILE, "skills/b/*")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = (tmp_path / "root").resolve()
    for name in (FILE, "skills/a/plain.txt", "skills/a/id_rsa", "skills/a/server.key"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x PRIVATE KEY\n")
    for skill in "ab":
        (root / "skills" / skill).mkdir(exist_ok=True)
        (root / "skills" / skill / "SKILL.md").write_text(f"---\nname: {skill}\ndescription: Mix.\n---\nSand.\n")
    return root


def _built_in() -> list[Tool]:
    lasting = LongTerm(cast(Any, None), cast(Any, None))
    recall = Recall(cast(Any, None), cast(Any, None))
    web = web_tools("https://searx.example/search", "", robots=False)
    return [*default_tools(), *in_workflow_tools(), StartAgent(), RunProgram(), recall, *memory_tools(lasting), *web]


def _context(behavior: str, *patterns: str, mode: str = "default") -> PermissionContext:
    rules = tuple(
        PermissionRule(tool_name="Read", rule_content=pattern, behavior=Behavior(behavior)) for pattern in patterns
    )
    return PermissionContext(mode=PermissionMode(mode), rules=rules)


async def _said(root: Path, context: PermissionContext, tool: str, arguments: dict[str, Any]) -> str:
    rehearsal = Rehearsal(Toolbox(_built_in()), context, root, ("skills",))
    return (await rehearsal.decide(tool, json.dumps(arguments))).behavior


def _place(root: Path, context: PermissionContext) -> Place:
    folders, paths = ruled_folders(context, str(root)), ruled_paths(context)
    return Place(root, root, ruled=folders, closed=paths, skills=("skills",))


def test_every_parameter_of_every_built_in_tool_has_its_row() -> None:
    tools = _built_in()

    assert {tool.name for tool in tools} == set(TOOLS)
    for tool in tools:
        naming = {parameter for name, parameter in (*NAMING, *SEARCHING, *WRITING) if name == tool.name}
        assert set(tool.input_schema["properties"]) == naming | names(OF_NO_FILE.get(tool.name, "")), tool.name


@pytest.mark.parametrize("mode", ["default", "accept_edits", "explore", "bypass", "dont_ask"])
@pytest.mark.parametrize(("tool", "parameter"), NAMING)
async def test_a_path_that_a_rule_closes_is_read_by_no_tool(tool: str, parameter: str, mode: str, root: Path) -> None:
    arguments = NAMING[tool, parameter]

    assert await _said(root, _context("deny", *RULES, mode=mode), tool, arguments) == "deny"
    asked = await _said(root, _context("ask", *RULES, mode=mode), tool, arguments)
    assert asked == ("deny" if mode == "dont_ask" else "ask")


@pytest.mark.parametrize(("tool", "parameter"), SEARCHING)
async def test_a_search_leaves_out_what_a_rule_closes(tool: str, parameter: str, root: Path) -> None:
    place, arguments = _place(root, _context("deny", *RULES)), SEARCHING[tool, parameter]
    searching = {"Grep": Grep(RIPGREP), "Glob": Glob()}[tool]

    analysis = await searching.examine(arguments, place)
    shown = str((await searching.run(ToolCall(id="1", arguments=arguments, place=place, analysis=analysis))).output)

    assert "secret.txt" not in shown


@pytest.mark.parametrize("name", ["id_rsa", "server.key"])
async def test_a_secret_is_read_by_no_tool_unasked(name: str, root: Path) -> None:
    path = f"skills/a/{name}"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Bash", {"command": f"cat {path}"}),
        ("Read", {"file_path": path}),
        ("Edit", {"file_path": path, "old_string": "x", "new_string": "y"}),
        ("Grep", {"pattern": "x", "path": path}),
        ("Skill", {"skill": "a", "file": name}),
    ]

    assert [await _said(root, PermissionContext(), tool, arguments) for tool, arguments in calls] == ["ask"] * 5
    assert await _said(root, PermissionContext(), "Skill", {"skill": "a", "file": "plain.txt"}) == "allow"


async def test_a_skill_beside_the_workspace_is_open_and_its_secrets_are_not(root: Path) -> None:
    folder = root.parent / "srv" / "roof"
    folder.mkdir(parents=True)
    for name, text in (("SKILL.md", "---\nname: roof\ndescription: Cover.\n---\nTiles."), ("id_rsa", "x"), ("f", "x")):
        (folder / name).write_text(text)
    rehearsal = Rehearsal(Toolbox(default_tools()), PermissionContext(), root, (str(folder.parent),))
    closed = Rehearsal(
        Toolbox(default_tools()), _context("deny", f"{folder}/f", mode="bypass"), root, (str(folder.parent),)
    )

    async def said(who: Rehearsal, **arguments: str) -> str:
        return (await who.decide("Skill", json.dumps({"skill": "roof", **arguments}))).behavior

    assert [await said(rehearsal), await said(rehearsal, file="f"), await said(rehearsal, file="id_rsa")] == [
        "allow", "allow", "ask",
    ]  # fmt: skip
    assert [await said(closed), await said(closed, file="f"), await said(closed, file="id_rsa")] == [
        "allow", "deny", "allow",
    ]  # fmt: skip


async def test_a_skill_that_leads_elsewhere_than_decided_is_decided_on_again(root: Path) -> None:
    tool, place, arguments = LoadSkill(), _place(root, PermissionContext()), {"skill": "a", "file": "plain.txt"}
    analysis = await tool.examine(arguments, place)
    (root / "skills" / "a" / "plain.txt").unlink()
    (root / "skills" / "a" / "plain.txt").hardlink_to(root / "skills" / "a" / "id_rsa")

    with pytest.raises(NeedsDecision):
        await tool.run(ToolCall(id="1", arguments=arguments, place=place, analysis=analysis))


async def test_a_skill_that_is_not_found_is_the_models_to_read(root: Path) -> None:
    assert await _said(root, _context("deny", "skills/**"), "Skill", {"skill": "c"}) == "allow"
    assert await _said(root, _context("deny", "skills/**"), "Skill", {"skill": "a", "file": "../b/SKILL.md"}) == "allow"
