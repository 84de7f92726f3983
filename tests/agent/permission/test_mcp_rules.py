"""Rules about the tools of MCP servers: one tool, all of a server, and what an argument says."""

import json

import pytest

from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.permission.rulebook import BadRule, check_rule
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.known_names import without_tool

SEND = ToolDescriptor(name="mcp__mail__send")
MAIL = {"to": "ana@harbour.example", "body": "fog", "copies": ["bo@harbour.example", "cy@sea.example"], "urgent": True}


def decided(behavior: str, tool: str, content: str | None = None, **arguments: object) -> Behavior:
    rule = PermissionRule(tool_name=tool, rule_content=content, behavior=Behavior(behavior))
    raw = json.dumps(arguments or MAIL)
    return decide_call(SEND, raw, CallAnalysis(), PermissionContext(rules=(rule,)), "/proj").behavior


def test_without_a_rule_a_person_is_asked_and_offered_a_rule_for_this_tool() -> None:
    decision = decide_call(SEND, "{}", CallAnalysis(), PermissionContext(), "/proj")

    assert decision.behavior is Behavior.ASK
    assert [rule.spelt() for rule in decision.suggested_rules] == ["mcp__mail__send"]


@pytest.mark.parametrize(
    ("tool", "content", "speaks"),
    [
        ("mcp__mail__send", None, True),
        ("mcp__mail", None, True),
        ("mcp__mail__send", "to=ana@harbour.example", True),
        ("mcp__mail__send", "to=*@harbour.example", True),
        ("mcp__mail", "to=ana@*", True),
        ("mcp__mail__send", "urgent=true", True),
        ("mcp__mail__send", "to=*", True),
        ("mcp__mail__send", "to=a*o*r*", True),
        ("mcp__mail__send", "to=ana", False),
        ("mcp__mail__send", "to=*@sea.example", False),
        ("mcp__mail__send", "from=*", False),
        ("mcp__mail__read", None, False),
        ("mcp__mai", None, False),
        ("mcp__mail__sen", None, False),
        ("mcp__post", None, False),
    ],
)
def test_a_rule_speaks_of_a_tool_a_server_or_an_argument(tool: str, content: str | None, speaks: bool) -> None:
    expected = {"allow": Behavior.ALLOW, "deny": Behavior.DENY}

    for behavior, then in expected.items():
        assert decided(behavior, tool, content) is (then if speaks else Behavior.ASK), behavior


def test_of_many_values_one_is_enough_to_deny_and_all_are_needed_to_allow() -> None:
    assert decided("deny", SEND.name, "copies=*@sea.example") is Behavior.DENY
    assert decided("allow", SEND.name, "copies=*@sea.example") is Behavior.ASK
    assert decided("allow", SEND.name, "copies=*.example") is Behavior.ALLOW
    assert decided("allow", SEND.name, "copies=*", copies=[]) is Behavior.ASK


def test_an_argument_within_another_is_named_with_a_dot() -> None:
    arguments = {"filter": {"owner": "ana"}}

    assert decided("deny", SEND.name, "filter.owner=ana", **arguments) is Behavior.DENY
    assert decided("deny", SEND.name, "filter.owner=bo", **arguments) is Behavior.ASK
    assert decided("deny", SEND.name, "filter.owner=ana", **{"filter.owner": "ana"}) is Behavior.DENY


@pytest.mark.parametrize("value", ["/srv/../etc/passwd", "/srv/%2E%2e/etc", "/srv/a\n/etc", "/srv/\0", 3, None, {}])
def test_an_allow_pattern_does_not_cover_what_leads_elsewhere(value: object) -> None:
    assert decided("allow", SEND.name, "path=/srv/*", path=value) is Behavior.ASK


def test_a_pattern_of_many_stars_takes_no_longer_than_its_text() -> None:
    assert decided("deny", SEND.name, f"body={'*a' * 400}*b", body="a" * 200_000) is Behavior.ASK


@pytest.mark.parametrize("content", ["/srv/**", "git add:*", "=x", "to", "a\nb=c", "t*=x"])
def test_a_pattern_that_names_no_argument_is_refused(content: str) -> None:
    with pytest.raises(BadRule, match="names an argument"):
        check_rule(PermissionRule(tool_name="mcp__mail__send", rule_content=content))


@pytest.mark.parametrize("content", ["to=x", "path=/srv/**", "a.b=", "query=SELECT * FROM t WHERE a=1"])
def test_a_pattern_that_names_one_is_taken(content: str) -> None:
    check_rule(PermissionRule(tool_name="mcp__mail__send", rule_content=content))


def test_a_rule_about_a_server_is_about_nothing_where_it_brings_no_tool() -> None:
    named = ["mcp__mail", "mcp__mail__send", "mcp__post", "mcp__post__stamp"]

    assert without_tool(named, [SEND.name]) == ("mcp__post", "mcp__post__stamp")
