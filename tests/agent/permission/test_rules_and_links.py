"""Rules about paths and the names that links give: what the engine makes of findings, and when it wants new ones."""

import pytest

from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.permission.rule_matching import ruled_folders
from longhaul.agent.steps import Examine
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from tests.agent.play import Play, calls, site, text

READ, BASH = ToolDescriptor(name="Read", read_only=True), ToolDescriptor(name="Bash")
PLAN = PathUse(path="/proj/vault/plan", named=("/proj/note", "/proj/front/plan"), inside=True)


def _context(content: str, behavior: Behavior = Behavior.DENY, tool: str = "Read") -> PermissionContext:
    return PermissionContext(rules=(PermissionRule(tool_name=tool, rule_content=content, behavior=behavior),))


@pytest.mark.parametrize("behavior", [Behavior.DENY, Behavior.ASK])
@pytest.mark.parametrize("content", ["vault/*", "/proj/note", "front/**", "**/note"])
def test_a_deny_or_ask_rule_holds_for_each_name(content: str, behavior: Behavior) -> None:
    analysis = CallAnalysis(paths=(PLAN,), read_only=True)

    assert decide_call(READ, "{}", analysis, _context(content, behavior), "/proj").behavior is behavior


def test_an_allow_rule_counts_for_where_it_leads_alone() -> None:
    outside = PathUse(path="/etc/hosts", named=("/proj/note",))
    analysis = CallAnalysis(paths=(outside,), read_only=True)

    by_name = decide_call(READ, "{}", analysis, _context("/proj/note", Behavior.ALLOW), "/proj")
    by_place = decide_call(READ, "{}", analysis, _context("/etc/*", Behavior.ALLOW), "/proj")

    assert (by_name.behavior, by_place.behavior) == (Behavior.ASK, Behavior.ALLOW)


def test_a_redirection_is_denied_by_each_name_and_allowed_by_one() -> None:
    written = PathUse(path="/proj/log", named=("/proj/link",), access="write", inside=True)
    analysis = CallAnalysis(commands=(SubCommand(words=(">", "/proj/log")),), paths=(written,))

    denied = decide_call(BASH, "{}", analysis, _context("> /proj/link", tool="Bash"), "/proj")
    unnamed = decide_call(BASH, "{}", analysis, _context("> /proj/link", Behavior.ALLOW, "Bash"), "/proj")
    allowed = decide_call(BASH, "{}", analysis, _context("> /proj/log", Behavior.ALLOW, "Bash"), "/proj")

    assert [each.behavior for each in (denied, unnamed, allowed)] == [Behavior.DENY, Behavior.ASK, Behavior.ALLOW]


@pytest.mark.parametrize(
    ("tool", "content", "folders"),
    [
        ("Read", "/srv/now/**", ("/srv/now",)),
        ("Edit", "docs/*.md", ("/proj/docs",)),
        ("Write", "/srv/a?/b", ("/srv",)),
        ("Read", "~/.ssh/**", ("~/.ssh",)),
        ("Grep", "/srv/../etc/hosts", ("/etc/hosts",)),
        ("Bash", "> /srv/log", ("/srv/log",)),
        ("Read", "**/.env", ()),
        ("Read", "*.md", ()),
        ("Read", "/*", ()),
        ("Read", "~/*", ()),
        ("Bash", "rm /srv/log", ()),
        ("mcp__mail__send", None, ()),
    ],
)
def test_the_literal_beginning_of_a_rule_is_looked_up(tool: str, content: str | None, folders: tuple[str, ...]) -> None:
    denied = PermissionRule(tool_name=tool, rule_content=content, behavior=Behavior.DENY)
    allowed = denied.model_copy(update={"behavior": Behavior.ALLOW})

    assert ruled_folders(PermissionContext(rules=(denied, denied, allowed)), "/proj") == folders
    assert ruled_folders(PermissionContext(rules=(allowed,)), "/proj") == ()


@pytest.mark.parametrize(
    ("rule", "looked"),
    [
        ({"tool_name": "Paint", "rule_content": "/front/**", "behavior": "deny"}, True),
        ({"tool_name": "Paint", "rule_content": "**/door", "behavior": "deny"}, False),
        ({"tool_name": "Paint", "rule_content": "/front/**"}, False),
    ],
)
def test_a_call_that_waits_is_looked_at_with_the_folder_of_a_new_rule_in_mind(
    rule: dict[str, str], looked: bool
) -> None:
    found = site("/vault/gate")
    named = found.model_copy(update={"paths": (found.paths[0].model_copy(update={"named": ("/front/gate",)}),)})
    play = Play([calls("a Paint"), text("Done.")], analysis={"a": [found, named]})
    play.say("Paint the gate")
    play.run()

    play.tell("rules", {"add": [rule], "by": "ana"})
    play.allow("a")
    play.run()

    assert any(isinstance(step, Examine) for step in play.steps) is looked
    assert (play.results()[-1][1] == "denied") is looked
