"""Agents within agents, as they are written: names, depth, and the tool that comes with them."""

from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.permission.rulebook import BadRule, check_rule
from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import agents_text
from tests.agent.family import AGENT_TOOL


def within(levels: int) -> dict[str, Any]:
    return {"agents": {"inner": within(levels - 1)}} if levels else {}


def test_agents_have_the_names_that_they_stand_under_and_bring_their_tool() -> None:
    spec = AgentSpec.model_validate({"tools": ["Read"], "agents": {"critic": {"description": "finds faults"}}})

    assert spec.agents["critic"].name == "critic"
    own = ("Agent", "AgentList", "AgentSend", "AgentStop")
    assert spec.all_tools == ("Read", *own)
    assert AgentSpec.model_validate({"tools": ["Agent"], "agents": {"critic": {}}}).all_tools == own
    assert AgentSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"agents": {"a b": {}}}, "'a b' can't be an agent's name"),
        ({"agents": {"critic": {"name": "other"}}}, "critic.name: it is 'critic' by the key that it stands under"),
        ({"agents": {"critic": {"tool": []}}}, "Extra inputs are not permitted"),
        ({"agents": [1]}, "valid dictionary"),
        ({"tools": ["Agent"]}, "'Agent' is for an agent that names others"),
        (within(4), "they stand 4 levels deep within each other, and 3 go"),
        ({"agents": {f"a{number}": {} for number in range(21)}}, "at most 20 items"),
        ({"max_children": 0}, "greater than or equal to 1"),
    ],
)
def test_what_can_not_be_meant_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refused:
        AgentSpec.model_validate(given)

    assert sentence in str(refused.value)


def test_three_levels_go() -> None:
    assert AgentSpec.model_validate(within(3)).levels == 3


def test_the_model_reads_which_agents_there_are_and_the_bounds() -> None:
    assert agents_text({"critic": "finds faults", "tiler": ""}, 4, 0).splitlines() == [
        "",
        "The agents:",
        "- critic: finds faults",
        "- tiler: no description",
        "At most 4 can be started in one reply. They start none themselves.",
    ]
    assert agents_text({}, 4, 2).endswith("Levels of agents below them: 2.")


@pytest.mark.parametrize(
    ("rule", "agent", "behavior"),
    [
        ({"behavior": "deny"}, "critic", "deny"),
        ({"behavior": "deny", "rule_content": "agent=critic"}, "critic", "deny"),
        ({"behavior": "ask", "rule_content": "agent=c*"}, "critic", "ask"),
        ({"behavior": "deny", "rule_content": "agent=critic"}, "tiler", "allow"),
    ],
)
def test_rules_speak_of_the_agent_that_is_started(rule: dict[str, str], agent: str, behavior: str) -> None:
    context = PermissionContext(rules=(PermissionRule.model_validate({"tool_name": "Agent", **rule}),))
    facts = CallAnalysis(read_only=True)

    decision = decide_call(AGENT_TOOL, f'{{"agent": "{agent}", "task": "look"}}', facts, context, "/site")

    assert decision.behavior.value == behavior


def test_a_rule_about_agents_that_names_no_argument_is_refused() -> None:
    with pytest.raises(BadRule, match="names an argument and what it says"):
        check_rule(PermissionRule.model_validate({"tool_name": "Agent", "rule_content": "critic", "behavior": "deny"}))
