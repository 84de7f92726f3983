"""Deny and ask rules and links: whatever name of a file a rule speaks of, no other name gets past it."""

import json
import os
from pathlib import Path

import pytest

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.shell.paths import MAX_LINKS, further_names, resolve
from longhaul.activities.tool import NeedsDecision, Place, ToolError
from longhaul.activities.tools.file_changes import Write
from longhaul.activities.tools.read import Read
from longhaul.activities.tools.registry import Toolbox, default_tools
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule
from tests.activities.tools.calls import called

TOOLBOX = Toolbox(default_tools())


@pytest.fixture
def linked(place: Place) -> Place:
    """`front` leads over `middle` to `vault`, a folder with the file `plan`; `note` leads to that file."""
    root = place.root
    (root / "vault").mkdir()
    (root / "vault" / "plan").write_text("the plan\n")
    (root / "middle").symlink_to("vault")
    (root / "front").symlink_to(root / "middle")
    (root / "note").symlink_to("front/plan")
    return place


def _names(raw: str, place: Place) -> list[str]:
    return [os.path.relpath(name, place.root) for name in further_names(raw, resolve(raw, place), place)]


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("vault/plan", []),
        ("front/plan", ["front/plan", "middle/plan"]),
        ("note", ["note", "front/plan", "middle/plan"]),
        ("vault/../front/./plan", ["front/plan", "middle/plan"]),
        ("front/missing", ["front/missing", "middle/missing"]),
    ],
)
def test_each_name_on_the_way_is_known(raw: str, names: list[str], linked: Place) -> None:
    assert _names(raw, linked) == names


def test_a_rule_that_goes_through_a_link_gives_its_spelling(linked: Place) -> None:
    root = linked.root
    ruled = Place(root, root, ruled=(f"{root}/front", f"{root}/note", f"{root}/nowhere", "/"))

    assert set(_names("vault/plan", ruled)) == {"front/plan", "note"}


def test_a_way_over_too_many_links_is_refused(place: Place) -> None:
    (place.root / "l0").write_text("x")
    for number in range(MAX_LINKS + 1):
        (place.root / f"l{number + 1}").symlink_to(f"l{number}")

    with pytest.raises(ToolError, match="more than 40 symbolic links"):
        further_names(f"l{MAX_LINKS + 1}", place.root / "l0", place)


ROOTED = ["front/**", "middle/**", "vault/**", "**/note", "note", "vault/plan", "@ROOT@/front/plan", "@ROOT@/*/plan"]
CALLS = [
    ("Read", {"file_path": "note"}),
    ("Read", {"file_path": "@ROOT@/note"}),
    ("Write", {"file_path": "note", "content": "other"}),
    ("Edit", {"file_path": "./note", "old_string": "the", "new_string": "a"}),
    ("Grep", {"pattern": "plan", "path": "note"}),
    ("Bash", {"command": "cat note"}),
    ("Bash", {"command": "cat < note"}),
    ("Bash", {"command": "echo x > note"}),
]


@pytest.mark.parametrize("behavior", [Behavior.DENY, Behavior.ASK])
@pytest.mark.parametrize("pattern", ROOTED)
async def test_a_rule_holds_for_every_name_of_a_file(pattern: str, behavior: Behavior, linked: Place) -> None:
    rules = tuple(
        PermissionRule(tool_name=tool, rule_content=pattern.replace("@ROOT@", str(linked.root)), behavior=behavior)
        for tool in ("Read", "Write", "Edit", "Grep")
    )
    context = PermissionContext(mode=PermissionMode.BYPASS, rules=rules)
    rehearsal = Rehearsal(TOOLBOX, context, linked.root)

    came_to = {
        f"{tool} {given}": (
            await rehearsal.decide(tool, json.dumps(given).replace("@ROOT@", str(linked.root)))
        ).behavior
        for tool, given in CALLS
    }

    assert came_to == dict.fromkeys(came_to, behavior.value)


@pytest.mark.parametrize("pattern", ["front/**", "middle/plan", "note"])
@pytest.mark.parametrize(
    ("tool", "given"), [("Read", {"file_path": "vault/plan"}), ("Bash", {"command": "cat vault/plan"})]
)
async def test_a_rule_through_a_link_holds_for_what_it_leads_to(
    pattern: str, tool: str, given: dict[str, str], linked: Place
) -> None:
    rule = PermissionRule(tool_name="Read", rule_content=pattern, behavior=Behavior.DENY)
    rehearsal = Rehearsal(TOOLBOX, PermissionContext(rules=(rule,)), linked.root)

    assert (await rehearsal.decide(tool, json.dumps(given))).behavior == "deny"


@pytest.mark.parametrize("line", ["echo x > note", "echo x >> front/plan", "cat README 2> middle/plan"])
@pytest.mark.parametrize("name", ["front/plan", "middle/plan", "vault/plan"])
async def test_a_rule_for_redirections_holds_for_every_name(name: str, line: str, linked: Place) -> None:
    rule = PermissionRule(tool_name="Bash", rule_content=f"> {linked.root}/{name}", behavior=Behavior.DENY)
    rehearsal = Rehearsal(TOOLBOX, PermissionContext(mode=PermissionMode.BYPASS, rules=(rule,)), linked.root)

    assert (await rehearsal.decide("Bash", json.dumps({"command": line}))).behavior == "deny"


async def test_only_where_it_leads_can_be_allowed(place: Place, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (place.root / "open").symlink_to(tmp_path / "secret")
    rule = PermissionRule(tool_name="Read", rule_content=f"{place.root}/**", behavior=Behavior.ALLOW)

    verdict = await Rehearsal(TOOLBOX, PermissionContext(rules=(rule,)), place.root).decide(
        "Read", json.dumps({"file_path": "open"})
    )

    assert verdict.behavior == "ask"


@pytest.mark.parametrize(("tool", "more"), [(Read(), {}), (Write(), {"content": "x"})])
async def test_another_way_to_the_same_file_is_decided_on_again(
    tool: Read | Write, more: dict[str, str], linked: Place
) -> None:
    arguments = {"file_path": "note", **more}
    analysis = await tool.examine(arguments, linked)
    (linked.root / "front").unlink()
    (linked.root / "front").symlink_to("vault")

    with pytest.raises(NeedsDecision) as found:
        await tool.run(called(arguments, linked, analysis))

    assert [fact.named for fact in found.value.analysis.paths] != [fact.named for fact in analysis.paths]
    assert (linked.root / "vault" / "plan").read_text() == "the plan\n"
