"""A rule about a tool that nobody has binds nothing: misspelt it is refused, and else told."""

from typing import Any

import pytest

from longhaul.agent.operations.settings_operations import list_rules
from longhaul.agent.permission.call_analysis import BUILT_IN
from longhaul.agent.permission.rulebook import id_of
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import TOOLS, misspelt_rule, without_tool
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, Play

OWN = ("send", "fetch_page")
AGENT = SPEC.model_copy(update={"tools": (*SPEC.tools, *OWN)})
DENIED = {"tool_name": "Bsh", "behavior": "deny"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Bsh", "Bash"),
        ("bash", "Bash"),
        ("BASH", "Bash"),
        ("Bahs", "Bash"),
        ("Reads", "Read"),
        ("Wirte", "Write"),
        ("todo-write", "todo_write"),
        ("sned", "send"),
        ("fetchpage", "fetch_page"),
    ],
)
def test_a_slip_is_refused_with_what_was_meant(name: str, meant: str) -> None:
    assert misspelt_rule([name], OWN) == (
        f"rules: there is no tool {name!r}, so a rule about it binds nothing; did you mean {meant!r}?"
    )


@pytest.mark.parametrize(
    "name", [*TOOLS, *OWN, "MultiEdit", "WriteFile", "WebCrawl", "courier", "mcp__shell__Bash", "mcp__bash"]
)
def test_a_tool_that_there_is_or_that_may_be_somebody_elses_is_taken(name: str) -> None:
    assert misspelt_rule([name], OWN) == ""


def test_what_the_agent_does_not_have_is_told_once_by_name() -> None:
    named = ["Bash", "courier", "send", "mcp__mail__send", "courier"]

    assert without_tool(named, OWN) == ("courier", "mcp__mail__send")
    assert {*TOOLS} > BUILT_IN


@pytest.mark.parametrize(("operation", "field"), [("rules", "add"), ("configure", "rules")])
def test_an_operation_with_a_slip_changes_nothing(operation: str, field: str) -> None:
    play = Play(spec=AGENT)
    before = play.journal.state.permission_context

    answer = play.tell(operation, {field: [{"tool_name": "sned", "behavior": "deny"}]})

    assert "did you mean 'send'?" in str(answer)
    assert play.journal.state.permission_context == before


def test_a_state_with_a_slip_changes_nothing_unless_the_slip_was_there_before() -> None:
    play = Play(spec=AGENT)
    state = play.journal.state.model_dump(mode="json")
    slipped = state | {"permission_context": {"rules": [DENIED]}}
    refused = play.tell("replace_state", {"state": slipped, "by": "eve"})
    # As in a session that took it when nobody looked.
    play.journal.state.permission_context = play.journal.state.permission_context.model_copy(
        update={"rules": (PermissionRule.model_validate(DENIED),)}
    )

    taken = play.tell("replace_state", {"state": slipped, "by": "ana"})

    assert "state.permission_context.rules: there is no tool 'Bsh'" in str(refused)
    assert isinstance(taken, dict)
    assert taken["replaced"] is True


@pytest.mark.parametrize(
    ("operation", "body", "told"),
    [
        ("rules", {"add": [{"tool_name": "courier", "behavior": "deny"}]}, ("rules_changed", "no_tool")),
        ("configure", {"rules": [{"tool_name": "courier", "behavior": "deny"}]}, ("rules_without_tool", "tools")),
    ],
)
def test_a_rule_about_a_tool_that_the_agent_lacks_is_told_and_listed_so(
    operation: str, body: dict[str, Any], told: tuple[str, str]
) -> None:
    play = Play(spec=AGENT)

    play.tell(operation, body)
    play.tell("rules", {"add": [{"tool_name": "send", "no_tool": True}]})

    name, field = told
    values = [event.value for event in EventReducer().catch_up(play.journal.log) if event.name == name]
    assert values[0][field] == ["courier"]
    marks = {rule.tool_name: rule.no_tool for rule in list_rules(play.journal)}
    assert marks == {"Order": True, "Demolish": True, "courier": True, "send": False}
    assert [rule for rule in play.journal.state.permission_context.rules if rule.no_tool] == []


def test_the_mark_is_no_part_of_what_a_rule_says() -> None:
    rule = PermissionRule(tool_name="courier", behavior=Behavior.DENY)

    assert id_of(rule.model_copy(update={"no_tool": True})) == id_of(rule)


def test_tools_of_groups_are_the_agents_too() -> None:
    group = {"tools": ["courier"], "description": "To carry."}
    rules = [{"tool_name": "courier"}, {"tool_name": "reset_equipped_tools"}]

    spec = AgentSpec.model_validate({"tool_groups": {"carry": group}, "permission": {"rules": rules}})

    assert without_tool((rule.tool_name for rule in spec.permission.rules), spec.all_tools) == ()
