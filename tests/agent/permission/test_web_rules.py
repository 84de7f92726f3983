"""Rules about hosts: what an agent may ask on the network."""

import json

import pytest

from longhaul.agent.incarnation.imported_state import read_state
from longhaul.agent.permission.call_analysis import CallAnalysis, brings_in, goes_out
from longhaul.agent.permission.decision_table import REFUSED, decide_call, decide_planning
from longhaul.agent.permission.rulebook import BadRule, check_rule, may_grant
from longhaul.agent.plain.errors import ImportProblem
from longhaul.agent.values.conversation.tools import Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode, PermissionRule

FETCH = ToolDescriptor(name="WebFetch", effect=Effect.READ, untrusted=True)
ALLOW, ASK, DENY = Behavior.ALLOW, Behavior.ASK, Behavior.DENY


def asking(*hosts: str) -> CallAnalysis:
    return CallAnalysis(read_only=True, hosts=hosts)


def rule(behavior: Behavior, content: str | None = None) -> PermissionRule:
    return PermissionRule(tool_name="WebFetch", rule_content=content, behavior=behavior)


def decided(analysis: CallAnalysis, *rules: PermissionRule, mode: str = "default") -> Behavior:
    context = PermissionContext(rules=rules, mode=PermissionMode(mode))
    return decide_call(FETCH, "{}", analysis, context, "/proj").behavior


def test_without_a_rule_a_person_is_asked_and_offered_this_host() -> None:
    decision = decide_call(FETCH, "{}", asking("tides.example"), PermissionContext(), "/proj")

    assert decision.behavior is ASK
    assert [each.spelt() for each in decision.suggested_rules] == ["WebFetch(domain:tides.example)"]


@pytest.mark.parametrize(
    ("content", "host", "allowed", "denied"),
    [
        (None, "tides.example", True, True),
        ("domain:tides.example", "tides.example", True, True),
        ("domain:Tides.Example", "tides.example", True, True),
        ("domain:tides.example", "www.tides.example", False, True),
        ("domain:*.tides.example", "www.tides.example", True, True),
        ("domain:*.tides.example", "tides.example", False, True),
        ("domain:tides.example", "riptides.example", False, False),
        ("domain:*.tides.example", "riptides.example", False, False),
        ("domain:tides.example", "tides.example.evil.example", False, False),
        ("domain:10.20.0.7", "10.20.0.7", True, True),
        ("domain:2606:2800:220:1::1", "2606:2800:220:1::1", True, True),
    ],
)
def test_an_allow_rule_covers_what_it_names_and_a_deny_rule_all_below_it(
    content: str | None, host: str, allowed: bool, denied: bool
) -> None:
    assert decided(asking(host), rule(ALLOW, content)) is (ALLOW if allowed else ASK)
    assert decided(asking(host), rule(DENY, content), rule(ALLOW)) is (DENY if denied else ALLOW)
    assert decided(asking(host), rule(ASK, content), rule(ALLOW)) is (ASK if denied else ALLOW)


def test_of_several_hosts_all_are_allowed_or_a_person_is_asked() -> None:
    both = asking("tides.example", "lamps.example")

    assert decided(both, rule(ALLOW, "domain:tides.example")) is ASK
    assert decided(both, rule(ALLOW, "domain:tides.example"), rule(ALLOW, "domain:lamps.example")) is ALLOW
    assert decided(asking(), rule(ALLOW, "domain:tides.example")) is ALLOW, "it asks nobody, and only reads"


@pytest.mark.parametrize(
    ("mode", "unruled"), [("explore", DENY), ("dont_ask", DENY), ("accept_edits", ASK), ("bypass", ALLOW)]
)
def test_in_each_mode_rules_open_a_host(mode: str, unruled: Behavior) -> None:
    assert decided(asking("tides.example"), mode=mode) is unruled
    assert decided(asking("tides.example"), rule(ALLOW, "domain:tides.example"), mode=mode) is ALLOW


def test_a_plan_is_made_with_what_rules_open() -> None:
    def planned(*rules: PermissionRule) -> tuple[Behavior, str]:
        context = PermissionContext(rules=rules)
        decision = decide_planning(FETCH, "{}", asking("tides.example"), context, "/proj", "")
        return decision.behavior, decision.reason

    assert planned() == (DENY, REFUSED)
    assert planned(rule(ALLOW, "domain:lamps.example")) == (DENY, REFUSED)
    assert planned(rule(ALLOW, "domain:tides.example")) == (ALLOW, "It changes nothing and asks tides.example")


def test_where_the_worker_could_not_look_a_deny_rule_keeps_the_call_from_running() -> None:
    unseen = CallAnalysis(not_understood="no worker looked")

    assert decided(unseen, rule(DENY, "domain:tides.example"), mode="bypass") is ASK


@pytest.mark.parametrize(
    "content",
    [
        *("tides.example", "domain:", "domain:https://tides.example", "domain:tides.example/day", "domain:*"),
        *("domain:tides.*", "domain:tides.example:443", "domain:fähre.example", "url=https://*"),
    ],
)
def test_what_names_no_host_is_refused_with_what_to_write(content: str) -> None:
    with pytest.raises(BadRule, match=r"as in 'domain:example\.com', or all below it"):
        check_rule(rule(DENY, content))


def test_a_rule_about_the_search_has_no_pattern() -> None:
    check_rule(PermissionRule(tool_name="WebSearch"))
    with pytest.raises(BadRule, match="all queries go to the one search engine"):
        check_rule(PermissionRule(tool_name="WebSearch", rule_content="tides"))


def test_the_search_asks_until_a_rule_opens_it_whole() -> None:
    search = ToolDescriptor(name="WebSearch", effect=Effect.READ, untrusted=True)

    def searching(*rules: PermissionRule, mode: str = "default") -> Behavior:
        context = PermissionContext(rules=rules, mode=PermissionMode(mode))
        return decide_call(search, "{}", asking("searx.example"), context, "/proj").behavior

    opened = PermissionRule(tool_name="WebSearch")
    assert (searching(), searching(mode="explore")) == (ASK, DENY)
    assert (searching(opened), searching(opened, mode="explore")) == (ALLOW, ALLOW)
    decision = decide_call(search, "{}", asking("searx.example"), PermissionContext(), "/proj")
    assert [each.spelt() for each in decision.suggested_rules] == ["WebSearch"]


def test_what_an_agent_grants_covers_hosts_that_it_names() -> None:
    grantable = ("WebFetch(domain:*.tides.example)",)

    assert may_grant(rule(ALLOW, "domain:www.tides.example"), grantable, "/proj")
    assert not may_grant(rule(ALLOW, "domain:tides.example"), grantable, "/proj")
    assert not may_grant(rule(ALLOW, "domain:lamps.example"), grantable, "/proj")


def test_rules_of_elsewhere_that_would_bind_less_here_are_refused() -> None:
    def read(content: str) -> None:
        rules = {"WebFetch": [{"rule_content": content}]}
        read_state(json.dumps({"session_id": "s", "permission_context": {"deny_rules": rules}}))

    read("domain:tides.example")
    with pytest.raises(ImportProblem, match="would bind fewer calls here"):
        read("https://tides.example/*")


def test_a_page_taints_and_what_is_asked_for_goes_out() -> None:
    analysis = asking("tides.example")

    assert brings_in(FETCH, analysis, "WebFetch", outside=False) == "'WebFetch' brought in what others wrote"
    assert goes_out(FETCH, analysis) == "it asks 'tides.example'"
