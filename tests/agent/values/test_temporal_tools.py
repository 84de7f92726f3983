"""Temporal tools as agents name them, and the ids under which a session starts them."""

from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.ids import (
    is_target_activity,
    is_target_workflow,
    target_activity_id,
    target_workflow_id,
)
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.temporal_tools import TemporalTool

REFUND = "activity:issue_refund@payments"


def test_a_target_in_tools_becomes_a_name_that_permission_knows() -> None:
    spec = AgentSpec.model_validate(
        {
            "tools": ["Read", REFUND, "workflow:Delivery@orders"],
            "permission": {"tools": {"issue_refund": {"approvers": 2}}},
        }
    )

    assert spec.tools == ("Read", "issue_refund", "Delivery")
    assert [tool.target for tool in spec.temporal_tools.values()] == [REFUND, "workflow:Delivery@orders"]
    assert AgentSpec.model_validate_json(spec.model_dump_json()) == spec


def test_a_table_says_more_of_a_target_under_its_name_or_another_one() -> None:
    table: dict[str, Any] = {
        "tools": [REFUND, "bill"],
        "temporal_tools": {
            "issue_refund": {"effect": "idempotent"},
            "bill": {"target": "nexus:billing/Invoices/send it", "effect": "read"},
        },
    }
    tools = AgentSpec.model_validate(table).temporal_tools

    assert (tools["issue_refund"].target, tools["issue_refund"].effect) == (REFUND, Effect.IDEMPOTENT)
    assert (tools["bill"].runs.endpoint, tools["bill"].runs.service, tools["bill"].runs.name) == (
        "billing",
        "Invoices",
        "send it",
    )


def test_an_attempt_has_ten_minutes_and_a_workflow_a_month() -> None:
    assert TemporalTool(target=REFUND).seconds == 600
    assert TemporalTool(target="workflow:Delivery@orders").seconds == 30 * 86_400
    assert TemporalTool(target=REFUND, timeout_seconds=5).seconds == 5


SCHEMA = {"type": "object", "properties": {"order": {}}}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"tools": ["activity:issue_refund"]}, "write activity:NAME@QUEUE, workflow:NAME@QUEUE or nexus:"),
        ({"tools": ["activity:" + "x" * 201 + "@q"]}, "is no target of a Temporal tool"),
        ({"tools": ["nexus:billing/send"]}, "is no target of a Temporal tool"),
        ({"tools": ["activity:billing.Refund@q"]}, "write [temporal_tools.NAME] with target"),
        ({"tools": ["activity:Bash@q"]}, "'Bash' is the name of another tool"),
        ({"tools": ["activity:longhaul.restore@q"]}, "is part of Longhaul, which no model may start"),
        ({"tools": ["workflow:AgentSession@q"]}, "is part of Longhaul, which no model may start"),
        ({"tools": [REFUND, "workflow:issue_refund@q"]}, "a second tool with the name 'issue_refund'"),
        ({"tools": [REFUND, REFUND]}, "names a tool twice"),
        ({"tools": ["a"], "temporal_tools": {"b": {"target": REFUND}}}, "add 'b' to tools"),
        ({"tools": [REFUND], "secrets": {"tools": {"issue_refund": ["KEY"]}}}, "have secrets of their own"),
        ({"tools": [REFUND], "postprocess": {"issue_refund": "short"}}, "does not see what a Temporal tool returns"),
        ({"tools": ["a"], "tool_groups": {"g": {"tools": [REFUND], "description": "g"}}}, "and NAME in the group"),
        ({"tools": [f"activity:a{number}@q" for number in range(101)]}, "at most 100"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_remedy(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        AgentSpec.model_validate(settings)

    assert sentence in what_is_wrong(refusal.value)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"target": "workflow:a@q", "heartbeat_seconds": 3}, "a workflow reports no heartbeats"),
        ({"target": "nexus:e/s/o"}, 'write effect = "idempotent"'),
        ({"target": "nexus:e/s/o", "effect": "read", "parameters": ["order"]}, "takes one value"),
        ({"target": REFUND, "input_schema": SCHEMA, "parameters": ["cents"]}, "has no property 'cents'"),
        ({"target": REFUND, "input_schema": {"type": "string"}}, 'write a schema with type = "object"'),
        ({"target": REFUND, "read_only": True}, 'set effect = "read"'),
    ],
)
def test_a_declaration_that_does_not_fit_its_target_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        TemporalTool.model_validate(settings)

    assert sentence in what_is_wrong(refusal.value)


@pytest.mark.parametrize("odd", ["7", "²", "", "a b", "call/1", "x" * 101, "\ud800", "call\n"])
def test_an_odd_id_of_a_call_becomes_a_plain_id_of_its_activity(odd: str) -> None:
    made = target_activity_id(odd)

    assert made.startswith("call-")
    assert made.isascii()
    assert made == target_activity_id(odd) != target_activity_id(f"{odd}0")
    assert is_target_activity(made)


def test_a_plain_id_of_a_call_is_the_id_of_its_activity() -> None:
    assert target_activity_id("toolu_01.A-b") == "toolu_01.A-b"
    assert not is_target_activity("12")
    assert not is_target_activity(None)


def test_the_id_of_a_calls_workflow_names_session_and_call() -> None:
    long = target_workflow_id("longhaul/a/~/" + "s" * 240, "toolu_1")

    assert target_workflow_id("longhaul/a/~/b", "toolu_1") == "longhaul-call/a/~/b/toolu_1"
    assert len(long) <= 255  # as much as the server takes
    assert is_target_workflow(long)
    assert not is_target_workflow("longhaul/call/~/b")
